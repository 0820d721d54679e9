//! Subjects cannot be formed wrongly, and buckets are FNV-1a.

use proptest::prelude::*;

use super::*;

/// Published test vectors of FNV-1a 32 (Fowler, Noll, Vo).
#[test]
fn the_hash_is_fnv_1a() {
    assert_eq!(fnv1a(b""), 0x811c_9dc5);
    assert_eq!(fnv1a(b"a"), 0xe40c_292c);
    assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968);
}

/// The low six bits of the vectors above.
#[test]
fn the_bucket_is_the_hash_modulo_64() {
    assert_eq!(bucket(""), 0x05);
    assert_eq!(bucket("a"), 0x2c);
    assert_eq!(bucket("foobar"), 0x28);
}

#[test]
fn a_subject_has_its_five_tokens() {
    let event_type = "orders.order_created.v1".parse().expect("a type");
    let subject = Subject::new(&event_type, "foobar").expect("a subject");
    assert_eq!(subject.as_str(), "evt.orders.order_created.v1.40");
    assert_eq!(Subject::parse("evt.orders.order_created.v1.40"), Ok(subject));
}

#[test]
fn keys_that_would_not_travel_in_a_header_are_refused() {
    let event_type: EventType = "orders.order_created.v1".parse().expect("a type");
    let long = "k".repeat(KEY_BYTES_MAX + 1);
    for key in ["", " ", "a b", "straße", "50%", "\"a\"", "a\nb", "a\0b", "a\u{7f}", &long] {
        assert_eq!(Subject::new(&event_type, key), Err(SubjectError::Key(key.to_owned())));
    }
    // Dots and wildcards are harmless: the key itself is not in the subject.
    for key in [".", "*", ">", "a.b", "evt.>", &long[1..]] {
        assert!(Subject::new(&event_type, key).is_ok(), "{key:?}");
    }
}

#[test]
fn subjects_outside_the_grammar_do_not_parse() {
    let hostile = [
        "",
        "evt",
        "evt.>",
        "evt.*.*.*.*",
        "evt.orders.order_created.v1",
        "evt.orders.order_created.v1.",
        "evt.orders.order_created.v1.64",
        "evt.orders.order_created.v1.05",
        "evt.orders.order_created.v1.+5",
        "evt.orders.order_created.v1.-1",
        "evt.orders.order_created.v1.*",
        "evt.orders.order_created.v1.5.6",
        "EVT.orders.order_created.v1.5",
        "cmd.orders.order_created.v1.5",
        "evt..order_created.v1.5",
        "evt.orders.order_created.1.5",
        "evt.orders.order_created.v1.5 ",
        " evt.orders.order_created.v1.5",
        "evt.orders.order created.v1.5",
        "evt.orders.order_created.v1.٣",
        "evt.Straße.order_created.v1.5",
    ];
    for text in hostile {
        assert!(Subject::parse(text).is_err(), "{text:?} parsed");
    }
}

/// Text made of what subjects are broken with, as often as of harmless letters.
fn hostile_text() -> impl Strategy<Value = String> {
    proptest::string::string_regex("([a-z0-9_.*> \\t\\r\\n%\"ß\u{0}🙂-]|[a-z]){0,40}").expect("a valid pattern")
}

proptest! {
    /// Whatever is put in: either refused, or five plain tokens that parse back to the same subject.
    #[test]
    fn whatever_is_built_is_in_the_grammar(domain in hostile_text(), name in hostile_text(), major: u16, key in hostile_text()) {
        let event_type = EventType { domain, name, major };
        if let Ok(subject) = Subject::new(&event_type, &key) {
            let tokens: Vec<&str> = subject.as_str().split('.').collect();
            prop_assert_eq!(tokens.len(), 5);
            prop_assert!(tokens.iter().all(|token| !token.is_empty()
                && token.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')));
            prop_assert!(subject.bucket() < BUCKETS);
            prop_assert_eq!(Subject::parse(subject.as_str()), Ok(subject));
        }
    }

    #[test]
    fn whatever_parses_is_written_the_same(text in "evt\\.[a-z_]{1,8}\\.[a-z_]{1,8}\\.v[0-9]{1,4}\\.[0-9]{1,3}") {
        if let Ok(subject) = Subject::parse(&text) {
            prop_assert_eq!(subject.as_str(), text);
        }
    }
}
