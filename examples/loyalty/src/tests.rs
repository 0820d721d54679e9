use std::path::Path;
use std::time::Duration;

use envelope::{Event, RawMessage};
use events::{Currency, Money, PaymentProcessed, RefundIssued, RefundReason};
use mesh::config::Config;
use mesh::testing::{Declared, Running, TestBed, conformance, message};
use mesh::{Subscriber, Verdict};
use serde_json::Value;
use testkit::{Nats, NatsOptions, NatsUser, TestDatabase, wait};
use uuid::Uuid;

use crate::{AwardPoints, TakeBackPoints, service};

const DECLARED: Declared =
    Declared { catalogue: "contracts/catalogue/loyalty.json", durable: "nats/consumers/loyalty.json" };
const ORDER: Uuid = Uuid::from_u128(0x0d);
const CUSTOMER: Uuid = Uuid::from_u128(0xc0);

async fn database() -> TestDatabase {
    let prepare = |url: String| async move { mesh::testing::migrate(&service(), &url).await };
    testkit::database("loyalty", prepare).await.unwrap()
}

async fn bed() -> (TestDatabase, TestBed) {
    let database = database().await;
    let bed = TestBed::new(service(), database.pool().clone());
    (database, bed)
}

fn amount() -> Money {
    Money::new(1_999, Currency::parse("EUR").unwrap()).unwrap()
}

fn paid() -> PaymentProcessed {
    PaymentProcessed { order_id: ORDER, payment_id: Uuid::from_u128(1), customer_id: CUSTOMER, amount: amount() }
}

fn refunded() -> RefundIssued {
    let (payment_id, refund_id) = (Uuid::from_u128(1), Uuid::from_u128(2));
    RefundIssued { order_id: ORDER, payment_id, refund_id, amount: amount(), reason: RefundReason::OrderCancelled }
}

async fn points(database: &TestDatabase) -> Option<i64> {
    let balance = sqlx::query_scalar("select points from balance where customer_id = $1").bind(CUSTOMER);
    balance.fetch_optional(database.pool()).await.unwrap()
}

#[tokio::test]
async fn both_subscribers_conform() {
    conformance(AwardPoints::NAME, &DECLARED, bed, &[paid()]).await.unwrap();
    conformance(TakeBackPoints::NAME, &DECLARED, bed, &[refunded()]).await.unwrap();
}

#[tokio::test]
async fn a_payment_earns_a_point_for_each_whole_unit() {
    let (database, bed) = bed().await;
    let verdicts = bed.deliver(&paid()).await.unwrap();
    assert_eq!(verdicts, [("award-points", Verdict::Handled)]);
    assert_eq!(points(&database).await, Some(19));
}

#[tokio::test]
async fn a_refund_leaves_no_points_whichever_is_heard_first() {
    for refund_first in [false, true] {
        let (database, bed) = bed().await;
        if refund_first {
            bed.deliver(&refunded()).await.unwrap();
        }
        bed.deliver(&paid()).await.unwrap();
        if !refund_first {
            bed.deliver(&refunded()).await.unwrap();
        }
        assert_eq!(points(&database).await, None, "refund first: {refund_first}");
    }
}

/// The declared user, which may do what `nats/users.json` says and nothing else.
fn user() -> NatsUser {
    let users: Value = serde_json::from_str(include_str!("../nats/users.json")).unwrap();
    let user = &users["users"][0];
    let subjects = |kind: &str| -> Vec<String> {
        let allowed = user["permissions"][kind]["allow"].as_array().unwrap();
        allowed.iter().map(|subject| subject.as_str().unwrap().to_owned()).collect()
    };
    NatsUser::new("loyalty")
        .publish(subjects("publish"))
        .subscribe(subjects("subscribe"))
        .inbox_prefix(user["inbox_prefix"].as_str().unwrap())
        .allow_responses()
}

/// A server with the stream of the shop and the durable of this service.
async fn nats() -> Nats {
    let nats = Nats::start(NatsOptions::new().users([user()])).await.unwrap();
    let declared = testkit::scratch::dir("declared").unwrap();
    let copy = |from: &Path, to: &str| std::fs::copy(from, declared.path().join(to)).unwrap();
    std::fs::create_dir(declared.path().join("consumers")).unwrap();
    copy(Path::new("../../nats/stream.json"), "stream.json");
    copy(Path::new(DECLARED.durable), "consumers/loyalty.json");
    nats.apply(declared.path()).await.unwrap();
    nats
}

async fn publish<E: Event>(nats: &Nats, fact: &E) {
    let RawMessage { subject, headers, body } = message(fact, Uuid::from_u128(9)).unwrap();
    let mut list = async_nats::HeaderMap::new();
    for (name, value) in &headers {
        list.append(name.as_str(), value.as_str());
    }
    let jetstream = async_nats::jetstream::new(nats.admin().await.unwrap());
    jetstream.publish_with_headers(subject, list, body.into()).await.unwrap().await.unwrap();
}

/// With the least permissions, a fact of the stream reaches the table.
#[tokio::test]
async fn a_fact_of_the_stream_is_heard_with_the_declared_permissions() {
    let (nats, database) = (nats().await, database().await);
    let mut config = Config::new(database.url().parse().unwrap(), nats.url());
    config.process.listen = "127.0.0.1:0".parse().unwrap();
    config.process.nats_creds = Some(nats.creds_file("loyalty").unwrap().into());
    let running = Running::start(service(), config).await.unwrap();
    publish(&nats, &paid()).await;
    wait::until("points", Duration::from_secs(20), || async {
        match points(&database).await {
            Some(19) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
    .unwrap();
    running.stop().await.unwrap();
}
