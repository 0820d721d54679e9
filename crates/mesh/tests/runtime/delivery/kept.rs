//! What is kept instead of handled: by reason, with its bytes, and the later facts of its key behind it.

use mesh::{DeadReason, ParkReason, Retry, RetryCause, Verdict};
use uuid::Uuid;

use super::{bed, fact};
use crate::probe::{Act, AnswerOpened};
use crate::world::{count, database};

#[tokio::test]
async fn a_message_that_cannot_be_read_is_parked_with_its_reason_and_its_bytes() {
    let good = fact(1, 1);
    let with_body = |body: &[u8]| envelope::RawMessage { body: body.to_vec(), ..good.clone() };
    let set = |name: &str, value: &str| {
        let mut raw = good.clone();
        raw.headers.iter_mut().filter(|(known, _)| known == name).for_each(|(_, old)| *old = value.to_owned());
        raw
    };
    let messages = [
        ("malformed_json", with_body(b"{\"id\":")),
        ("invalid_utf8", with_body(b"{\"id\":\"\xff\"}")),
        ("nul", with_body(br#"{"id":"\u0000"}"#)),
        ("bad_body", with_body(br#"{"id":"00000000-0000-0000-0000-000000000001"}"#)),
        ("bad_body", with_body(br#"{"id":7,"n":"seven"}"#)),
        ("malformed_headers", envelope::RawMessage { headers: Vec::new(), ..good.clone() }),
        ("malformed_headers", set("ce-id", "no id")),
        ("malformed_headers", set("mesh-hops", "\u{0}\u{7f}")),
        ("subject_mismatch", envelope::RawMessage { subject: "evt.probe.opened.v1.63".to_owned(), ..good.clone() }),
    ];
    for (reason, raw) in messages {
        let database = database().await;
        let subscriber = AnswerOpened::always();
        let verdicts = bed(&database, &subscriber).deliver_message(raw.clone(), false).await;
        assert_eq!(verdicts[0].1, Verdict::Parked(ParkReason::Undecodable(reason)), "{raw:?}");
        let (state, kept_reason, subject, headers, payload): (String, String, String, String, Vec<u8>) =
            sqlx::query_as("select state, reason, subject, headers, payload from mesh.dead_letter")
                .fetch_one(database.pool())
                .await
                .unwrap();
        assert_eq!((state.as_str(), kept_reason.as_str()), ("parked", reason));
        assert_eq!((subject, payload), (raw.subject, raw.body));
        assert_eq!(serde_json::from_str::<Vec<(String, String)>>(&headers).unwrap(), raw.headers);
        assert!(subscriber.entries().is_empty());
    }
}

#[tokio::test]
async fn keeping_a_message_again_keeps_it_once() {
    let database = database().await;
    let bed = bed(&database, &AnswerOpened::always());
    let nameless = envelope::RawMessage { headers: Vec::new(), ..fact(1, 1) };
    for redelivered in [false, true, true] {
        bed.deliver_message(nameless.clone(), redelivered).await;
    }
    assert_eq!(count(database.pool(), "select count(*) from mesh.dead_letter").await, 1);
    assert_eq!(count(database.pool(), "select count(*) from mesh.delivery_attempt").await, 0);
}

#[tokio::test]
async fn later_facts_of_a_key_queue_up_behind_its_dead_letter_and_other_keys_do_not() {
    let database = database().await;
    let subscriber = AnswerOpened::script(|received| if received.event.n == 1 { Act::Reject } else { Act::Answer });
    let bed = bed(&database, &subscriber);
    assert_eq!(bed.deliver_message(fact(1, 1), false).await[0].1, Verdict::Dead(DeadReason::Rejected));
    let mut before = Uuid::from_u128(1 << 32 | 1);
    for n in 2..=4 {
        let verdict = bed.deliver_message(fact(1, n), false).await[0].1.clone();
        assert_eq!(verdict, Verdict::Parked(ParkReason::Behind(before)), "behind the one before it");
        before = Uuid::from_u128(1 << 32 | u128::from(n));
    }
    assert_eq!(bed.deliver_message(fact(2, 2), false).await[0].1, Verdict::Handled);
    let kept: Vec<(String, String, Option<Uuid>)> =
        sqlx::query_as("select state, reason, behind_event from mesh.dead_letter order by id")
            .fetch_all(database.pool())
            .await
            .unwrap();
    let behind = |n: u128| ("parked".to_owned(), "behind".to_owned(), Some(Uuid::from_u128(1 << 32 | n)));
    assert_eq!(kept, [("dead".to_owned(), "rejected".to_owned(), None), behind(1), behind(2), behind(3)]);
    // A repeat of a kept fact is a repeat.
    assert_eq!(bed.deliver_message(fact(1, 1), true).await[0].1, Verdict::Duplicate);
    assert_eq!(bed.deliver_message(fact(1, 3), true).await[0].1, Verdict::Duplicate);
    assert_eq!(count(database.pool(), "select count(*) from mesh.delivery_attempt").await, 0);
}

#[tokio::test]
async fn a_flow_that_goes_round_in_circles_is_parked() {
    let database = database().await;
    let subscriber = AnswerOpened::always();
    let bed = bed(&database, &subscriber);
    let hops = |hops: u16| {
        let mut raw = fact(1, u32::from(hops));
        raw.headers.retain(|(name, _)| name != "mesh-hops");
        raw.headers.push(("mesh-hops".to_owned(), hops.to_string()));
        raw.headers.push(("ce-causationid".to_owned(), Uuid::from_u128(9).to_string()));
        raw
    };
    assert_eq!(bed.deliver_message(hops(31), false).await[0].1, Verdict::Handled);
    assert_eq!(bed.deliver_message(hops(33), false).await[0].1, Verdict::Parked(ParkReason::Loop));
    assert_eq!(subscriber.entries().len(), 1);
}

#[tokio::test]
async fn a_newer_major_is_put_off_and_uses_up_no_attempt() {
    let database = database().await;
    let subscriber = AnswerOpened::always();
    let bed = bed(&database, &subscriber);
    let newer = newer_major();
    for redelivered in [false, true, true, true, true, true] {
        let verdict = bed.deliver_message(newer.clone(), redelivered).await[0].1.clone();
        let Verdict::Retry(Retry { cause: RetryCause::NewerVersion, .. }) = verdict else { panic!("{verdict:?}") };
    }
    assert_eq!(count(database.pool(), "select count(*) from mesh.dead_letter").await, 0);
}

/// The fact in a major that the subscriber does not know.
fn newer_major() -> envelope::RawMessage {
    let mut raw = fact(1, 1);
    raw.subject = raw.subject.replace(".v1.", ".v2.");
    for (name, value) in &mut raw.headers {
        if name == "ce-type" {
            *value = "probe.opened.v2".to_owned();
        } else if name == "ce-dataschema" {
            *value = "urn:mesh:schema:probe.opened:2:0".to_owned();
        }
    }
    raw
}
