//! One fact all the way: transaction, outbox, relay, stream, consumer, inbox, handler, and its answer back on the stream.

use mesh::testing::Running;
use uuid::Uuid;

use crate::probe::{AnswerOpened, Opened, service};
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_committed_fact_is_published_delivered_and_answered() {
    let world = World::start().await;
    let running: Running = world.run(service().subscribe(AnswerOpened::always())).await;
    let id = Uuid::from_u128(7);
    running.publish(&[Opened { id, n: 1 }]).await.unwrap();

    world.until_count("select count(*) from mesh.outbox_sent", 2).await;
    world.until_count("select count(*) from mesh.inbox", 1).await;
    let stored = world.stored().await;
    let types: Vec<&str> = stored.iter().map(|message| message.header("ce-type")).collect();
    assert_eq!(types, ["probe.opened.v1", "probe.answered.v1"]);
    assert_eq!(stored[1].header("ce-causationid"), stored[0].header("ce-id"));
    assert_eq!(world.count("select count(*) from effect").await, 1);
    running.stop().await.unwrap();
}
