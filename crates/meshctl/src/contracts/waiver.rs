//! Findings that a person has signed off for a while: `waivers/<name>.md` beside the schemas.
//!
//! The file says in lines of their own `rule: <rule>`, `subject: <subject>` and `expires: <yyyy-mm-dd>`; the rest is for
//! people. A waiver is told on every run, and one that has expired is itself a finding.

use std::fs;

use envelope::Timestamp;

use super::folder::ContractFolder;
use crate::graph::{Finding, Severity};
use crate::outcome::Failure;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Waiver {
    name: String,
    rule: String,
    subject: String,
    /// The first day on which it does not hold any more, `yyyy-mm-dd`.
    expires: String,
}

/// Turns findings that are waived today into warnings.
pub(super) fn apply(
    mut findings: Vec<Finding>,
    folders: &[ContractFolder],
    now: Timestamp,
) -> anyhow::Result<Vec<Finding>> {
    let today: String = now.to_string().chars().take("yyyy-mm-dd".len()).collect();
    for waiver in read(folders)? {
        if waiver.expires <= today {
            let detail = format!("it waives {} of {} and expired on {}", waiver.rule, waiver.subject, waiver.expires);
            findings.push(Finding::error("waiver-expired", waiver.name, detail));
            continue;
        }
        let mut used = false;
        for finding in &mut findings {
            if finding.rule == waiver.rule && finding.subject == waiver.subject {
                used = true;
                finding.severity = Severity::Warning;
                finding.detail += &format!(" (waived by {} until {})", waiver.name, waiver.expires);
            }
        }
        if !used {
            findings.push(Finding::warning("waiver-unused", waiver.name, "nothing of the kind was found"));
        }
    }
    Ok(findings)
}

fn read(folders: &[ContractFolder]) -> anyhow::Result<Vec<Waiver>> {
    let mut waivers = Vec::new();
    for folder in folders {
        let Ok(entries) = fs::read_dir(folder.path.join("waivers")) else { continue };
        for entry in entries.flatten().filter(|entry| entry.path().extension().is_some_and(|ending| ending == "md")) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = fs::read_to_string(entry.path())?;
            let waiver = parse(&name, &text).ok_or_else(|| {
                Failure::usage(format!("waivers/{name} has to say rule:, subject: and expires: yyyy-mm-dd"))
            })?;
            waivers.push(waiver);
        }
    }
    waivers.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(waivers)
}

fn parse(name: &str, text: &str) -> Option<Waiver> {
    let value = |word: &str| {
        text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(':').map(|value| value.trim().to_owned()))
    };
    let expires = value("expires")?;
    let is_date = expires.len() == 10
        && expires
            .char_indices()
            .all(|(at, letter)| if matches!(at, 4 | 7) { letter == '-' } else { letter.is_ascii_digit() });
    is_date.then_some(())?;
    Some(Waiver { name: name.to_owned(), rule: value("rule")?, subject: value("subject")?, expires })
}
