//! What this service is told from outside, beside the runtime's `MESH_` variables.

use std::time::Duration;

/// The variable that sets how long a flow may stay open.
const FLOW_DEADLINE: &str = "ORDERS_FLOW_DEADLINE_SECONDS";
/// Longest deadline: a week.
const FLOW_DEADLINE_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;

/// The checked settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long an order may stay pending before it is cancelled.
    pub flow_deadline: Duration,
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{FLOW_DEADLINE} is {0:?}: it must be a number of seconds from 1 to {FLOW_DEADLINE_SECONDS_MAX}")]
pub struct SettingsError(String);

impl Default for Settings {
    fn default() -> Self {
        Self { flow_deadline: Duration::from_secs(60) }
    }
}

impl Settings {
    /// Reads the environment of the process.
    ///
    /// # Errors
    /// When a variable is set to something that cannot be used.
    pub fn from_environment() -> Result<Self, SettingsError> {
        let variable = std::env::var_os(FLOW_DEADLINE);
        Self::from_text(variable.map(|text| text.to_string_lossy().into_owned()).as_deref())
    }

    fn from_text(flow_deadline: Option<&str>) -> Result<Self, SettingsError> {
        let Some(text) = flow_deadline else { return Ok(Self::default()) };
        let seconds = text.parse().ok().filter(|seconds| (1..=FLOW_DEADLINE_SECONDS_MAX).contains(seconds));
        let seconds = seconds.ok_or_else(|| SettingsError(text.to_owned()))?;
        Ok(Self { flow_deadline: Duration::from_secs(seconds) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_is_a_bounded_number_of_seconds() {
        assert_eq!(Settings::from_text(None).unwrap().flow_deadline, Duration::from_secs(60));
        assert_eq!(Settings::from_text(Some("5")).unwrap().flow_deadline, Duration::from_secs(5));
        for text in ["", "0", "-1", "1.5", "60s", "604801", "99999999999999999999"] {
            let error = Settings::from_text(Some(text)).unwrap_err().to_string();
            assert!(error.contains("ORDERS_FLOW_DEADLINE_SECONDS") && error.contains(text), "{error}");
        }
    }
}
