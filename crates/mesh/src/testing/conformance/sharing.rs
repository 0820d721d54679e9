//! A backlog is handled in shared transactions: the outcome has to be the same.

use std::collections::HashSet;

use envelope::RawMessage;

use super::repeats::Handling;
use super::trial::Trial;
use super::{Outcome, Rule};

pub(super) async fn check<G>(trial: &Trial<G>, messages: &[RawMessage], handled: &Handling) -> Outcome {
    let mut verdicts = Vec::new();
    for group in groups(trial, messages) {
        verdicts.extend(trial.deliver_together(&group).await);
    }
    for ((shared, alone), n) in verdicts.iter().zip(&handled.verdicts).zip(1..) {
        if shared.as_ref() != Some(alone) {
            let shared = shared.as_ref().map_or_else(|| "nothing".to_owned(), |verdict| format!("{verdict:?}"));
            return trial.broken(Rule::Shared, format!("sample {n} ended as {shared} instead of {alone:?}"));
        }
    }
    match handled.effect.difference_anew(&trial.snapshot().await?) {
        Some(difference) => trial.broken(Rule::Shared, difference),
        None => Ok(()),
    }
}

/// In order, and no key twice in one group, as the consumer does it.
fn groups<'a, G>(trial: &Trial<G>, messages: &'a [RawMessage]) -> Vec<Vec<&'a RawMessage>> {
    let mut groups: Vec<Vec<&RawMessage>> = vec![Vec::new()];
    let mut keys = HashSet::new();
    for message in messages {
        if !keys.insert(trial.incoming(message, false).key().to_owned()) {
            keys.clear();
            keys.insert(trial.incoming(message, false).key().to_owned());
            groups.push(Vec::new());
        }
        if let Some(group) = groups.last_mut() {
            group.push(message);
        }
    }
    groups
}
