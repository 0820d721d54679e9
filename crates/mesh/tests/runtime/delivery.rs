//! One message, one subscriber, one verdict, against a real database and without a broker.

mod attempts;
mod kept;
mod outages;
mod statements;

use mesh::testing::{TestBed, message};
use testkit::TestDatabase;
use uuid::Uuid;

use crate::probe::{AnswerOpened, Opened, service};

/// A replica of the service.
fn bed(database: &TestDatabase, subscriber: &AnswerOpened) -> TestBed {
    TestBed::new(service().subscribe(subscriber.clone()), database.pool().clone())
}

/// Fact `n` of a key, under an id of its own.
fn fact(key: u128, n: u32) -> envelope::RawMessage {
    let id = Uuid::from_u128(key << 32 | u128::from(n));
    message(&Opened { id: Uuid::from_u128(key), n }, id).unwrap()
}
