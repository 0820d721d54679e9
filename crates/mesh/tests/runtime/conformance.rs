//! The conformance suite lets through what keeps its promises, and names the promise that is broken.

mod broken;

use std::sync::Arc;

use mesh::testing::{ConformanceError, Declared, Rule, TestBed, conformance};
use mesh::{BatchSubscriber, Service, Subscriber};
use testkit::TestDatabase;
use uuid::Uuid;

use crate::probe::{AnswerOpened, Opened, service};
use crate::world::database;
use broken::{Broken, BrokenName, CountOpened, Fault, Silent, Undeclared, Unfiltered};

const DECLARED: Declared = Declared {
    catalogue: "tests/runtime/conformance/catalogue.json",
    durable: "tests/runtime/conformance/durable.json",
};

/// Two keys, and a second fact of the first.
fn samples() -> [Opened; 3] {
    [(1, 10), (2, 20), (1, 11)].map(|(key, n)| Opened { id: Uuid::from_u128(key), n })
}

async fn check(name: &str, with: impl Fn(Service, &TestDatabase) -> Service) -> Result<(), ConformanceError> {
    let bed = async || {
        let database = database().await;
        let bed = TestBed::new(with(service(), &database), database.pool().clone());
        (database, bed)
    };
    conformance(name, &DECLARED, bed, &samples()).await
}

/// The rule that a subscriber breaks, and what the suite says.
async fn broken(fault: impl Fn(&TestDatabase) -> Fault) -> (Option<Rule>, String) {
    let error = check("broken", |service, database| service.subscribe(Broken(fault(database)))).await.unwrap_err();
    (error.rule(), error.to_string())
}

#[tokio::test]
async fn a_subscriber_that_keeps_its_promises_conforms() {
    check(AnswerOpened::NAME, |service, _| service.subscribe(AnswerOpened::always())).await.unwrap();
    check(CountOpened::NAME, |service, _| service.subscribe_batch(CountOpened { derives: true })).await.unwrap();
    let once = AnswerOpened::always().policy(|policy| policy.attempts_max = 1);
    check(AnswerOpened::NAME, |service, _| service.subscribe(once.clone())).await.unwrap();
}

#[tokio::test]
async fn an_id_that_is_drawn_is_caught() {
    let (rule, text) = broken(|_| Fault::DrawnId).await;
    assert_eq!(rule, Some(Rule::Derived), "{text}");
}

#[tokio::test]
async fn an_effect_that_depends_on_the_memory_of_the_process_is_caught() {
    let counter = Arc::default();
    let (rule, text) = broken(|_| Fault::Memory(Arc::clone(&counter))).await;
    assert_eq!(rule, Some(Rule::Derived), "{text}");
}

#[tokio::test]
async fn a_write_outside_the_transaction_is_caught() {
    let (rule, text) = broken(|database| Fault::OwnConnection(database.pool().clone())).await;
    assert_eq!(rule, Some(Rule::Whole), "{text}");
    assert!(text.contains("left behind"), "{text}");
}

#[tokio::test]
async fn an_effect_that_is_committed_ahead_is_caught() {
    let (rule, text) = broken(|_| Fault::EarlyCommit).await;
    assert_eq!(rule, Some(Rule::OneTransaction), "{text}");
    assert!(text.contains("commit; begin"), "{text}");
}

#[tokio::test]
async fn an_error_that_is_taken_for_success_is_caught() {
    let (rule, text) = broken(|_| Fault::SwallowedError).await;
    assert_eq!(rule, Some(Rule::Whole), "{text}");
    assert!(text.contains("insert into effect"), "{text}");
}

#[tokio::test]
async fn an_error_that_is_taken_for_a_reason_to_give_up_is_caught() {
    let (rule, text) = broken(|_| Fault::RejectedError).await;
    assert_eq!(rule, Some(Rule::Whole), "{text}");
    assert!(text.contains("Dead(Rejected)"), "{text}");
}

#[tokio::test]
async fn samples_that_change_nothing_are_not_enough() {
    let (rule, text) = broken(|_| Fault::Idle).await;
    assert_eq!(rule, Some(Rule::Handled), "{text}");
}

#[tokio::test]
async fn ids_that_a_batch_has_in_common_are_caught() {
    let error = check(CountOpened::NAME, |service, _| service.subscribe_batch(CountOpened { derives: false }));
    let error = error.await.unwrap_err();
    assert_eq!(error.rule(), Some(Rule::Shared), "{error}");
}

#[tokio::test]
async fn a_name_or_a_declaration_that_is_wrong_is_caught() {
    let rule = async |name: &str, with: fn(Service) -> Service| {
        check(name, |service, _| with(service)).await.unwrap_err().rule()
    };
    assert_eq!(rule(BrokenName::NAME, |service| service.subscribe(BrokenName)).await, Some(Rule::Name));
    let twice = |service: Service| service.subscribe(Silent).subscribe(Silent);
    assert_eq!(rule(Silent::NAME, twice).await, Some(Rule::Name));
    assert_eq!(rule(Silent::NAME, |service| service.subscribe(Silent)).await, Some(Rule::Declared), "it says a fact");
    assert_eq!(rule(Unfiltered::NAME, |service| service.subscribe(Unfiltered)).await, Some(Rule::Declared), "v2");
    assert_eq!(rule(Undeclared::NAME, |service| service.subscribe(Undeclared)).await, Some(Rule::Declared));
    assert_eq!(rule("nobody", |service| service).await, None, "there is no such subscriber");
}
