//! A redrive runs the failed handler, in the order of the key, once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use envelope::Event;
use mesh::testing::Running;
use mesh::{Failure, Handled, Received, Subscriber, Tx};
use serde::{Deserialize, Serialize};
use serde_json::json;
use testkit::wait;
use uuid::Uuid;

use super::asking::Operator;
use super::{Fault, effects, opened, run_until_kept};
use crate::crash::Replica;
use crate::probe::{Act, AnswerOpened, Opened, service};
use crate::world::{PATIENCE, World};

/// Another subscriber of the same fact.
#[derive(Debug, Clone, Default)]
struct Witness(Arc<Mutex<u32>>);

impl Subscriber for Witness {
    type Event = Opened;
    const NAME: &'static str = "witness";

    async fn handle(&self, _: &mut Tx, _: Received<Opened>) -> Result<Handled, Failure> {
        *self.0.lock().unwrap() += 1;
        Ok(Handled::NoEffect("watching"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_failed_handler_runs_and_what_waited_behind_follows_in_the_order_of_the_stream() {
    let world = World::start().await;
    let (fault, witness) = (Fault::new(), Witness::default());
    let subscriber = fault.rejecting();
    let running = world.run(service().subscribe(subscriber.clone()).subscribe(witness.clone())).await;
    running.publish(&[opened(1, 1), opened(1, 2), opened(2, 7), opened(1, 3)]).await.unwrap();
    world.until_count("select count(*) from mesh.dead_letter", 3).await;
    world.until_count("select count(*) from mesh.inbox where no_effect is distinct from 'dead_letter'", 5).await;
    world.until_published().await;
    let (stored, seen) = (world.stored().await.len(), *witness.0.lock().unwrap());

    let operator = Operator::of(&world).await;
    let kept = operator.letters(json!({ "key": Uuid::from_u128(1) })).await;
    let reasons: Vec<_> = kept.iter().map(|letter| (&letter["reason"], &letter["attempts"])).collect();
    assert_eq!(
        reasons,
        [(&json!("behind"), &json!(0)), (&json!("behind"), &json!(0)), (&json!("rejected"), &json!(1))]
    );
    let shown = operator.ask("dead.show", json!({ "id": kept[2]["id"] })).await;
    assert_eq!((&shown["behind_count"], &shown["can_be_redriven"]), (&json!(2), &json!(true)));
    assert_eq!(shown["payload_text"], json!({ "id": Uuid::from_u128(1), "n": 1 }).to_string());

    fault.mend();
    let preview = operator.preview("redrive", json!({ "reason": "rejected" })).await;
    assert_eq!((&preview["eligible"], &preview["included"]), (&json!(3), &json!(2)), "{preview}");
    let done = operator.redrive(json!({ "reason": "rejected" }), 1).await;
    assert_eq!((&done["state"], &done["outcomes"]), (&json!("finished"), &json!({ "redriven": 3 })), "{done}");
    assert_eq!(effects(&world, 1).await, [1, 2, 3]);
    assert_eq!(effects(&world, 2).await, [7]);
    assert_eq!(world.count("select count(*) from mesh.dead_letter").await, 0);
    assert_eq!(world.count("select count(*) from mesh.inbox where no_effect = 'dead_letter'").await, 0);
    assert_eq!(*witness.0.lock().unwrap(), seen, "the other subscriber hears nothing of it");
    world.until_published().await;
    assert_eq!(world.stored().await.len(), stored + 3, "the answers and nothing else went to the stream");
    // A repeat of what was redriven is a repeat.
    let entries = subscriber.entries();
    let last = entries.last().unwrap();
    assert_eq!((last.n, last.attempt), (3, 1), "it waited, it was not tried");
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_in_the_middle_leaves_the_letter_kept_and_its_effect_happens_once() {
    let world = World::start().await;
    let fault = Fault::new();
    let running = run_until_kept(&world, &fault.rejecting(), &[opened(1, 1), opened(1, 2)], 2).await;
    running.stop().await.unwrap();

    let hanging = AnswerOpened::script(|_| Act::Hang);
    let doomed = Replica::start(service().subscribe(hanging.clone()), world.config()).await;
    let operator = Operator::of(&world).await;
    let preview = operator.preview("redrive", json!({})).await;
    operator.ask("dead.redrive", Operator::order(&preview, 1)).await;
    // Its effect, its answer, the claim and the removal of the letter are written and not committed.
    let entered = || async { if hanging.entries().len() == 1 { Ok(()) } else { Err("not yet") } };
    wait::until("the handler", PATIENCE, entered).await.unwrap();
    doomed.crash();
    assert_eq!(world.count("select count(*) from mesh.dead_letter").await, 2);
    assert_eq!(world.count("select count(*) from mesh.inbox where no_effect = 'dead_letter'").await, 2);

    // Whoever comes next finds that it was begun, does not run it blindly again, and goes on with the rest.
    let running = world.run(service().subscribe(AnswerOpened::always())).await;
    let ended = operator.until_ended(1).await;
    assert_eq!(ended["outcomes"], json!({ "failed": 1, "waits": 1 }), "{ended}");
    assert_eq!(ended["troubles"][0]["detail"], "the process ended in the middle of it");
    assert_eq!(world.count("select count(*) from effect").await, 0);
    assert_eq!(
        world.count("select jsonb_array_length(history)::bigint from mesh.dead_letter order by id limit 1").await,
        1
    );

    let done = operator.redrive(json!({}), 2).await;
    assert_eq!(done["outcomes"], json!({ "redriven": 2 }), "{done}");
    assert_eq!(effects(&world, 1).await, [1, 2]);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_with_the_same_letters_redrive_each_once() {
    const KEYS: u128 = 30;
    let world = World::start().await;
    let fault = Fault::new();
    let subscriber = fault.rejecting();
    let facts: Vec<Opened> = (1..=KEYS).flat_map(|key| [opened(key, 1), opened(key, 2)]).collect();
    let one = run_until_kept(&world, &subscriber, &facts, 60).await;
    let other = world.run(service().subscribe(subscriber.clone())).await;
    fault.mend();
    let entered = subscriber.entries().len();
    let operator = Operator::of(&world).await;
    let previews = [operator.preview("redrive", json!({})).await, operator.preview("redrive", json!({})).await];
    // Nothing begins before both are asked for.
    let mut gate = world.pool().begin().await.unwrap();
    sqlx::query("select id from mesh.dead_letter for update").execute(&mut *gate).await.unwrap();
    for (preview, operation) in previews.iter().zip(1..) {
        operator.ask("dead.redrive", Operator::order(preview, operation)).await;
    }
    world.until_count("select count(distinct owner) from mesh.operation where state = 'running'", 2).await;
    gate.rollback().await.unwrap();
    let mut redriven = 0;
    for operation in 1..=2 {
        let ended = operator.until_ended(operation).await;
        redriven += ended["outcomes"]["redriven"].as_i64().unwrap_or_default();
        assert!(ended["outcomes"]["failed"].is_null(), "{ended}");
    }
    world.until_count("select count(*) from effect", 60).await;
    assert!(redriven <= 60, "{redriven}");
    assert_eq!(subscriber.entries().len() - entered, 60, "no handler was entered twice for a letter");
    for key in 1..=KEYS {
        assert_eq!(effects(&world, key).await, [1, 2], "{key}");
    }
    one.stop().await.unwrap();
    other.stop().await.unwrap();
}

/// The same fact, as a later build knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OpenedAgain {
    id: Uuid,
    n: u32,
}

impl Event for OpenedAgain {
    const DOMAIN: &'static str = "probe";
    const NAME: &'static str = "opened";
    const MAJOR: u16 = 2;
    const REVISION: u16 = 0;

    fn key(&self) -> String {
        self.id.to_string()
    }
}

/// The subscriber of the later build, under its old name.
struct Later;

impl Subscriber for Later {
    type Event = OpenedAgain;
    const NAME: &'static str = AnswerOpened::NAME;

    async fn handle(&self, tx: &mut Tx, received: Received<OpenedAgain>) -> Result<Handled, Failure> {
        sqlx::query("insert into effect (event_id, key, n) values ($1, $2, $3)")
            .bind(received.metadata.id)
            .bind(received.event.id)
            .bind(i64::from(received.event.n))
            .execute(&mut **tx)
            .await?;
        Ok(Handled::Effect)
    }
}

#[tokio::test]
async fn a_version_from_the_future_is_handled_when_a_build_that_knows_it_has_come() {
    let world = World::start().await;
    let mut config = world.config();
    config.process.newer_version_wait = Duration::from_millis(1);
    let running = Running::start(service().subscribe(AnswerOpened::always()), config).await.unwrap();
    let event = OpenedAgain { id: Uuid::from_u128(1), n: 5 };
    world.publish(&mesh::testing::message(&event, Uuid::from_u128(9)).unwrap(), "newer").await;
    world.until_count("select count(*) from mesh.dead_letter where reason = 'newer_version'", 1).await;
    let operator = Operator::of(&world).await;
    // This build still cannot read it.
    let ended = operator.redrive(json!({}), 1).await;
    assert_eq!(ended["outcomes"], json!({ "failed": 1 }), "{ended}");
    assert_eq!(operator.letters(json!({ "state": "parked", "reason": "newer_version" })).await.len(), 1);
    running.stop().await.unwrap();

    let running = world.run(service().subscribe(Later)).await;
    let ended = operator.redrive(json!({ "reason": "newer_version" }), 2).await;
    assert_eq!(ended["outcomes"], json!({ "redriven": 1 }), "{ended}");
    assert_eq!(effects(&world, 1).await, [5]);
    running.stop().await.unwrap();
}
