use std::path::Path;

use serde_json::json;

use super::*;
use crate::declaration::Declaration;

fn declaration() -> Declaration {
    Declaration::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nats")).unwrap()
}

fn derived() -> Vec<User> {
    let buckets: Vec<String> = declaration().buckets.into_keys().collect();
    users(&events::catalogue::services().unwrap(), "EVT", &buckets).users
}

#[test]
fn the_committed_users_are_the_derived_ones() {
    assert_eq!(declaration().users, derived());
}

#[test]
fn nobody_may_say_anothers_fact_or_touch_anothers_durable() {
    let services: Vec<String> = events::catalogue::names().map(str::to_owned).collect();
    for user in derived() {
        for other in services.iter().filter(|other| **other != user.name) {
            for subject in &user.permissions.publish.allow {
                assert!(!subject.starts_with(&format!("evt.{other}")), "{} may publish {subject}", user.name);
            }
        }
        let says_facts = user.permissions.publish.allow.iter().any(|subject| subject.starts_with("evt."));
        let speaks = events::catalogue::service(&user.name).is_ok_and(|entry| !entry.facts.is_empty());
        assert_eq!(says_facts, speaks, "{}", user.name);
        let inbox = format!("_INBOX_{}.>", user.name);
        let inboxes: Vec<_> = user.permissions.subscribe.allow.iter().filter(|s| s.starts_with("_INBOX")).collect();
        assert_eq!(inboxes, [&inbox], "{}", user.name);
    }
}

#[test]
fn only_who_says_facts_may_look_for_them_by_their_sequence() {
    let may_look = |entry: ServiceEntry| {
        let user = users(&[entry], "EVT", &[]).users.swap_remove(0);
        user.permissions.publish.allow.iter().any(|subject| subject == "$JS.API.STREAM.MSG.GET.EVT")
    };
    for entry in events::catalogue::services().unwrap() {
        assert_eq!(may_look(entry.clone()), !entry.facts.is_empty(), "{}", entry.service);
        assert!(!may_look(ServiceEntry { facts: Vec::new(), ..entry }), "it has nothing to look for");
    }
}

#[test]
fn a_service_that_hears_nothing_gets_no_consumer() {
    let entry = json!({ "service": "clock", "facts": [], "reactions": [] });
    let entry: ServiceEntry = serde_json::from_value(entry).unwrap();
    let clock = &users(&[entry], "EVT", &[]).users[0];
    assert_eq!(clock.permissions.publish.allow, ["mesh.ops.clock", "mesh.ops.clock.events"]);
}

#[test]
fn a_bucket_is_for_its_service_alone() {
    let buckets: Vec<String> = declaration().buckets.into_keys().collect();
    assert!(!buckets.is_empty());
    for user in derived().iter().filter(|user| user.name != OPERATOR) {
        let allowed = &user.permissions.publish.allow;
        for bucket in &buckets {
            let about = allowed.iter().filter(|subject| subject.contains(bucket)).count();
            let expected = if bucket.ends_with(&format!("_{}", user.name)) { 3 } else { 0 };
            assert_eq!(about, expected, "{} on {bucket}", user.name);
        }
        // Purging, deleting, and subscribing to what others write are for nobody.
        assert!(allowed.iter().all(|subject| !subject.contains("PURGE") && !subject.contains("DELETE")));
        assert!(user.permissions.subscribe.allow.iter().all(|subject| !subject.starts_with("$KV")));
    }
}
