//! What every subscriber of the mesh has to keep, in one line of its test.
//!
//! The suite runs a subscriber on the production delivery path and a real database, with a wire of its own between the
//! two: it fails the statements of a handling one after the other, and looks at what each failure leaves behind.

mod declared;
mod faults;
mod repeats;
mod sharing;
mod snapshot;
mod trial;
mod unreadable;
mod wire;

use std::fmt;

use envelope::{Event, RawMessage};
use uuid::Uuid;

pub use declared::Declared;

use super::{TestBed, message};
use trial::Trial;

/// What a subscriber has to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rule {
    /// The name is durable data.
    #[error("its name is kebab-case and the only one of its kind in the service")]
    Name,
    /// Tools and permissions go by what is declared.
    #[error("the catalogue and the durable declare what it hears and says")]
    Declared,
    /// A sample that changes nothing shows nothing.
    #[error("it handles the samples, and they change something")]
    Handled,
    /// Claim, effect and facts are one commit.
    #[error("the transaction is the runtime's: the handler begins and ends none")]
    OneTransaction,
    /// Deliveries repeat, effects do not.
    #[error("a fact that comes again changes nothing")]
    Once,
    /// Nothing is half done, and nothing takes a failure for success.
    #[error("a handling whose statement fails leaves nothing behind and uses up its attempt")]
    Whole,
    /// Redelivery and replay say the same facts under the same ids.
    #[error("handled anew, a fact leads to the same rows and the same facts")]
    Derived,
    /// A backlog is handled in shared transactions.
    #[error("in a shared transaction a fact leads to the same rows and the same facts")]
    Shared,
    /// Nothing is dropped.
    #[error("what cannot be read is kept with its reason and its bytes")]
    Kept,
}

/// Why a subscriber does not pass. Its `Debug` form is its `Display` form, which is what `unwrap` in a test prints.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ConformanceError {
    /// The subscriber breaks a rule.
    #[error("`{subscriber}` does not conform\n  rule: {rule}\n  seen: {seen}")]
    Broken {
        /// The subscriber.
        subscriber: String,
        /// The first rule that it breaks.
        rule: Rule,
        /// What happened instead.
        seen: String,
    },
    /// The suite could not go on: the database failed, a file is missing, a sample cannot be encoded.
    #[error("the conformance suite cannot go on: {0:#}")]
    Suite(#[from] anyhow::Error),
}

impl ConformanceError {
    /// The rule that is broken, if that is what it is about.
    #[must_use]
    pub fn rule(&self) -> Option<Rule> {
        match self {
            Self::Broken { rule, .. } => Some(*rule),
            Self::Suite(_) => None,
        }
    }
}

impl fmt::Debug for ConformanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<sqlx::Error> for ConformanceError {
    fn from(error: sqlx::Error) -> Self {
        Self::Suite(error.into())
    }
}

type Outcome<T = ()> = Result<T, ConformanceError>;

/// Holds a subscriber to every [`Rule`].
///
/// `bed` makes the service over a database of its own, prepared so that the samples mean something, and whatever has to
/// live as long as that database; it is called several times and has to prepare the same each time. `samples` are
/// delivered in order. Compared are all tables of the service and its outbox; times and numbers that the database draws
/// are left out where two databases are compared.
///
/// ```no_run
/// # use mesh::testing::{Declared, TestBed, conformance};
/// # async fn example<E: envelope::Event, G>(bed: impl AsyncFn() -> (G, TestBed), created: E) {
/// const DECLARED: Declared = Declared {
///     catalogue: "../../events/catalogue/payments.json",
///     durable: "../../nats/consumers/payments.json",
/// };
///
/// conformance("charge-customer", &DECLARED, bed, &[created]).await.unwrap();
/// # }
/// ```
///
/// # Errors
/// The first rule that is broken, or why the suite cannot go on.
pub async fn conformance<E: Event, G>(
    subscriber: &str,
    declared: &Declared,
    bed: impl AsyncFn() -> (G, TestBed),
    samples: &[E],
) -> Result<(), ConformanceError> {
    let messages = messages(samples)?;
    let alone = Trial::begin(bed().await, subscriber).await?;
    declared::check(&alone, declared)?;
    let handled = repeats::check(&alone, &messages).await?;
    declared::check_said(&alone, declared, &handled.said)?;
    unreadable::check(&alone, &messages).await?;
    drop(alone);
    let failing = Trial::begin(bed().await, subscriber).await?;
    faults::check(&failing, &messages, &handled).await?;
    drop(failing);
    let shared = Trial::begin(bed().await, subscriber).await?;
    sharing::check(&shared, &messages, &handled).await
}

/// The samples as they come from the stream, under ids that are the same in every run.
fn messages<E: Event>(samples: &[E]) -> anyhow::Result<Vec<RawMessage>> {
    anyhow::ensure!(!samples.is_empty(), "there is no sample");
    samples.iter().zip(1_u128..).map(|(sample, n)| message(sample, Uuid::from_u128(n << 64 | 0x5a))).collect()
}
