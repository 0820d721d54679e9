//! Whether a process may receive traffic, and if not, why not.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

/// Something that must hold before traffic is sent to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Check {
    /// The tables are at least as new as the build needs.
    Schema,
    /// The database answers.
    Database,
    /// NATS answers.
    Broker,
    /// The buckets of a service without a database exist and are what `nats/` declares.
    Buckets,
    /// The durable consumer exists and is what `nats/` declares; holds by itself for a service that hears nothing.
    Consumer,
}

impl Check {
    const ALL: [Self; 5] = [Self::Schema, Self::Database, Self::Broker, Self::Buckets, Self::Consumer];

    const fn name(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Database => "database",
            Self::Broker => "broker",
            Self::Buckets => "buckets",
            Self::Consumer => "consumer",
        }
    }

    /// How long a check that held before may fail until traffic is sent elsewhere. Without the broker a process still does
    /// what traffic asks of it: the outbox takes facts as ever. Every replica is in the same position, so turning away
    /// would only add an outage of HTTP to that of the broker.
    const fn grace(self) -> Duration {
        match self {
            Self::Schema | Self::Database => Duration::ZERO,
            Self::Broker | Self::Buckets | Self::Consumer => Duration::MAX,
        }
    }

    /// How long "holds" is believed. Who asks the database and the broker every few seconds may itself hang on them.
    const fn believed(self) -> Option<Duration> {
        match self {
            Self::Database => Some(Duration::from_secs(30)),
            Self::Schema | Self::Broker | Self::Buckets | Self::Consumer => None,
        }
    }
}

/// The state of every check. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readiness(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    draining: bool,
    /// In the order of [`Check::ALL`].
    checks: [Standing; Check::ALL.len()],
}

impl Default for State {
    /// Of a service with a database.
    fn default() -> Self {
        let checks = Check::ALL.map(|check| Standing { applies: check != Check::Buckets, ..Standing::default() });
        Self { draining: false, checks }
    }
}

/// How a check stands.
#[derive(Debug, Clone, Default)]
struct Standing {
    /// Whether the process has something that the check is about.
    applies: bool,
    /// When it was last said to hold.
    held_at: Option<Instant>,
    /// Since when and why it does not.
    failing: Option<(Instant, String)>,
}

/// The answer of `/readyz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    /// Whether traffic may be sent here.
    pub(crate) ready: bool,
    /// Every check by name.
    pub(crate) checks: Vec<CheckReport>,
}

/// One line of a [`Report`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CheckReport {
    /// What was checked.
    pub(crate) name: &'static str,
    /// Whether it holds. One that has failed only for a moment may not stand in the way of `ready` yet.
    pub(crate) ok: bool,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

impl Readiness {
    /// The check holds as of now.
    pub(crate) fn holds(&self, check: Check) {
        let standing = &mut self.lock().checks[check as usize];
        standing.held_at = Some(Instant::now());
        if standing.failing.take().is_some() {
            tracing::info!(check = check.name(), "holds again");
        }
    }

    /// The process has buckets in place of a database.
    pub(crate) fn without_database(&self) {
        let mut state = self.lock();
        for check in Check::ALL {
            state.checks[check as usize].applies = !matches!(check, Check::Schema | Check::Database);
        }
    }

    /// The check does not hold.
    pub(crate) fn fails(&self, check: Check, reason: impl Into<String>) {
        let reason = reason.into();
        let standing = &mut self.lock().checks[check as usize];
        match &mut standing.failing {
            Some((_, known)) => *known = reason,
            None => {
                tracing::warn!(check = check.name(), reason, "does not hold");
                standing.failing = Some((Instant::now(), reason));
            }
        }
    }

    /// The process does not want traffic any more, whatever the checks say.
    pub(crate) fn drain(&self) {
        self.lock().draining = true;
    }

    /// Every check as of now.
    pub(crate) fn report(&self) -> Report {
        let now = Instant::now();
        let state = self.lock();
        let draining = state.draining.then(|| "the process is stopping".to_owned());
        let mut ready = draining.is_none();
        let mut checks = vec![CheckReport { name: "lifecycle", ok: ready, detail: draining }];
        let applying = |(_, standing): &(Check, &Standing)| standing.applies;
        for (check, standing) in Check::ALL.into_iter().zip(&state.checks).filter(applying) {
            let failure = standing.failure(check, now);
            ready &= failure.as_ref().is_none_or(|failure| failure.excused);
            checks.push(CheckReport {
                name: check.name(),
                ok: failure.is_none(),
                detail: failure.map(|failure| failure.reason),
            });
        }
        Report { ready, checks }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A check that does not hold.
struct Failure {
    reason: String,
    /// Whether it has failed too short a time to matter.
    excused: bool,
}

impl Standing {
    fn failure(&self, check: Check, now: Instant) -> Option<Failure> {
        let Some(held_at) = self.held_at else {
            let reason = self.failing.as_ref().map_or("not checked yet", |(_, reason)| reason.as_str());
            return Some(Failure { reason: reason.to_owned(), excused: false });
        };
        if let Some((since, reason)) = &self.failing {
            return Some(Failure { reason: reason.clone(), excused: now - *since < check.grace() });
        }
        let age = now - held_at;
        check
            .believed()
            .filter(|believed| age > *believed)
            .map(|_| Failure { reason: format!("no answer for {} s", age.as_secs()), excused: false })
    }
}
