use std::sync::Arc;
use std::time::Duration;

use envelope::Timestamp;
use events::{CancelReason, OrderCancelled};
use mesh::Progress;
use mesh::clock::{Clock, System};
use mesh::testing::TestBed;
use testkit::TestDatabase;
use uuid::Uuid;

use super::{OrderDeadline, WatchOverdueFlows};
use crate::domain::Status;
use crate::store;
use crate::testing::{Caller, bed, database, placement};
use crate::{Settings, service};

const LATER: Duration = Duration::from_secs(60);

/// Places the order with the number `n`, whose OrderCreated has the number `n + 1000`.
async fn place(database: &TestDatabase, n: u128, within: Duration) {
    let mut connection = database.pool().acquire().await.unwrap();
    let (order_id, created) = (Uuid::from_u128(n), Uuid::from_u128(n + 1000));
    store::insert(&mut connection, order_id, placement(Uuid::max()), created, within).await.unwrap();
}

async fn status(database: &TestDatabase, n: u128) -> Status {
    let mut connection = database.pool().acquire().await.unwrap();
    store::find(&mut connection, Uuid::from_u128(n)).await.unwrap().unwrap().status
}

#[tokio::test]
async fn overdue_orders_are_cancelled_once_each_as_a_later_step_of_their_flow() {
    let (database, bed) = bed().await;
    place(&database, 1, Duration::ZERO).await;
    place(&database, 2, LATER).await;
    place(&database, 3, Duration::ZERO).await;
    let timer = Arc::new(OrderDeadline);
    for expected in [Progress::More, Progress::More, Progress::Idle, Progress::Idle] {
        assert_eq!(bed.tick(&timer).await.unwrap(), expected);
    }
    let cancelled = Status::Cancelled(CancelReason::Deadline);
    assert_eq!(status(&database, 1).await, cancelled);
    assert_eq!(status(&database, 2).await, Status::Pending);
    assert_eq!(status(&database, 3).await, cancelled);

    let facts = bed.published::<OrderCancelled>().await.unwrap();
    assert_eq!(facts.len(), 2);
    for (n, (metadata, fact)) in [1, 3].into_iter().zip(facts) {
        assert_eq!((fact.order_id, fact.reason), (Uuid::from_u128(n), CancelReason::Deadline));
        let created = Some(Uuid::from_u128(n + 1000));
        assert_eq!((metadata.correlation_id, metadata.causation_id, metadata.hops), (fact.order_id, created, 1));
        assert!(metadata.emitter.starts_with("orders/order-deadline@"), "{}", metadata.emitter);
    }
}

#[tokio::test]
async fn a_deadline_that_comes_too_late_changes_and_says_nothing() {
    let (database, mut bed) = bed().await;
    let caller = Caller::new(bed.router().unwrap()).await;
    place(&database, 1, Duration::ZERO).await;
    // The order ended, but the flow is still shown as open: what a deadline sees that lost the race for the row.
    sqlx::query("update orders set status = 'confirmed', version = 2").execute(database.pool()).await.unwrap();
    let timer = Arc::new(OrderDeadline);
    assert_eq!(bed.tick(&timer).await.unwrap(), Progress::More);
    assert_eq!(bed.tick(&timer).await.unwrap(), Progress::Idle, "it is looked at once");
    assert_eq!(status(&database, 1).await, Status::Confirmed);
    assert!(bed.published::<OrderCancelled>().await.unwrap().is_empty());
    let metrics = caller.request("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    let counted = |line: &str| line.contains("no_effect") && line.contains("\"order-deadline\"");
    assert!(metrics.lines().any(counted), "{metrics}");
}

/// The clock of a machine that is an hour off.
#[derive(Debug)]
struct OffByAnHour(i64);

impl Clock for OffByAnHour {
    fn now(&self) -> Timestamp {
        (System.now().as_offset() + time::Duration::hours(self.0)).into()
    }

    fn draw_id(&self) -> Uuid {
        System.draw_id()
    }

    fn random(&self) -> f64 {
        System.random()
    }
}

#[tokio::test]
async fn a_replica_whose_clock_is_wrong_is_neither_early_nor_late() {
    for hours in [-1, 1] {
        let database = database().await;
        let replica = service(Settings::default()).clock(Arc::new(OffByAnHour(hours)));
        let bed = TestBed::new(replica, database.pool().clone());
        place(&database, 1, LATER).await;
        place(&database, 2, Duration::ZERO).await;
        let timer = Arc::new(OrderDeadline);
        while bed.tick(&timer).await.unwrap() == Progress::More {}
        let ended = Status::Cancelled(CancelReason::Deadline);
        assert_eq!((status(&database, 1).await, status(&database, 2).await), (Status::Pending, ended), "{hours} h");
    }
}

#[tokio::test]
async fn two_replicas_share_the_overdue_flows() {
    let (database, bed) = bed().await;
    for n in 1..=8 {
        place(&database, n, Duration::ZERO).await;
    }
    let timer = Arc::new(OrderDeadline);
    let replica = || async {
        let mut cancelled = 0;
        while bed.tick(&timer).await.unwrap() == Progress::More {
            cancelled += 1;
        }
        cancelled
    };
    let (one, other) = tokio::join!(replica(), replica());
    assert_eq!(one + other, 8);
    assert_eq!(bed.published::<OrderCancelled>().await.unwrap().len(), 8);
}

#[tokio::test]
async fn overdue_flows_are_measured() {
    let (database, mut bed) = bed().await;
    let caller = Caller::new(bed.router().unwrap()).await;
    for (n, within) in [(1, Duration::ZERO), (2, Duration::ZERO), (3, LATER)] {
        place(&database, n, within).await;
    }
    assert_eq!(bed.tick(&Arc::new(WatchOverdueFlows)).await.unwrap(), Progress::Idle);
    let metrics = caller.request("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(metrics.lines().any(|line| line == "saga_stuck_count 2"), "{metrics}");
    assert_eq!(status(&database, 1).await, Status::Pending, "measuring changes nothing");
}
