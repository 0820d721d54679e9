//! A subscriber's name, and what the service's files say about it.

use std::fs;

use anyhow::Context;
use envelope::EventType;
use serde::Deserialize;

use super::trial::Trial;
use super::{Outcome, Rule};

/// Where a service declares what it hears and says. Paths are relative to the folder of the package under test.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// The service's entry in the catalogue.
    pub catalogue: &'static str,
    /// Its durable consumer, in the form of the JetStream API.
    pub durable: &'static str,
}

#[derive(Deserialize)]
struct Entry {
    service: String,
    #[serde(default)]
    reactions: Vec<Reaction>,
}

#[derive(Deserialize)]
struct Reaction {
    subscriber: String,
    on: String,
    majors: Vec<u16>,
    #[serde(default)]
    emits: Vec<String>,
}

#[derive(Deserialize)]
struct Durable {
    durable_name: String,
    #[serde(default)]
    filter_subject: String,
    #[serde(default)]
    filter_subjects: Vec<String>,
}

pub(super) fn check<G>(trial: &Trial<G>, declared: &Declared) -> Outcome {
    let (name, hears) = (trial.name(), trial.subscriber.event_type());
    if !is_kebab_case(name) {
        return trial.broken(Rule::Name, format!("{name:?} is not kebab-case"));
    }
    if trial.bed.registry.iter().filter(|other| other.name() == name).count() != 1 {
        return trial.broken(Rule::Name, "another subscriber of the service has the name too");
    }
    let service = trial.bed.mesh.context().name;
    let entry: Entry = read(declared.catalogue)?;
    if entry.service != service {
        let seen = format!("{} is about {}, not about {service}", declared.catalogue, entry.service);
        return trial.broken(Rule::Declared, seen);
    }
    let Some(majors) = majors(&entry, name, &hears) else {
        let seen = format!("{} has no reaction `{name}` on {hears}", declared.catalogue);
        return trial.broken(Rule::Declared, seen);
    };
    let durable: Durable = read(declared.durable)?;
    if durable.durable_name != service {
        let seen = format!("{} is the durable {:?}, not {service}", declared.durable, durable.durable_name);
        return trial.broken(Rule::Declared, seen);
    }
    let filters = || durable.filter_subjects.iter().chain([&durable.filter_subject]);
    for major in majors {
        let subjects = format!("evt.{}.v{major}.*", hears.fact());
        if !filters().any(|filter| covers(filter, &subjects)) {
            return trial
                .broken(Rule::Declared, format!("no filter of {} lets `{subjects}` through", declared.durable));
        }
    }
    Ok(())
}

/// What was said is what the catalogue says may be said.
pub(super) fn check_said<G>(trial: &Trial<G>, declared: &Declared, said: &[String]) -> Outcome {
    let entry: Entry = read(declared.catalogue)?;
    let reactions = || entry.reactions.iter().filter(|reaction| reaction.subscriber == trial.name());
    let undeclared = said.iter().find(|said| {
        let fact = said.rsplit_once(".v").map_or(said.as_str(), |(fact, _)| fact);
        !reactions().any(|reaction| reaction.emits.iter().any(|emitted| emitted == fact))
    });
    match undeclared {
        Some(said) => {
            let seen = format!("it says {said}, and {} does not say that it may", declared.catalogue);
            trial.broken(Rule::Declared, seen)
        }
        None => Ok(()),
    }
}

fn read<T: for<'de> Deserialize<'de>>(path: &str) -> anyhow::Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("{path} cannot be read"))?;
    serde_json::from_str(&text).with_context(|| format!("{path} has another form"))
}

/// The majors that the reaction reads, if it is declared with the one that the code is written for.
fn majors(entry: &Entry, name: &str, hears: &EventType) -> Option<Vec<u16>> {
    let reaction = entry.reactions.iter().find(|reaction| reaction.subscriber == name)?;
    (reaction.on == hears.fact() && reaction.majors.contains(&hears.major)).then(|| reaction.majors.clone())
}

/// Words of small letters and digits, joined by single hyphens.
fn is_kebab_case(name: &str) -> bool {
    let word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.split('-').all(word)
}

/// Whether a filter lets through whatever `subjects` stands for; in both, `*` is any one token and `>` the rest.
fn covers(filter: &str, subjects: &str) -> bool {
    let mut wanted = subjects.split('.');
    for token in filter.split('.') {
        match (token, wanted.next()) {
            (">", Some(_)) => return true,
            ("*", Some(subject)) if subject != ">" => {}
            (token, Some(subject)) if token == subject => {}
            _ => return false,
        }
    }
    wanted.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::{covers, is_kebab_case};

    #[test]
    fn names_are_words_with_single_hyphens() {
        for name in ["charge-customer", "award-points-v2", "a"] {
            assert!(is_kebab_case(name), "{name}");
        }
        for name in ["", "Charge-Customer", "charge_customer", "charge--customer", "-charge", "charge-", "2-charge"] {
            assert!(!is_kebab_case(name), "{name}");
        }
    }

    #[test]
    fn a_filter_covers_what_it_lets_through_as_a_whole() {
        let wanted = "evt.orders.order_created.v1.*";
        for filter in [wanted, "evt.orders.>", "evt.*.order_created.v1.*", ">"] {
            assert!(covers(filter, wanted), "{filter}");
        }
        for filter in ["", "evt.orders.order_created.v1.7", "evt.orders.order_created.v2.*", "evt.orders.*.v1", "evt.*"]
        {
            assert!(!covers(filter, wanted), "{filter:?}");
        }
    }
}
