//! Buckets are declared elsewhere: a service verifies them and refuses drift. What they hold expires as it should.

use std::sync::{Arc, Mutex};

use mesh::testing::RunningKv;
use mesh::{Bucket, Failure, Handled, Kv, KvError, Lifetime, Received, Service, Subscriber};
use serde_json::Value;
use testkit::wait;
use uuid::Uuid;

use crate::probe::{Happened, SERVICE, SendNote, fact, service};
use crate::world::{PATIENCE, World, bucket, dead, inbox};

const SECOND: u64 = 1_000_000_000;

async fn refusal(buckets: &[Value]) -> String {
    let world = World::declared(buckets).await;
    let refused = RunningKv::start(service(SendNote::always()), world.config()).await.unwrap_err();
    format!("{refused:#}")
}

#[tokio::test]
async fn a_missing_or_forgetful_bucket_is_refused_by_name_and_with_the_remedy() {
    let missing = refusal(&[inbox()]).await;
    assert!(missing.contains("`dead_probe` does not exist") && missing.contains("meshctl streams apply"), "{missing}");
    let missing = refusal(&[dead()]).await;
    assert!(missing.contains("`inbox_probe` does not exist"), "{missing}");
    // The stream keeps facts for an hour.
    let short = refusal(&[bucket("inbox", 7_199 * SECOND), dead()]).await;
    assert!(short.contains("max_age is 7199 s, but a fact may come again for 7200 s"), "{short}");
    let forgets = refusal(&[inbox(), bucket("dead", 86_400 * SECOND)]).await;
    assert!(forgets.contains("`dead_probe` has drifted: max_age is set, which drops dead letters"), "{forgets}");
}

/// Hands out the service's own bucket.
#[derive(Clone, Default)]
struct ShowBucket(Arc<Mutex<Option<Bucket>>>);

impl Subscriber<Kv> for ShowBucket {
    type Event = Happened;
    const NAME: &'static str = "show-bucket";

    async fn handle(&self, kv: &mut Kv, _: Received<Happened>) -> Result<Handled, Failure> {
        *self.0.lock().unwrap() = Some(kv.bucket("own"));
        Ok(Handled::Effect)
    }
}

#[tokio::test]
async fn entries_are_replaced_at_their_revision_only_and_live_as_long_as_they_are_told_to() {
    let world = World::declared(&[inbox(), dead(), bucket("own", SECOND)]).await;
    let subscriber = ShowBucket::default();
    let service = Service::without_database(SERVICE, "test").bucket("own").subscribe(subscriber.clone());
    let running = world.run(service).await;
    world.publish(&fact(1, 0), Uuid::from_u128(0xF1), "1").await;
    world.until_acknowledged().await;
    let own = subscriber.0.lock().unwrap().clone().unwrap();
    let first = own.create("short", &"one", Lifetime::Unlimited).await.unwrap();
    assert!(matches!(own.create("short", &"two", Lifetime::OfBucket).await, Err(KvError::Conflict { .. })));
    let second = own.update("short", &"two", first, Lifetime::OfBucket).await.unwrap();
    assert!(matches!(own.update("short", &"late", first, Lifetime::OfBucket).await, Err(KvError::Conflict { .. })));
    let found = own.get::<String>("short").await.unwrap().unwrap();
    assert_eq!((found.value.as_str(), found.revision), ("two", second));
    own.create("long", &"three", Lifetime::Unlimited).await.unwrap();
    wait::until("the end of the entry that has one", PATIENCE, || async {
        match own.get::<String>("short").await.unwrap() {
            None => Ok(()),
            Some(found) => Err(found.value),
        }
    })
    .await
    .unwrap();
    crate::world::elapse(std::time::Duration::from_secs(2)).await;
    assert_eq!(own.get::<String>("long").await.unwrap().unwrap().value, "three", "older, and still there");
    own.create("short", &"four", Lifetime::OfBucket).await.unwrap();
    running.stop().await.unwrap();
}
