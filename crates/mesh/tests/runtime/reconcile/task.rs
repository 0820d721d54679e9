//! One replica compares for all.

use serde_json::json;
use testkit::wait;

use super::{ask, compare, facts};
use crate::probe::service;
use crate::world::{PATIENCE, World};

const OWNERS: &str = "select count(*) from mesh.task_lease
                      where task = 'reconcile' and owner is not null and expires_at > clock_timestamp()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_replica_is_asked_the_one_that_holds_the_task_compares_and_hands_it_on_when_it_stops() {
    let world = World::start().await;
    let first = world.run(service()).await;
    world.until_count(OWNERS, 1).await;
    let second = world.run(service()).await;
    first.publish(&facts(0..20)).await.unwrap();
    world.until_published().await;
    for _ in 0..4 {
        let answer = compare(&world).await;
        assert_eq!((&answer["checked"], &answer["cause"]), (&json!(20), &json!("request")), "{answer}");
    }
    let epochs = "select epoch from mesh.task_lease where task = 'reconcile'";
    assert_eq!(world.count(epochs).await, 1, "the task stays where it is");
    first.stop().await.unwrap();
    world.until_count(epochs, 2).await;
    assert_eq!(compare(&world).await["lost"], 0);
    second.stop().await.unwrap();
    assert_eq!(world.count(OWNERS).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_has_said_nothing_answers_as_well_and_a_wish_that_is_none_is_refused() {
    let world = World::start().await;
    let running = world.run(service()).await;
    let answer = compare(&world).await;
    assert_eq!((&answer["checked"], &answer["lost"]), (&json!(0), &json!(0)));
    let client = world.nats.admin().await.unwrap();
    let refused = wait::until("a refusal", PATIENCE, || async {
        let reply = client.request("mesh.ctl.probe.reconcile", "{\"runs\": 1}".into()).await;
        let headers = reply.map_err(|error| error.to_string())?.headers.ok_or("no headers")?;
        headers.get("Nats-Service-Error").map(ToString::to_string).ok_or_else(|| "no error".to_owned())
    });
    assert!(refused.await.unwrap().contains("the request cannot be read"));
    assert!(ask(&world, false).await.is_ok());
    running.stop().await.unwrap();
}
