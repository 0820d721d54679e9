//! Values out of text, with every mistake on the way.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use super::ConfigError;
use super::check::given;

/// The mistakes so far. Each reader answers a usable value, so that the search goes on.
pub(super) struct Findings(pub(super) Vec<ConfigError>);

impl Findings {
    pub(super) fn add(&mut self, variable: &str, value: Option<&str>, problem: impl Into<String>) {
        self.0.push(ConfigError {
            variable: variable.to_owned(),
            value: value.map(ToOwned::to_owned),
            problem: problem.into(),
        });
    }

    /// A required value that is never repeated in an error.
    pub(super) fn secret<T: FromStr<Err = &'static str>>(&mut self, variable: &str, value: Option<&str>) -> Option<T> {
        match given(value).map(T::from_str) {
            Some(Ok(secret)) => return Some(secret),
            Some(Err(problem)) => self.add(variable, None, problem),
            None => self.add(variable, None, "is required"),
        }
        None
    }

    pub(super) fn parsed<T: FromStr>(&mut self, variable: &str, value: Option<&str>, expected: &str, default: T) -> T {
        let Some(given) = given(value) else { return default };
        given.parse().unwrap_or_else(|_| {
            self.add(variable, Some(given), expected);
            default
        })
    }

    pub(super) fn count(
        &mut self,
        variable: &str,
        value: Option<&str>,
        range: RangeInclusive<u32>,
        default: u32,
    ) -> u32 {
        let Some(given) = given(value) else { return default };
        match given.parse() {
            Ok(count) if range.contains(&count) => count,
            _ => {
                let problem = format!("expected a whole number from {} to {}", range.start(), range.end());
                self.add(variable, Some(given), problem);
                default
            }
        }
    }

    pub(super) fn seconds(
        &mut self,
        variable: &str,
        value: Option<&str>,
        range: RangeInclusive<u32>,
        default: Duration,
    ) -> Duration {
        // No default in seconds is beyond a u32.
        let default = u32::try_from(default.as_secs()).unwrap_or(u32::MAX);
        Duration::from_secs(self.count(variable, value, range, default).into())
    }
}
