//! How soon a committed fact is stored. Printed, not held: the machine decides.

use uuid::Uuid;

use crate::probe::{Opened, service};
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_committed_fact_wakes_the_relay() {
    let world = World::start().await;
    let running = world.run(service()).await;
    for n in 0..100 {
        running.publish(&[Opened { id: Uuid::from_u128(u128::from(n) + 1), n }]).await.unwrap();
        world.until_published().await;
    }
    let [p50, p99]: [f64; 2] = sqlx::query_scalar::<_, Vec<f64>>(
        "select percentile_cont(array[0.5, 0.99]) within group (order by extract(epoch from sent_at - created_at) * 1000)
         from mesh.outbox_sent",
    )
    .fetch_one(world.pool())
    .await
    .unwrap()
    .try_into()
    .unwrap();
    println!("insert to acknowledged, idle: p50 {p50:.1} ms, p99 {p99:.1} ms");
    assert_eq!(world.stored().await.len(), 100);
    running.stop().await.unwrap();
}
