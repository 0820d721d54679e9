//! What becomes of deliveries that were given up: asked for over NATS as an operator does, done by running replicas.

pub(crate) mod asking;
mod discard;
mod exact_set;
mod failing;
mod redrive;
mod release;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mesh::testing::Running;
use uuid::Uuid;

use crate::probe::{Act, AnswerOpened, Opened, service};
use crate::world::World;

/// Fact `n` of a key.
fn opened(key: u128, n: u32) -> Opened {
    Opened { id: Uuid::from_u128(key), n }
}

/// Something that is broken until it is mended.
#[derive(Debug, Clone)]
struct Fault(Arc<AtomicBool>);

impl Fault {
    fn new() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    fn mend(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    fn is_there(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// A subscriber that rejects the first fact of each key while the fault is there.
    fn rejecting(&self) -> AnswerOpened {
        let fault = self.clone();
        AnswerOpened::script(
            move |received| {
                if fault.is_there() && received.event.n == 1 { Act::Reject } else { Act::Answer }
            },
        )
    }
}

/// Runs the service until these facts are handled or kept.
async fn run_until_kept(world: &World, subscriber: &AnswerOpened, facts: &[Opened], kept: i64) -> Running {
    let running = world.run(service().subscribe(subscriber.clone())).await;
    running.publish(facts).await.unwrap();
    world.until_count("select count(*) from mesh.dead_letter", kept).await;
    let handled = i64::try_from(facts.len()).unwrap() - kept;
    world.until_count("select count(*) from effect", handled).await;
    running
}

/// What the handlers of a key have done, in the order of the commits.
async fn effects(world: &World, key: u128) -> Vec<i64> {
    sqlx::query_scalar("select n from effect where key = $1 order by position")
        .bind(Uuid::from_u128(key))
        .fetch_all(world.pool())
        .await
        .unwrap()
}
