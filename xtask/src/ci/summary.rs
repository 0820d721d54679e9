//! The results of many test programs as one.

use std::time::Duration;

/// The sums of the `test result:` lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) programs: u32,
    passed: u32,
    failed: u32,
    ignored: u32,
    measured: u32,
    filtered_out: u32,
}

impl Summary {
    /// Takes in a line of output; any line but a result is passed over.
    pub(super) fn read(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        self.programs += 1;
        // `ok. 3 passed; 0 failed; ..`: each number stands in front of its word.
        let counts = result.split(';').filter_map(|part| {
            let part = part.trim();
            let part = part.split_once(". ").map_or(part, |(_, rest)| rest);
            let (number, word) = part.split_once(' ')?;
            Some((number.parse::<u32>().ok()?, word))
        });
        for (number, word) in counts {
            let sum = match word {
                "passed" => &mut self.passed,
                "failed" => &mut self.failed,
                "ignored" => &mut self.ignored,
                "measured" => &mut self.measured,
                "filtered out" => &mut self.filtered_out,
                _ => continue,
            };
            *sum += number;
        }
    }

    /// Whether every test of every program was run and passed, as far as their reports go.
    pub(super) fn is_complete(&self) -> bool {
        self.passed > 0 && self.failed == 0 && self.ignored == 0
    }

    /// One line for all, in the form of the test runner.
    pub(super) fn line(&self, passed: bool, took: Duration) -> String {
        let word = if passed { "ok" } else { "FAILED" };
        format!(
            "test result: {word}. {} passed; {} failed; {} ignored; {} measured; {} filtered out; finished in {:.2}s",
            self.passed,
            self.failed,
            self.ignored,
            self.measured,
            self.filtered_out,
            took.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.01s";
    const TWO: &str =
        "test result: FAILED. 40 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 9.99s";

    fn summary(lines: &[&str]) -> Summary {
        let mut summary = Summary::default();
        lines.iter().for_each(|line| summary.read(line));
        summary
    }

    #[test]
    fn results_are_added_up() {
        let both = summary(&["running 4 tests", ONE, "", TWO]);
        assert_eq!(both.programs, 2);
        assert_eq!(
            both.line(false, Duration::from_millis(12_340)),
            "test result: FAILED. 43 passed; 2 failed; 1 ignored; 0 measured; 1 filtered out; finished in 12.34s"
        );
    }

    #[test]
    fn a_test_that_was_not_run_is_not_passed() {
        assert!(summary(&[ONE]).is_complete());
        assert!(!summary(&[ONE, TWO]).is_complete());
        assert!(!summary(&[&ONE.replace("0 ignored", "1 ignored")]).is_complete());
        assert!(!summary(&[]).is_complete());
    }
}
