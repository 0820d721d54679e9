//! Something beside the database goes away: deliveries wait for it, no attempt is used up, and it is not stormed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use mesh::{Failure, Handled, Received, Subscriber, Tx};
use testkit::wait;
use uuid::Uuid;

use crate::probe::{Opened, service};
use crate::world::{PATIENCE, World};

/// Calls a gateway for every fact.
#[derive(Debug, Clone, Default)]
struct CallGateway {
    gateway: Arc<Gateway>,
}

#[derive(Debug, Default)]
struct Gateway {
    is_up: AtomicBool,
    calls: AtomicU32,
    probes: AtomicU32,
    /// Calls that were no first execution.
    counted: AtomicU32,
}

impl Subscriber for CallGateway {
    type Event = Opened;
    const NAME: &'static str = "call-gateway";

    async fn handle(&self, _: &mut Tx, received: Received<Opened>) -> Result<Handled, Failure> {
        self.gateway.calls.fetch_add(1, Ordering::Relaxed);
        if received.attempt > 1 {
            self.gateway.counted.fetch_add(1, Ordering::Relaxed);
        }
        match self.gateway.is_up.load(Ordering::Relaxed) {
            true => Ok(Handled::Effect),
            false => Err(Failure::Outage(anyhow::anyhow!("nobody answers"))),
        }
    }

    async fn probe(&self) -> anyhow::Result<()> {
        self.gateway.probes.fetch_add(1, Ordering::Relaxed);
        anyhow::ensure!(self.gateway.is_up.load(Ordering::Relaxed), "nobody answers");
        Ok(())
    }
}

#[tokio::test]
async fn what_handlers_need_is_waited_for_and_costs_no_attempt() {
    let world = World::start().await;
    let subscriber = CallGateway::default();
    let gateway = Arc::clone(&subscriber.gateway);
    let running = world.run(service().subscribe(subscriber)).await;
    let facts: Vec<_> = (0..40).map(|n| Opened { id: Uuid::from_u128(u128::from(n) + 1), n }).collect();
    running.publish(&facts).await.unwrap();
    wait::until("three probes", PATIENCE, || async {
        match gateway.probes.load(Ordering::Relaxed) {
            probes if probes >= 3 => Ok(()),
            probes => Err(format!("{probes} probes")),
        }
    })
    .await
    .unwrap();
    let called = gateway.calls.load(Ordering::Relaxed);
    assert!(called <= 40, "nothing is delivered until the gateway answers: {called} calls");
    gateway.is_up.store(true, Ordering::Relaxed);
    world.until_count("select count(*) from mesh.inbox", 40).await;
    assert_eq!(gateway.counted.load(Ordering::Relaxed), 0, "an outage uses up no attempt");
    assert_eq!(world.count("select count(*) from mesh.delivery_attempt").await, 0);
    assert_eq!(world.count("select count(*) from mesh.dead_letter").await, 0);
    running.stop().await.unwrap();
}
