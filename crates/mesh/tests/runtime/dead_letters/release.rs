//! What waits behind a letter goes on by itself once nothing is before it.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use super::asking::Operator;
use super::{effects, opened, run_until_kept};
use crate::probe::{Act, AnswerOpened};
use crate::world::World;

/// The fact before it was settled in the moment in which it was put behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_behind_nothing_is_tried_like_any_delivery() {
    let world = World::start().await;
    let tries = AtomicU32::new(0);
    let subscriber = AnswerOpened::script(move |received| match received.event.n {
        1 => Act::Reject,
        2 if tries.fetch_add(1, Ordering::SeqCst) < 2 => Act::Fail("not yet"),
        4 => Act::Reject,
        _ => Act::Answer,
    });
    let facts = [opened(1, 1), opened(1, 2), opened(1, 3), opened(1, 4), opened(1, 5)];
    let running = run_until_kept(&world, &subscriber, &facts, 5).await;
    sqlx::query("delete from mesh.dead_letter where reason = 'rejected'").execute(world.pool()).await.unwrap();
    world.until_count("select count(*) from effect", 2).await;
    assert_eq!(effects(&world, 1).await, [2, 3], "in order, after the back-off");
    // What fails for good holds up the rest.
    world.until_count("select count(*) from mesh.dead_letter where reason = 'rejected' and attempts = 1", 1).await;
    let letters = Operator::of(&world).await.letters(json!({})).await;
    let reasons: Vec<_> = letters.iter().map(|letter| letter["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["behind", "rejected"]);
    running.stop().await.unwrap();
}
