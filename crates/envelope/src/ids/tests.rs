//! Derived ids: stable for ever, distinct, in the time order of their root.

use proptest::prelude::*;

use super::*;

const CAUSE: Uuid = Uuid::from_u128(0x01890a5d_ac96_774b_bcce_b302099a8057);

/// Computed independently:
///
/// ```python
/// import hashlib, struct, uuid
/// def derive(family, cause, emitter, last):
///     parts = [family, cause.bytes, emitter, last]
///     h = hashlib.sha256(b''.join(struct.pack('>Q', len(p)) + p for p in parts)).digest()
///     return uuid.UUID(bytes=cause.bytes[:6] + bytes([h[0] & 15 | 128, h[1], h[2] & 63 | 128]) + h[3:10])
/// c = uuid.UUID('01890a5d-ac96-774b-bcce-b302099a8057')
/// print(derive(b'mesh.event.1', c, b'payments/charge-customer', struct.pack('>I', 0)))
/// print(derive(b'mesh.named.1', c, b'payments/charge-customer', b'payment'))
/// ```
#[test]
fn the_derivation_is_frozen() {
    let emitter = "payments/charge-customer";
    assert_eq!(derive(CAUSE, emitter, 0).to_string(), "01890a5d-ac96-8984-bc2f-bf0abe7b0405");
    assert_eq!(derive_named(CAUSE, emitter, "payment").to_string(), "01890a5d-ac96-8082-9e59-c5cf5a328360");
}

/// A redelivery that a newer build handles says the same facts under the same ids.
#[test]
fn the_build_does_not_count() {
    let plain = derive(CAUSE, "payments/charge-customer", 3);
    assert_eq!(derive(CAUSE, "payments/charge-customer@1.4.0", 3), plain);
    assert_eq!(derive(CAUSE, "payments/charge-customer@1.5.0", 3), plain);
}

/// The UUIDv7 of RFC 9562, appendix A.6: 2022-02-22T19:22:22Z.
#[test]
fn the_millisecond_is_the_leading_48_bits() {
    assert_eq!(millis(Uuid::from_u128(0x017F22E2_79B0_7CC3_98C4_DC0C0C07398F)), 1_645_557_742_000);
    assert_eq!(millis(Uuid::max()), (1 << 48) - 1);
    assert_eq!(millis(Uuid::nil()), 0);
}

proptest! {
    #[test]
    fn a_derived_id_is_a_version_8_uuid_with_the_time_of_its_root(cause: u128, emitter in "[a-z/@.-]{0,20}", ordinal: u32) {
        let cause = Uuid::from_u128(cause);
        let first = derive(cause, &emitter, ordinal);
        let second = derive(first, &emitter, ordinal);
        for id in [first, second, derive_named(cause, &emitter, "refund")] {
            prop_assert_eq!(id.get_version_num(), 8);
            prop_assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
            prop_assert_eq!(millis(id), millis(cause));
        }
        prop_assert_eq!(derive(cause, &emitter, ordinal), first);
        prop_assert_ne!(first, second);
    }

    #[test]
    fn different_words_give_different_ids(
        a in ("[a-c/]{0,4}", 0_u32..4),
        b in ("[a-c/]{0,4}", 0_u32..4),
    ) {
        prop_assert_eq!(derive(CAUSE, &a.0, a.1) == derive(CAUSE, &b.0, b.1), a == b);
        // Moving characters from one part to the next must not collide, nor the two families with each other.
        let named = |(emitter, label): &(String, u32)| derive_named(CAUSE, emitter, &label.to_string());
        prop_assert_eq!(named(&a) == named(&b), a == b);
        prop_assert_ne!(derive(CAUSE, &a.0, a.1), derive_named(CAUSE, &a.0, &String::from_utf8_lossy(&a.1.to_be_bytes())));
        let joined = format!("{}{}", a.0, b.0);
        prop_assert_eq!(derive_named(CAUSE, &a.0, &b.0) == derive_named(CAUSE, &joined, ""), b.0.is_empty());
    }
}
