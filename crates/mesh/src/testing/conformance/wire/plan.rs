//! Which statement fails, and which were seen.

use super::Fault;

/// Longest part of a statement that is shown.
const SHOWN_MAX: usize = 120;

/// The statements of one transaction, and the fault that one of them meets.
#[derive(Debug, Default)]
pub(super) struct Plan {
    armed: Option<(usize, Fault)>,
    begun: bool,
    /// What was sent after the begin.
    pub(super) statements: Vec<String>,
    /// The statement that met the fault.
    pub(super) fired: Option<String>,
}

impl Plan {
    pub(super) fn armed(number: usize, fault: Fault) -> Self {
        Self { armed: Some((number, fault)), ..Self::default() }
    }

    /// Notes a statement on its way to the server; tells what becomes of it afterwards.
    pub(super) fn pass(&mut self, sql: &str) -> Option<Fault> {
        if !self.begun {
            self.begun = sql.trim_start().get(..5).is_some_and(|word| word.eq_ignore_ascii_case("begin"));
            return None;
        }
        if self.fired.is_some() {
            return None;
        }
        self.statements.push(one_line(sql));
        let (number, fault) = self.armed?;
        if number != self.statements.len() {
            return None;
        }
        self.fired = self.statements.last().cloned();
        Some(fault)
    }
}

fn one_line(sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().collect();
    words.join(" ").chars().take(SHOWN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted_from_the_begin_and_one_fails_once() {
        let mut plan = Plan::armed(2, Fault::Error);
        let outcomes: Vec<_> =
            ["select 0", "BEGIN", "select\n  1", "select 2", "rollback", "begin", "select 1", "select 2"]
                .map(|sql| plan.pass(sql))
                .into_iter()
                .collect();
        assert_eq!(outcomes.iter().position(Option::is_some), Some(3));
        assert_eq!(outcomes.iter().flatten().count(), 1);
        assert_eq!(
            (plan.statements, plan.fired.as_deref()),
            (vec!["select 1".into(), "select 2".into()], Some("select 2"))
        );
    }
}
