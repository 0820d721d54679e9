//! Many deliveries in one transaction: what fails takes only itself back, and nobody can tell that there were others.

use std::collections::HashSet;
use std::time::Duration;

use envelope::ids;
use mesh::testing::Running;
use mesh::{BatchSubscriber, Failure, Handled, Policy, Received, Service, Tx};
use uuid::Uuid;

use crate::probe::{Act, AnswerOpened, Answered, Opened, service};
use crate::world::World;

const FACTS: u32 = 200;

/// One fact for each of many keys.
fn facts() -> Vec<Opened> {
    (1..=FACTS).map(|n| Opened { id: Uuid::from_u128(n.into()), n }).collect()
}

/// The facts wait on the stream when the service starts, which delivers one transaction at a time.
async fn run(world: &World, service: Service) -> Running {
    let publisher = world.run(crate::probe::service()).await;
    publisher.publish(&facts()).await.unwrap();
    world.until_published().await;
    publisher.stop().await.unwrap();
    let mut config = world.config();
    config.process.concurrency = 1;
    Running::start(service, config).await.unwrap()
}

/// How many transactions settled the facts.
async fn transactions(world: &World) -> i64 {
    world.count("select count(distinct xmin::text) from mesh.inbox where subscriber like 'answer%'").await
}

/// Every fact has its effect once, and its answer under the id that it would have alone.
async fn assert_settled(world: &World, subscriber: &str, keys: impl Iterator<Item = u32>) {
    world.until_published().await;
    let stored = world.stored().await;
    let opened: Vec<_> = stored.iter().filter(|message| message.header("ce-type") == "probe.opened.v1").collect();
    let answers: HashSet<Uuid> = stored
        .iter()
        .filter(|message| message.header("ce-type") == "probe.answered.v1")
        .map(|message| message.header("ce-id").parse().unwrap())
        .collect();
    let keys: HashSet<String> = keys.map(|n| Uuid::from_u128(n.into()).to_string()).collect();
    let expected: HashSet<Uuid> = opened
        .iter()
        .filter(|message| keys.contains(message.header("ce-subject")))
        .map(|message| ids::derive(message.header("ce-id").parse().unwrap(), &format!("probe/{subscriber}"), 0))
        .collect();
    assert_eq!(expected.len(), keys.len());
    assert_eq!(answers, expected);
    let effects = i64::try_from(keys.len()).unwrap();
    assert_eq!(world.count("select count(*) from effect").await, effects);
    assert_eq!(world.count("select count(distinct event_id) from effect").await, effects);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_shares_transactions() {
    let world = World::start().await;
    let running = run(&world, service().subscribe(AnswerOpened::always())).await;
    world.until_count("select count(*) from effect", FACTS.into()).await;
    let transactions = transactions(&world).await;
    assert!(transactions <= i64::from(FACTS) / 3, "{transactions} transactions");
    assert_settled(&world, "answer-opened", 1..=FACTS).await;
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_fails_takes_back_its_own_part_only() {
    let world = World::start().await;
    // Every tenth fails at first, rejects for ever, or swallows the error of a statement.
    let subscriber = AnswerOpened::script(|received| match (received.event.n % 10, received.attempt) {
        (3, 1) => Act::Fail("at first"),
        (5, _) => Act::Reject,
        (7, _) => Act::SwallowError,
        _ => Act::Answer,
    });
    let running = run(&world, service().subscribe(subscriber.clone())).await;
    world.until_count("select count(*) from effect", i64::from(FACTS) * 8 / 10).await;
    world.until_count("select count(*) from mesh.dead_letter", i64::from(FACTS) * 2 / 10).await;
    assert_settled(&world, "answer-opened", (1..=FACTS).filter(|n| n % 10 != 5 && n % 10 != 7)).await;
    let first = |n: u32| subscriber.entries().iter().filter(|entry| entry.n == n && entry.attempt == 1).count();
    assert!((1..=2).contains(&first(13)), "perhaps with others, then alone as the first attempt");
    assert_eq!(subscriber.entries().iter().filter(|entry| entry.n % 10 == 1 && entry.attempt > 1).count(), 0);
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_panics_or_hangs_ends_the_company_and_not_the_others() {
    let world = World::start().await;
    let subscriber = AnswerOpened::script(|received| match received.event.n {
        20 => Act::Panic,
        60 => Act::Hang,
        _ => Act::Answer,
    })
    .policy(|policy| policy.timeout = Duration::from_millis(300));
    let running = run(&world, service().subscribe(subscriber.clone())).await;
    world.until_count("select count(*) from effect", i64::from(FACTS) - 2).await;
    world.until_count("select count(*) from mesh.dead_letter", 1).await;
    let entries = subscriber.entries();
    let counted = entries.iter().filter(|entry| entry.attempt > 1).map(|entry| entry.n).collect::<HashSet<_>>();
    assert_eq!(counted, HashSet::from([20]), "nobody else used up an attempt");
    running.stop().await.unwrap();
}

/// Answers many by one statement.
#[derive(Clone, Copy)]
struct AnswerMany {
    /// A batch that holds it fails while others are in it.
    shy: Option<u32>,
}

impl BatchSubscriber for AnswerMany {
    type Event = Opened;
    const NAME: &'static str = "answer-many";

    fn policy(&self) -> Policy {
        Policy { attempts_max: 2, ..Policy::default() }
    }

    async fn handle(&self, tx: &mut Tx, batch: &[Received<Opened>]) -> Result<Vec<Handled>, Failure> {
        let events: Vec<Uuid> = batch.iter().map(|received| received.metadata.id).collect();
        let keys: Vec<Uuid> = batch.iter().map(|received| received.event.id).collect();
        let numbers: Vec<i64> = batch.iter().map(|received| received.event.n.into()).collect();
        sqlx::query("insert into effect (event_id, key, n) select * from unnest($1::uuid[], $2::uuid[], $3::bigint[])")
            .bind(events)
            .bind(keys)
            .bind(numbers)
            .execute(&mut **tx)
            .await?;
        for received in batch {
            let Opened { id, n } = received.event;
            tx.publish_for(received, &Answered { id, n })?;
        }
        if batch.len() > 1 && batch.iter().any(|received| Some(received.event.n) == self.shy) {
            return Err(anyhow::anyhow!("not in company").into());
        }
        Ok(vec![Handled::Effect; batch.len()])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_subscriber_takes_many_facts_by_one_call() {
    let world = World::start().await;
    let running = run(&world, service().subscribe_batch(AnswerMany { shy: None })).await;
    world.until_count("select count(*) from effect", FACTS.into()).await;
    let transactions = transactions(&world).await;
    assert!(transactions <= i64::from(FACTS) / 3, "{transactions} transactions");
    assert_settled(&world, "answer-many", 1..=FACTS).await;
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_fails_comes_again_one_by_one_and_uses_up_no_attempt() {
    let world = World::start().await;
    let running = run(&world, service().subscribe_batch(AnswerMany { shy: Some(100) })).await;
    world.until_count("select count(*) from effect", FACTS.into()).await;
    assert_eq!(world.count("select count(*) from mesh.delivery_attempt").await, 0);
    assert_settled(&world, "answer-many", 1..=FACTS).await;
    running.stop().await.unwrap();
}
