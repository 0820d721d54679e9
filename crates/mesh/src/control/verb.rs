//! What can be asked.

use uuid::Uuid;

/// The verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// How is this process? Every replica answers, so whoever asks collects several answers.
    Status,
    /// How is the outbox of the service? It is one for all replicas, so any one of them answers; likewise below.
    Outbox,
    /// How did these facts get on with their subscribers, and what of these keys waits to be published?
    Explain,
    /// Compare what was published with what the stream holds. One replica does it for all, and any one answers.
    Reconcile,
    OutboxWhy,
    OutboxPreview,
    OutboxRetry,
    DeadList,
    DeadShow,
    DeadPreview,
    DeadRedrive,
    DeadDiscard,
    OperationList,
    OperationShow,
    OperationStop,
}

impl Verb {
    pub(super) const ALL: [Self; 15] = [
        Self::Status,
        Self::Outbox,
        Self::Explain,
        Self::Reconcile,
        Self::OutboxWhy,
        Self::OutboxPreview,
        Self::OutboxRetry,
        Self::DeadList,
        Self::DeadShow,
        Self::DeadPreview,
        Self::DeadRedrive,
        Self::DeadDiscard,
        Self::OperationList,
        Self::OperationShow,
        Self::OperationStop,
    ];

    /// The end of the subject.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Outbox => "outbox",
            Self::Explain => "explain",
            Self::Reconcile => "reconcile",
            Self::OutboxWhy => "outbox.why",
            Self::OutboxPreview => "outbox.preview",
            Self::OutboxRetry => "outbox.retry",
            Self::DeadList => "dead.list",
            Self::DeadShow => "dead.show",
            Self::DeadPreview => "dead.preview",
            Self::DeadRedrive => "dead.redrive",
            Self::DeadDiscard => "dead.discard",
            Self::OperationList => "operation.list",
            Self::OperationShow => "operation.show",
            Self::OperationStop => "operation.stop",
        }
    }

    /// The name in the services framework, which knows no dots.
    pub(super) fn endpoint(self) -> String {
        self.name().replace('.', "-")
    }

    /// Among those who listen in one queue group, one hears the question.
    pub(super) fn queue_group(self, instance: Uuid) -> String {
        match self {
            Self::Status => instance.to_string(),
            _ => "any".to_owned(),
        }
    }
}
