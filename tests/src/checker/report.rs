//! What the checks found.

use std::fmt;

/// How many violations of one check are printed.
const SHOWN_MAX: usize = 12;

/// One check: how much it looked at and what was wrong.
#[derive(Debug, Clone)]
pub struct Check {
    name: &'static str,
    items: usize,
    violations: Vec<String>,
}

impl Check {
    pub(super) fn new(name: &'static str) -> Check {
        Check { name, items: 0, violations: Vec::new() }
    }

    /// Counts one thing that is looked at.
    pub(super) fn item(&mut self) {
        self.items += 1;
    }

    /// Notes a violation unless `holds`.
    pub(super) fn ensure(&mut self, holds: bool, violation: impl FnOnce() -> String) {
        if !holds {
            self.violations.push(violation());
        }
    }

    /// Notes a violation.
    pub(super) fn violated(&mut self, violation: String) {
        self.violations.push(violation);
    }

    /// The promise that it is about.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What was wrong, or that there was nothing to look at.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        if self.items == 0 { vec!["the check looked at nothing".to_owned()] } else { self.violations.clone() }
    }
}

/// All checks of one run.
#[derive(Debug, Clone)]
pub struct Report {
    checks: Vec<Check>,
}

impl Report {
    pub(super) fn new(checks: Vec<Check>) -> Report {
        Report { checks }
    }

    /// Whether every check looked at something and found nothing.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.checks.iter().all(|check| check.violations().is_empty())
    }

    /// The names of the checks that found something.
    #[must_use]
    pub fn broken(&self) -> Vec<&'static str> {
        self.checks.iter().filter(|check| !check.violations().is_empty()).map(Check::name).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            let violations = check.violations();
            let verdict = if violations.is_empty() { "ok" } else { "BROKEN" };
            writeln!(out, "{:<12} {verdict:<7} {} looked at", check.name, check.items)?;
            for violation in violations.iter().take(SHOWN_MAX) {
                writeln!(out, "    {violation}")?;
            }
            if let Some(more) = violations.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
                writeln!(out, "    and {more} more")?;
            }
        }
        Ok(())
    }
}
