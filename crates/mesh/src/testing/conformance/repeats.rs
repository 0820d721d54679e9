//! A fact is handled, and handled once.

use envelope::RawMessage;

use super::snapshot::Snapshot;
use super::trial::{Trial, is_handled};
use super::{Outcome, Rule};
use crate::delivery::Verdict;

/// The samples handled in order, one transaction each.
pub(super) struct Handling {
    pub(super) verdicts: Vec<Verdict>,
    /// What the service holds afterwards.
    pub(super) effect: Snapshot,
    /// The types of the facts that were said.
    pub(super) said: Vec<String>,
    /// How many statements each handling sent, the commit included.
    pub(super) statements: Vec<usize>,
}

pub(super) async fn check<G>(trial: &Trial<G>, messages: &[RawMessage]) -> Outcome<Handling> {
    let before = trial.snapshot().await?;
    let (mut verdicts, mut statements) = (Vec::new(), Vec::new());
    for (message, n) in messages.iter().zip(1..) {
        trial.wire.watch();
        let verdict = trial.deliver(message, false).await;
        let sent = trial.wire.take_statements();
        if !is_handled(&verdict) {
            return trial.broken(Rule::Handled, format!("sample {n} ended as {verdict:?}"));
        }
        let inner = sent.len().saturating_sub(1);
        if let Some(statement) = sent.iter().take(inner).find(|statement| moves_the_transaction(statement)) {
            return trial.broken(Rule::OneTransaction, format!("the handler sent `{statement}`"));
        }
        verdicts.push(verdict);
        statements.push(sent.len());
    }
    let effect = trial.snapshot().await?;
    if effect == before {
        return trial.broken(Rule::Handled, "the samples change nothing, so they show nothing");
    }
    again(trial, messages, &effect).await?;
    let said = effect.said_since(&before);
    Ok(Handling { verdicts, effect, said, statements })
}

async fn again<G>(trial: &Trial<G>, messages: &[RawMessage], effect: &Snapshot) -> Outcome {
    for (message, n) in messages.iter().zip(1..) {
        let verdict = trial.deliver(message, true).await;
        if verdict != Verdict::Duplicate {
            return trial.broken(Rule::Once, format!("sample {n} came again and ended as {verdict:?}"));
        }
    }
    match effect.difference(&trial.snapshot().await?) {
        Some(difference) => trial.broken(Rule::Once, difference),
        None => Ok(()),
    }
}

/// Whether a statement begins or ends a transaction. A savepoint does not, nor does a block of code.
fn moves_the_transaction(statement: &str) -> bool {
    let parts = statement.split(';').take_while(|part| !part.contains('$'));
    parts.into_iter().any(|part| {
        let part = part.to_lowercase();
        let mut words = part.split_whitespace();
        match words.next() {
            Some("commit" | "end" | "abort" | "begin" | "start") => true,
            Some("rollback") => !words.any(|word| word == "to"),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::moves_the_transaction;

    #[test]
    fn what_begins_or_ends_a_transaction_is_told_from_savepoints_and_blocks() {
        for statement in ["COMMIT", "commit; begin", "end", "ROLLBACK", "begin isolation level serializable", "abort"] {
            assert!(moves_the_transaction(statement), "{statement}");
        }
        let inside = [
            "savepoint a",
            "release savepoint a",
            "rollback to savepoint a",
            "ROLLBACK TO a",
            "do $$ begin perform 1; end $$",
            "insert into ends (end) values (1)",
        ];
        for statement in inside {
            assert!(!moves_the_transaction(statement), "{statement}");
        }
    }
}
