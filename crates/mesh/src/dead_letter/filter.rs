//! Which letters are meant.

use serde::Deserialize;
use uuid::Uuid;

/// Letters that agree with everything that is given. Without a state: those that wait, whoever discarded the others; letters
/// named by id are meant in any state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Filter {
    /// These and no others.
    pub(crate) ids: Option<Vec<i64>>,
    /// The subscriber that did not settle the fact.
    pub(crate) subscriber: Option<String>,
    /// The code of the reason: `rejected`, `attempts_exhausted`, `behind`, `newer_version`, `bad_body` ...
    pub(crate) reason: Option<String>,
    /// In which state.
    pub(crate) state: Option<StateFilter>,
    /// The type of the fact, with its major: `orders.order_created.v1`.
    pub(crate) event_type: Option<String>,
    /// The key of the fact.
    pub(crate) key: Option<String>,
    /// The flow of the fact.
    pub(crate) flow: Option<Uuid>,
    /// The fact.
    pub(crate) event_id: Option<Uuid>,
}

/// States that a question may be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StateFilter {
    Parked,
    Dead,
    Discarded,
    All,
}

impl Filter {
    /// The states as the table knows them.
    pub(super) fn states(&self) -> Vec<String> {
        let states: &[&str] = match (self.state, &self.ids) {
            (Some(StateFilter::Parked), _) => &["parked"],
            (Some(StateFilter::Dead), _) => &["dead"],
            (Some(StateFilter::Discarded), _) => &["discarded"],
            (Some(StateFilter::All), _) | (None, Some(_)) => &["parked", "dead", "discarded"],
            (None, None) => &["parked", "dead"],
        };
        states.iter().map(|state| (*state).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_discarded_is_meant_only_when_it_is_named() {
        assert_eq!(Filter::default().states(), ["parked", "dead"]);
        let named = Filter { ids: Some(vec![1]), ..Filter::default() };
        assert_eq!(named.states(), ["parked", "dead", "discarded"]);
        let discarded = Filter { state: Some(StateFilter::Discarded), ids: Some(vec![1]), ..Filter::default() };
        assert_eq!(discarded.states(), ["discarded"]);
    }
}
