//! The broker goes away, and with it the bucket: deliveries wait, no attempt is used up, no effect is repeated.

use serde_json::json;
use tokio::sync::watch;
use uuid::Uuid;

use crate::probe::{Act, SendNote, fact, service};
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_whose_record_could_not_be_written_is_recorded_later_and_not_repeated() {
    let world = World::start().await;
    let (go_on, told) = watch::channel(false);
    let subscriber = SendNote::script(move |_| Act::Wait(told.clone()));
    let running = world.run(service(subscriber.clone())).await;
    let ids = [0xF1, 0xF2, 0xF3].map(Uuid::from_u128);
    for (n, id) in ids.into_iter().enumerate() {
        world.publish(&fact(n as u128 + 1, 0), id, &n.to_string()).await;
    }
    subscriber.until(3).await;
    world.nats.kill9().await;
    go_on.send_replace(true);
    world.nats.restart().await.unwrap();
    world.until_acknowledged().await;
    let mut notes: Vec<_> = subscriber.notes().iter().map(|note| (note.event_id, note.attempt)).collect();
    notes.sort_unstable();
    assert_eq!(notes, ids.map(|id| (id, 1)), "one effect each");
    for id in ids {
        let entry = world.entry(id).await;
        assert_eq!((&entry["state"], &entry["attempt"]), (&json!("settled"), &json!(1)));
    }
    assert_eq!(world.letters().await.len(), 0);
    running.stop().await.unwrap();
}
