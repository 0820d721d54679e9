//! A sample domain: something happened, and a note of it goes outside, where nothing can be taken back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use envelope::Event;
use mesh::{Backoff, Failure, Handled, Kv, KvService, Policy, Received, Service, Subscriber};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use uuid::Uuid;

/// Service and durable.
pub(crate) const SERVICE: &str = "probe";

/// Something happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Happened {
    pub(crate) id: Uuid,
    pub(crate) n: u32,
}

impl Event for Happened {
    const DOMAIN: &'static str = "shop";
    const NAME: &'static str = "happened";
    const MAJOR: u16 = 1;
    const REVISION: u16 = 0;

    fn key(&self) -> String {
        self.id.to_string()
    }
}

/// What the handler does with a fact, after its note went out.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Done,
    /// Does nothing for a reason.
    Nothing,
    Fail(&'static str),
    Reject,
    /// Never returns.
    Hang,
    /// Returns when the test says so.
    Wait(watch::Receiver<bool>),
    Linger(Duration),
    /// Panics.
    Panic,
}

/// One entry into the handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) event_id: Uuid,
    pub(crate) n: u32,
    pub(crate) attempt: u32,
}

type Script = dyn Fn(&Received<Happened>) -> Act + Send + Sync;

/// Sends a note of each fact, and goes on as its script says. Clones share the notes, as replicas share the world.
#[derive(Clone)]
pub(crate) struct SendNote {
    script: Arc<Script>,
    policy: Policy,
    notes: watch::Sender<Vec<Note>>,
    inside: Arc<Mutex<(u32, u32)>>,
}

impl SendNote {
    pub(crate) fn always() -> Self {
        Self::script(|_| Act::Done)
    }

    pub(crate) fn script(script: impl Fn(&Received<Happened>) -> Act + Send + Sync + 'static) -> Self {
        let backoff = Backoff { first: Duration::from_millis(50), longest: Duration::from_millis(200) };
        let policy = Policy { attempts_max: 3, backoff, timeout: Duration::from_secs(5) };
        Self { script: Arc::new(script), policy, notes: watch::Sender::default(), inside: Arc::default() }
    }

    /// The same world, another script.
    pub(crate) fn then(&self, script: impl Fn(&Received<Happened>) -> Act + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), ..self.clone() }
    }

    /// Every note so far, in order.
    pub(crate) fn notes(&self) -> Vec<Note> {
        self.notes.borrow().clone()
    }

    /// Waits for so many notes.
    pub(crate) async fn until(&self, notes: usize) {
        self.notes.subscribe().wait_for(|sent| sent.len() >= notes).await.unwrap();
    }

    /// The most executions that there ever were at one time.
    pub(crate) fn most_at_once(&self) -> u32 {
        self.inside.lock().unwrap().1
    }
}

impl Subscriber<Kv> for SendNote {
    type Event = Happened;
    const NAME: &'static str = "send-note";

    fn policy(&self) -> Policy {
        self.policy
    }

    async fn handle(&self, _: &mut Kv, received: Received<Happened>) -> Result<Handled, Failure> {
        {
            let mut inside = self.inside.lock().unwrap();
            inside.0 += 1;
            inside.1 = inside.1.max(inside.0);
        }
        let note = Note { event_id: received.metadata.id, n: received.event.n, attempt: received.attempt };
        self.notes.send_modify(|notes| notes.push(note));
        let act = (self.script)(&received);
        match act {
            Act::Wait(mut told) => drop(told.wait_for(|told| *told).await),
            Act::Linger(time) => crate::world::elapse(time).await,
            Act::Hang => std::future::pending().await,
            Act::Panic => panic!("as scripted"),
            Act::Done | Act::Nothing | Act::Fail(_) | Act::Reject => {}
        }
        self.inside.lock().unwrap().0 -= 1;
        match (self.script)(&received) {
            Act::Fail(why) => Err(anyhow::anyhow!(why).into()),
            Act::Reject => Err(Failure::Reject(anyhow::anyhow!("not now, not ever"))),
            Act::Nothing => Ok(Handled::NoEffect("no_need")),
            _ => Ok(Handled::Effect),
        }
    }
}

/// The service with this subscriber.
pub(crate) fn service(subscriber: SendNote) -> KvService {
    Service::without_database(SERVICE, "test").subscribe(subscriber)
}

/// The `n`th fact of the key `key`.
pub(crate) fn fact(key: u128, n: u32) -> Happened {
    Happened { id: Uuid::from_u128(key), n }
}
