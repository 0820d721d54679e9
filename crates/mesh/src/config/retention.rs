//! How long what is done is kept, and how often it is compared with the stream.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::findings::Findings;

const RECONCILE_EVERY: Duration = Duration::from_secs(300);
const DAY: Duration = Duration::from_secs(86_400);

/// The flags and variables about the past, unchecked.
#[derive(Clone, Default, clap::Args)]
pub struct RetentionArguments {
    /// How long between comparisons of what was published with what the stream holds, in seconds [default: 300]
    #[arg(long, env = "MESH_RECONCILE_SECONDS", value_name = "SECONDS", global = true)]
    pub reconcile_seconds: Option<String>,

    /// How long published facts are kept, to be published again if the stream loses them, in days [default: 14]
    #[arg(long, env = "MESH_OUTBOX_SENT_RETENTION_DAYS", value_name = "DAYS", global = true)]
    pub outbox_sent_retention_days: Option<String>,

    /// How long settled deliveries are remembered, in days; at least as long as the stream keeps a fact and a redrive may
    /// bring it back [default: exactly so long]
    #[arg(long, env = "MESH_INBOX_RETENTION_DAYS", value_name = "DAYS", global = true)]
    pub inbox_retention_days: Option<String>,

    /// How long after it has left the stream a fact may be brought back by hand, in days [default: 14]
    #[arg(long, env = "MESH_REDRIVE_HORIZON_DAYS", value_name = "DAYS", global = true)]
    pub redrive_horizon_days: Option<String>,

    /// How long the reply to a request with an Idempotency-Key is kept, in days [default: 7]
    #[arg(long, env = "MESH_IDEMPOTENCY_RETENTION_DAYS", value_name = "DAYS", global = true)]
    pub idempotency_retention_days: Option<String>,

    /// How long discarded dead letters and finished operations are kept, in days; what waits for a person is kept for ever
    /// [default: 90]
    #[arg(long, env = "MESH_DISCARDED_RETENTION_DAYS", value_name = "DAYS", global = true)]
    pub discarded_retention_days: Option<String>,
}

/// How long the traces of finished work are kept. What waits for a person is kept for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How long between comparisons of what was published with what the stream holds.
    pub reconcile_every: Duration,
    /// Published facts, to be published again if the stream loses them.
    pub outbox_sent: Duration,
    /// Settled deliveries; `None` is as long as a fact may come again.
    pub inbox: Option<Duration>,
    /// How long after it has left the stream a fact may be brought back by hand.
    pub redrive_horizon: Duration,
    /// Replies to requests with an `Idempotency-Key`.
    pub idempotency: Duration,
    /// Dead letters that were discarded, and operations that are finished.
    pub discarded: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            reconcile_every: RECONCILE_EVERY,
            outbox_sent: 14 * DAY,
            inbox: None,
            redrive_horizon: 14 * DAY,
            idempotency: 7 * DAY,
            discarded: 90 * DAY,
        }
    }
}

impl RetentionArguments {
    pub(super) fn read(&self, found: &mut Findings) -> Retention {
        let default = Retention::default();
        let every = self.reconcile_seconds.as_deref();
        let mut retention = Retention {
            reconcile_every: found.seconds("MESH_RECONCILE_SECONDS", every, 10..=86_400, default.reconcile_every),
            ..default
        };
        let mut days = |variable: &str, value: &Option<String>, least: u32, kept: &mut Duration| {
            *kept = in_days(found, variable, value.as_deref(), least..=3_650, *kept);
        };
        let sent = &mut retention.outbox_sent;
        days("MESH_OUTBOX_SENT_RETENTION_DAYS", &self.outbox_sent_retention_days, 1, sent);
        days("MESH_REDRIVE_HORIZON_DAYS", &self.redrive_horizon_days, 0, &mut retention.redrive_horizon);
        days("MESH_IDEMPOTENCY_RETENTION_DAYS", &self.idempotency_retention_days, 1, &mut retention.idempotency);
        days("MESH_DISCARDED_RETENTION_DAYS", &self.discarded_retention_days, 1, &mut retention.discarded);
        // An empty variable is one that is not set.
        let inbox = self.inbox_retention_days.as_deref().filter(|given| !given.is_empty());
        retention.inbox = inbox.map(|given| in_days(found, "MESH_INBOX_RETENTION_DAYS", Some(given), 1..=3_650, DAY));
        retention
    }
}

fn in_days(
    found: &mut Findings,
    variable: &str,
    value: Option<&str>,
    range: RangeInclusive<u32>,
    default: Duration,
) -> Duration {
    // No default in days is beyond a u32.
    let default = u32::try_from(default.as_secs() / DAY.as_secs()).unwrap_or(u32::MAX);
    DAY * found.count(variable, value, range, default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &RetentionArguments) -> (Retention, Vec<String>) {
        let mut found = Findings(Vec::new());
        let retention = arguments.read(&mut found);
        (retention, found.0.into_iter().map(|error| error.variable).collect())
    }

    #[test]
    fn what_is_kept_is_kept_for_days() {
        let given = |days: &str| Some(days.to_owned());
        assert_eq!(read(&RetentionArguments::default()), (Retention::default(), Vec::new()));
        let arguments = RetentionArguments {
            reconcile_seconds: given("60"),
            inbox_retention_days: given("40"),
            redrive_horizon_days: given("0"),
            outbox_sent_retention_days: given("20"),
            ..RetentionArguments::default()
        };
        let expected = Retention {
            reconcile_every: Duration::from_secs(60),
            inbox: Some(40 * DAY),
            redrive_horizon: Duration::ZERO,
            outbox_sent: 20 * DAY,
            ..Retention::default()
        };
        assert_eq!(read(&arguments), (expected, Vec::new()));
        let unset = RetentionArguments { inbox_retention_days: given(""), ..RetentionArguments::default() };
        assert_eq!(read(&unset).0.inbox, None, "as long as the stream asks for");
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let arguments = RetentionArguments {
            reconcile_seconds: Some("9".to_owned()),
            inbox_retention_days: Some("0".to_owned()),
            redrive_horizon_days: Some("3651".to_owned()),
            ..RetentionArguments::default()
        };
        let expected = ["MESH_RECONCILE_SECONDS", "MESH_REDRIVE_HORIZON_DAYS", "MESH_INBOX_RETENTION_DAYS"];
        assert_eq!(read(&arguments).1, expected);
    }
}
