//! The stream loses what it acknowledged; the outbox has it, and publishes it again.

mod losses;
mod store;
mod task;
mod window;

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::wait;
use uuid::Uuid;

use crate::probe::{Opened, SERVICE};
use crate::world::{PATIENCE, Stored, World};

/// How soon after its loss a fact is to be back.
const SOON: Duration = Duration::from_secs(30);

/// One fact for each of these rounds, of twenty keys.
fn facts(rounds: std::ops::Range<u32>) -> Vec<Opened> {
    rounds.map(|n| Opened { id: Uuid::from_u128(u128::from(n % 20) + 1), n }).collect()
}

/// Waits until so many facts have had their effect and everything that was said is on the stream.
async fn until_settled(world: &World, effects: i64) {
    world.until_count("select count(*) from effect", effects).await;
    world.until_published().await;
}

/// Waits until the stream holds every one of these ids; returns what it holds then.
async fn until_stored(world: &World, ids: &HashSet<Uuid>) -> Vec<Stored> {
    wait::until("all facts on the stream", SOON, || async {
        let stored = world.stored().await;
        let there: HashSet<Uuid> = stored.iter().map(Stored::id).collect();
        let missing = ids.difference(&there).count();
        if missing == 0 { Ok(stored) } else { Err(format!("{missing} of {} are missing", ids.len())) }
    })
    .await
    .unwrap()
}

fn ids(stored: &[Stored]) -> HashSet<Uuid> {
    stored.iter().map(Stored::id).collect()
}

/// No fact had its effect twice.
async fn assert_effects_once(world: &World, effects: i64) {
    assert_eq!(world.count("select count(*) from effect").await, effects);
    assert_eq!(world.count("select count(distinct event_id) from effect").await, effects);
}

/// Asks a service for a comparison, or for word of the last one.
async fn ask(world: &World, run: bool) -> Result<Value, String> {
    let client = world.nats.admin().await.unwrap();
    let body = json!({ "run": run }).to_string();
    let answer = client.request(format!("mesh.ctl.{SERVICE}.reconcile"), body.into()).await;
    serde_json::from_slice(&answer.map_err(|error| error.to_string())?.payload).map_err(|error| error.to_string())
}

/// Has the outbox compared with the stream, and returns the answer.
async fn compare(world: &World) -> Value {
    wait::until("an answer", PATIENCE, || ask(world, true)).await.unwrap();
    wait::until("the end of the comparison", PATIENCE, || async {
        let answer = ask(world, false).await?;
        if answer["state"] == "done" { Ok(answer) } else { Err(answer.to_string()) }
    })
    .await
    .unwrap()
}
