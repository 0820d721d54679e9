//! What is given up is kept, with all that is known about it, and later facts of its key queue up behind it.

use mesh::testing::message;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::probe::{Act, SendNote, fact, service};
use crate::world::World;

const FIRST: Uuid = Uuid::from_u128(0xF1);

fn of(letters: &[Value], id: Uuid) -> &Value {
    letters.iter().find(|letter| letter["event_id"] == json!(id)).unwrap()
}

#[tokio::test]
async fn attempts_are_counted_across_processes_and_end_in_a_letter_with_all_that_was_received() {
    let world = World::start().await;
    let subscriber = SendNote::script(|_| Act::Fail("no paper"));
    let raw = message(&fact(1, 0), FIRST).unwrap();
    world.publish_raw(&raw, "first").await;
    let running = world.run(service(subscriber.clone())).await;
    subscriber.until(1).await;
    running.stop().await.unwrap();
    let running = world.run(service(subscriber.then(|_| Act::Fail("no ink")))).await;
    world.until_acknowledged().await;
    let attempts: Vec<_> = subscriber.notes().iter().map(|note| note.attempt).collect();
    assert!(attempts == [1, 2, 3], "the policy allows three: {attempts:?}");
    assert_eq!(world.entry(FIRST).await["state"], json!("kept"));
    let letters = world.letters().await;
    let letter = of(&letters, FIRST);
    assert_eq!((&letter["state"], &letter["reason"]), (&json!("dead"), &json!("attempts_exhausted")));
    let history: Vec<_> = letter["history"].as_array().unwrap().iter().map(|failed| &failed["attempt"]).collect();
    assert_eq!(history, [1, 2, 3]);
    assert!(letter["history"][2]["error"].as_str().unwrap().contains("no ink"), "{letter}");
    assert_eq!(letter["message"]["inline"]["payload"], json!(base64(&raw.body)), "the bytes as they came");
    let headers: Vec<(String, String)> =
        serde_json::from_value(letter["message"]["inline"]["headers"].clone()).unwrap();
    for header in &raw.headers {
        assert!(headers.contains(header), "{header:?}");
    }
    running.stop().await.unwrap();
}

/// The alphabet of RFC 4648, without a library.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let is_filler = place > chunk.len();
            let sextet = bits >> (18 - 6 * place) & 0x3f;
            text.push(if is_filler { '=' } else { char::from(ALPHABET[sextet as usize]) });
        }
    }
    text
}

#[tokio::test]
async fn later_facts_of_a_key_queue_up_behind_and_other_keys_go_on() {
    let world = World::start().await;
    let subscriber = SendNote::script(|received| match received.event.n {
        0 => Act::Reject,
        _ => Act::Done,
    });
    let running = world.run(service(subscriber.clone())).await;
    let [second, third, other] = [0xF2, 0xF3, 0xF4].map(Uuid::from_u128);
    world.publish(&fact(1, 0), FIRST, "1").await;
    world.publish(&fact(1, 1), second, "2").await;
    world.publish(&fact(1, 2), third, "3").await;
    world.publish(&fact(2, 9), other, "4").await;
    world.until_acknowledged().await;
    let mut entered: Vec<_> = subscriber.notes().iter().map(|note| note.event_id).collect();
    entered.sort_unstable();
    assert_eq!(entered, [FIRST, other], "the handler is not entered for what waits");
    let letters = world.letters().await;
    assert_eq!(letters.len(), 3);
    assert_eq!(of(&letters, FIRST)["reason"], json!("rejected"));
    assert_eq!(of(&letters, second)["behind_event"], json!(FIRST));
    assert!([FIRST, second].map(|id| json!(id)).contains(&of(&letters, third)["behind_event"]));
    assert!(letters.iter().skip(1).all(|letter| letter["state"] == json!("parked")));
    // A repeat of what is kept is no news.
    world.publish(&fact(1, 0), FIRST, "5").await;
    world.publish(&fact(1, 1), second, "6").await;
    world.until_acknowledged().await;
    assert_eq!(world.letters().await.len(), 3);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_read_is_kept_whole_however_large_it_is() {
    let world = World::start().await;
    let running = world.run(service(SendNote::always())).await;
    let mut small = message(&fact(1, 0), FIRST).unwrap();
    small.body = b"not json".to_vec();
    let mut large = message(&fact(2, 0), Uuid::from_u128(0xF2)).unwrap();
    large.body = vec![b'x'; 1_000_000];
    world.publish_raw(&small, "small").await;
    world.publish_raw(&large, "large").await;
    world.until_acknowledged().await;
    let letters = world.letters().await;
    assert_eq!(of(&letters, FIRST)["state"], json!("parked"));
    let parts = of(&letters, Uuid::from_u128(0xF2))["message"]["parts"].as_u64().unwrap();
    let mut whole = String::new();
    let entries = world.entries("dead_probe").await;
    for part in 0..parts {
        let key = format!("part.{}.send-note.{part}", Uuid::from_u128(0xF2));
        whole += entries.iter().find(|(entry, _)| *entry == key).unwrap().1.as_str().unwrap();
    }
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole["payload"], json!(base64(&large.body)));
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_handler_that_panics_is_tried_again_and_given_up() {
    let world = World::start().await;
    let subscriber = SendNote::script(|_| Act::Panic);
    let running = world.run(service(subscriber.clone())).await;
    world.publish(&fact(1, 0), FIRST, "1").await;
    world.until_acknowledged().await;
    assert_eq!(subscriber.notes().len(), 3);
    let letters = world.letters().await;
    assert!(of(&letters, FIRST)["detail"].as_str().unwrap().contains("as scripted"), "{letters:?}");
    running.stop().await.unwrap();
}
