//! How long a settled delivery has to be remembered. Pure.

use std::time::Duration;

use crate::broker::STREAM;

/// A configured retention of the inbox under which an effect could happen twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InboxTooShort {
    configured: Duration,
    stream_age: Option<Duration>,
    horizon: Duration,
    /// What it has to be at least; `None` is for ever.
    pub(crate) needed: Option<Duration>,
}

impl std::error::Error for InboxTooShort {}

impl std::fmt::Display for InboxTooShort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let days = |duration: Duration| duration.as_secs_f64() / 86_400.0;
        write!(f, "MESH_INBOX_RETENTION_DAYS={} is shorter than a fact may come again: ", days(self.configured))?;
        let horizon = days(self.horizon);
        match (self.stream_age, self.needed) {
            (Some(age), Some(needed)) => write!(
                f,
                "the stream {STREAM} keeps it for {} days (max_age), and MESH_REDRIVE_HORIZON_DAYS adds {horizon}; \
                 set it to {} or more, or leave it out",
                days(age),
                days(needed).ceil(),
            ),
            _ => write!(
                f,
                "the stream {STREAM} keeps it for ever (max_age 0), MESH_REDRIVE_HORIZON_DAYS adds {horizon}; leave it out"
            ),
        }
    }
}

/// How long a settled delivery is remembered; `None` is for ever. A fact may be delivered again for as long as the stream
/// keeps it, and brought back by hand for some time after.
///
/// # Errors
/// [`InboxTooShort`] when less was configured.
pub(crate) fn inbox_retention(
    configured: Option<Duration>,
    stream_age: Option<Duration>,
    horizon: Duration,
) -> Result<Option<Duration>, InboxTooShort> {
    let needed = stream_age.map(|age| age + horizon);
    match (configured, needed) {
        (None, needed) => Ok(needed),
        (Some(configured), Some(needed)) if configured >= needed => Ok(Some(configured)),
        (Some(configured), needed) => Err(InboxTooShort { configured, stream_age, horizon, needed }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn a_settling_is_remembered_for_as_long_as_the_fact_may_come_again() {
        assert_eq!(inbox_retention(None, Some(14 * DAY), 7 * DAY), Ok(Some(21 * DAY)));
        assert_eq!(inbox_retention(Some(21 * DAY), Some(14 * DAY), 7 * DAY), Ok(Some(21 * DAY)));
        assert_eq!(inbox_retention(Some(90 * DAY), Some(14 * DAY), 7 * DAY), Ok(Some(90 * DAY)));
        assert_eq!(inbox_retention(None, None, 7 * DAY), Ok(None), "a stream that keeps everything");
    }

    #[test]
    fn less_is_refused_in_words_that_name_what_is_compared() {
        let error = inbox_retention(Some(20 * DAY), Some(14 * DAY), 7 * DAY).unwrap_err();
        assert_eq!(error.needed, Some(21 * DAY));
        assert_eq!(
            error.to_string(),
            "MESH_INBOX_RETENTION_DAYS=20 is shorter than a fact may come again: the stream EVT keeps it for 14 days \
             (max_age), and MESH_REDRIVE_HORIZON_DAYS adds 7; set it to 21 or more, or leave it out"
        );
        let error = inbox_retention(Some(3_650 * DAY), None, 7 * DAY).unwrap_err();
        assert!(error.to_string().contains("for ever"), "{error}");
        assert_eq!(error.needed, None);
    }
}
