//! A server that remembers the id of a message that it has lost.

use std::time::Duration;

use serde_json::json;
use testkit::{Nats, NatsOptions, wait};
use uuid::Uuid;

use super::{SOON, ask, facts};
use crate::probe::service;
use crate::world::{World, declare_stream, durable, elapse, stream};

/// It acknowledges a repeat as a duplicate, at the place where the message was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledgement_that_names_the_lost_place_is_none() {
    const WINDOW: Duration = Duration::from_secs(15);
    let nats = Nats::start(NatsOptions::new()).await.unwrap();
    let mut brief = stream();
    brief["duplicate_window"] = json!(u64::try_from(WINDOW.as_nanos()).unwrap());
    declare_stream(&nats, &brief, &durable()).await;
    let world = World::around(nats).await;
    let running = world.run(service()).await;
    running.publish(&facts(0..5)).await.unwrap();
    world.until_published().await;
    let id = world.stored().await[2].id();
    let stream = world.jetstream().await.get_stream(mesh::STREAM).await.unwrap();
    stream.delete_message(3).await.unwrap();
    ask(&world, true).await.unwrap();
    world.until_count("select count(*) from mesh.outbox where lost_sequence = 3", 1).await;
    // Other keys do not wait.
    running.publish(&facts(5..9)).await.unwrap();
    world.until_count("select count(*) from mesh.outbox", 1).await;
    elapse(Duration::from_secs(2)).await;
    assert_eq!(world.count("select count(*) from mesh.outbox").await, 1, "the server has not taken it");

    wait::until("the fact on the stream", 2 * SOON, || async {
        let sent: Vec<(Uuid, i64)> =
            sqlx::query_as("select event_id, stream_sequence from mesh.outbox_sent where event_id = $1")
                .bind(id)
                .fetch_all(world.pool())
                .await
                .map_err(|error| error.to_string())?;
        let stored = world.stored().await;
        let place = stored.iter().find(|message| message.id() == id).map(|message| message.sequence);
        match (&sent[..], place) {
            ([(_, recorded)], Some(place)) if u64::try_from(*recorded) == Ok(place) => Ok(()),
            seen => Err(format!("{seen:?}")),
        }
    })
    .await
    .unwrap();
    running.stop().await.unwrap();
}
