//! A discarded letter blocks nobody, is not forgotten, and can be redriven after all.

use serde_json::json;

use super::asking::Operator;
use super::{Fault, effects, opened, run_until_kept};
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discarded_letter_frees_its_key_stays_and_can_be_redriven() {
    let world = World::start().await;
    let fault = Fault::new();
    let running = run_until_kept(&world, &fault.rejecting(), &[opened(1, 1), opened(1, 2), opened(1, 3)], 3).await;
    let operator = Operator::of(&world).await;
    let done = operator.discard(json!({ "reason": "rejected" }), 1).await;
    assert_eq!((&done["state"], &done["outcomes"]), (&json!("finished"), &json!({ "discarded": 1 })), "{done}");
    // What waited behind it goes on by itself, and what comes is not held up.
    world.until_count("select count(*) from effect", 2).await;
    running.publish(&[opened(1, 4)]).await.unwrap();
    world.until_count("select count(*) from effect", 3).await;
    assert_eq!(effects(&world, 1).await, [2, 3, 4]);

    assert_eq!(operator.letters(json!({})).await.len(), 0, "it waits for nobody");
    let letters = operator.letters(json!({ "state": "discarded" })).await;
    assert_eq!(
        (&letters[0]["discarded_by"], &letters[0]["discard_reason"]),
        (&json!("kim"), &json!("the fault is mended"))
    );
    assert_eq!(world.count("select octet_length(payload)::bigint from mesh.dead_letter").await, 51);
    let unnamed = operator.preview("redrive", json!({})).await;
    assert_eq!(unnamed["eligible"], 0, "a redrive of everything does not bring back what was discarded");

    // Failing, it stays discarded and blocks nobody.
    let ids = json!({ "ids": [letters[0]["id"]] });
    let ended = operator.redrive(ids.clone(), 2).await;
    assert_eq!(ended["outcomes"], json!({ "failed": 1 }), "{ended}");
    assert_eq!(operator.letters(json!({ "state": "discarded" })).await[0]["attempts"], 2);
    running.publish(&[opened(1, 5)]).await.unwrap();
    world.until_count("select count(*) from effect", 4).await;
    fault.mend();
    let preview = operator.preview("redrive", ids.clone()).await;
    assert_eq!((&preview["eligible"], &preview["discarded"]), (&json!(1), &json!(1)));
    let ended = operator.redrive(ids, 3).await;
    assert_eq!(ended["outcomes"], json!({ "redriven": 1 }), "{ended}");
    assert_eq!(effects(&world, 1).await, [2, 3, 4, 5, 1]);
    assert_eq!(world.count("select count(*) from mesh.dead_letter").await, 0);
    running.stop().await.unwrap();
}
