//! A process ends in the middle of a delivery: what it was doing is counted and done again, under the same id.

use mesh::testing::RunningKv;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::probe::{Act, SendNote, fact, service};
use crate::world::World;

const FIRST: Uuid = Uuid::from_u128(0xF1);

/// A service in a runtime of its own. When that goes, its tasks end wherever they are.
struct Replica {
    runtime: Option<Runtime>,
    _running: RunningKv,
}

impl Replica {
    async fn start(world: &World, subscriber: SendNote) -> Self {
        let config = world.config();
        let started = spawn_blocking(|| {
            let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let running = runtime.block_on(RunningKv::start(service(subscriber), config)).unwrap();
            Self { runtime: Some(runtime), _running: running }
        });
        started.await.unwrap()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_between_the_effect_and_its_record_repeats_the_effect_under_the_same_id() {
    let world = World::start().await;
    let subscriber = SendNote::script(|_| Act::Hang);
    let replica = Replica::start(&world, subscriber.clone()).await;
    world.publish(&fact(1, 0), FIRST, "1").await;
    subscriber.until(1).await;
    assert_eq!(world.entry(FIRST).await["state"], json!("claimed"));
    drop(replica);
    let running = world.run(service(subscriber.then(|_| Act::Done))).await;
    world.until_acknowledged().await;
    let notes: Vec<_> = subscriber.notes().iter().map(|note| (note.event_id, note.attempt)).collect();
    assert_eq!(notes, [(FIRST, 1), (FIRST, 2)], "once more, counted, and recognisable");
    assert_eq!(world.entry(FIRST).await["state"], json!("settled"));
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fact_that_ends_the_process_each_time_is_given_up_after_the_attempts() {
    let world = World::start().await;
    let subscriber = SendNote::script(|_| Act::Hang);
    world.publish(&fact(1, 0), FIRST, "1").await;
    for executions in 1..=3 {
        let replica = Replica::start(&world, subscriber.clone()).await;
        subscriber.until(executions).await;
        drop(replica);
    }
    let running = world.run(service(subscriber.clone())).await;
    world.until_acknowledged().await;
    assert_eq!(subscriber.notes().len(), 3, "the policy allows three");
    assert_eq!(world.letters().await[0]["reason"], json!("attempts_exhausted"));
    running.stop().await.unwrap();
}
