//! What time makes due: a tick that fails or panics is not the last one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mesh::{Cause, Failure, Progress, Timer, Tx};
use uuid::Uuid;

use crate::probe::{Answered, service};
use crate::world::World;

/// Panics, then fails, then publishes three facts at once, one per tick.
struct Troubled(AtomicU32);

impl Timer for Troubled {
    const NAME: &'static str = "troubled";

    async fn tick(&self, tx: &mut Tx) -> Result<Progress, Failure> {
        let tick = self.0.fetch_add(1, Ordering::SeqCst);
        let id = Uuid::from_u128(u128::from(tick) + 1);
        tx.continue_flow(Cause { event_id: id, correlation_id: id, hops: 0 });
        tx.publish(&Answered { id, n: tick })?;
        match tick {
            0 => panic!("as scripted"),
            1 => Err(anyhow::anyhow!("not yet").into()),
            2 | 3 => Ok(Progress::More),
            4 => Ok(Progress::Idle),
            _ => {
                tx.publish(&Answered { id: Uuid::from_u128(99), n: tick })?;
                Err(anyhow::anyhow!("only what is committed is published").into())
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timer_goes_on_after_a_tick_that_failed_or_panicked() {
    let world = World::start().await;
    let running = world.run(service().every(Duration::from_millis(50), Troubled(AtomicU32::new(0)))).await;
    world.until_count("select count(*) from mesh.outbox_sent", 3).await;
    let bodies: Vec<String> =
        world.stored().await.into_iter().map(|message| String::from_utf8(message.body).unwrap()).collect();
    let numbers: Vec<bool> = (2..5).map(|n| bodies.iter().any(|body| body.contains(&format!("\"n\":{n}")))).collect();
    assert_eq!((bodies.len(), numbers), (3, vec![true; 3]), "{bodies:?}");
    running.stop().await.unwrap();
}
