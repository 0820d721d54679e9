//! A timeline as people read it.

use std::fmt;

use super::fact::spoken;
use super::progress::Expected;
use super::timeline::{Timeline, TimelineFact};

/// A fact that was stored this much later than it happened is worth a remark: its outbox was held up.
const HELD_UP_MS: i64 = 1_000;

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}: {}", self.kind.as_deref().unwrap_or("flow"), self.flow_id, state(self))?;
        writeln!(f)?;
        let rows: Vec<[String; 5]> = self.facts.iter().map(row).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let (delays, services, facts, phrases) = (width(0), width(1), width(2), width(3));
        for [delay, service, fact, phrase, why] in &rows {
            let line = format!("  {delay:>delays$}  {service:<services$}  {fact:<facts$}  {phrase:<phrases$}  {why}");
            writeln!(f, "{}", line.trim_end())?;
        }
        section(f, "still expected", self.expected.iter().map(owed))?;
        section(f, "not as it should be", self.anomalies.iter().cloned())
    }
}

pub(super) fn section(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    lines: impl ExactSizeIterator<Item = String>,
) -> fmt::Result {
    if lines.len() == 0 {
        return Ok(());
    }
    writeln!(f, "\n{title}:")?;
    lines.into_iter().try_for_each(|line| writeln!(f, "  {line}"))
}

fn state(timeline: &Timeline) -> String {
    let facts = timeline.facts.len();
    let copies: usize = timeline.facts.iter().map(|fact| fact.duplicates.len()).sum();
    let ends: Vec<String> = timeline.ended_with.iter().map(|fact| spoken(fact)).collect();
    let mut state = match (timeline.finished, ends.is_empty()) {
        (true, _) => format!("finished with {}", ends.join(" and ")),
        (false, false) => format!("{}, not finished", ends.join(" and ")),
        (false, true) => "not finished".to_owned(),
    };
    state += &format!(" after {}, {facts} {}", duration(timeline.duration_ms), plural(facts, "fact"));
    if copies > 0 {
        state += &format!(", {copies} {}", plural(copies, "duplicate"));
    }
    state
}

fn row(fact: &TimelineFact) -> [String; 5] {
    let name = format!("{}{}", "  ".repeat(fact.depth), spoken(fact.fact()));
    let sign = if fact.delay_ms < 0 { "" } else { "+" };
    [format!("{sign}{}", duration(fact.delay_ms)), fact.service.clone(), name, fact.phrase.clone(), why(fact)]
}

/// Who spoke, because of what, and what is odd about it.
fn why(fact: &TimelineFact) -> String {
    let mut parts = vec![fact.speaker.clone()];
    match (&fact.because_of, fact.caused_by) {
        (Some(cause), _) => parts.push(format!("because of {}", spoken(cause))),
        (None, Some(_)) => parts.push("because of a fact that is not here".to_owned()),
        (None, None) => {}
    }
    let held_up = fact.stored_at.unix_millis() - fact.time.unix_millis();
    if held_up >= HELD_UP_MS {
        parts.push(format!("published {} later", duration(held_up)));
    }
    if !fact.duplicates.is_empty() {
        let places: Vec<String> = fact.duplicates.iter().map(u64::to_string).collect();
        parts.push(format!("stored again at {}", places.join(", ")));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn owed(expected: &Expected) -> String {
    let join = |facts: &[String], word: &str| facts.iter().map(|fact| spoken(fact)).collect::<Vec<_>>().join(word);
    let due = match expected.due_in_ms {
        late if late < 0 => format!("late by {}", duration(-late)),
        due => format!("due in {}", duration(due)),
    };
    let (owner, what) = (&expected.owner, join(&expected.expect, " or "));
    format!("{owner} owes {what}, because of {}; {due}", join(&expected.because_of, " and "))
}

/// Milliseconds in the unit that a person would choose.
pub fn duration(millis: i64) -> String {
    match millis.unsigned_abs() {
        0..10_000 => format!("{millis} ms"),
        10_000..120_000 => format!("{}.{} s", millis / 1_000, millis.unsigned_abs() % 1_000 / 100),
        120_000..7_200_000 => format!("{} min {} s", millis / 60_000, millis.unsigned_abs() % 60_000 / 1_000),
        _ => format!("{} h {} min", millis / 3_600_000, millis.unsigned_abs() % 3_600_000 / 60_000),
    }
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}
