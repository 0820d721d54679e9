//! Says whether what is left after a run keeps the promises, whatever the run did.
//!
//! It shares no code with the services, the runtime or the contracts (a test holds that): it reads the databases with its
//! own SQL, the stream with its own parsing, the catalogue as data, and compares them with what the clients asked and were
//! told. A check that looked at nothing has failed.

mod catalogue;
mod causality;
mod collect;
mod ends;
mod evidence;
mod money;
mod outbox;
mod record;
mod report;
mod sequence;
mod settlement;
mod stock;
mod stream;

pub use catalogue::Reaction;
pub use collect::{Sources, collect};
pub use evidence::{
    DeadLetter, Evidence, LedgerEntry, MeshTables, OrderRow, PaymentRow, ReservationRow, SentRow, Shown, StockRow,
};
pub use record::{Asked, Expected, Record};
pub use report::{Check, Report};
pub use stream::Stored;

/// Runs every check over what was collected.
#[must_use]
pub fn check(evidence: &Evidence, record: &Record, expected: &Expected) -> Report {
    let facts = stream::Facts::of(&evidence.stream, expected);
    Report::new(vec![
        money::check(evidence, record, &facts),
        stock::check(evidence, record, &facts),
        ends::check(evidence, record, &facts),
        outbox::check(evidence, &facts),
        sequence::check(evidence, &facts),
        causality::check(&facts),
        settlement::check(evidence, expected),
    ])
}

#[cfg(test)]
mod tests;
