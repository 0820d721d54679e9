use std::path::Path;

use serde_json::json;

use super::*;
use crate::declaration::Declaration;

fn derived() -> Vec<User> {
    users(&events::catalogue::services().unwrap(), "EVT").users
}

#[test]
fn the_committed_users_are_the_derived_ones() {
    let committed = Declaration::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nats")).unwrap().users;
    assert_eq!(committed, derived());
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
        assert_eq!(says_facts, services.contains(&user.name), "{}", user.name);
        let inbox = format!("_INBOX_{}.>", user.name);
        let inboxes: Vec<_> = user.permissions.subscribe.allow.iter().filter(|s| s.starts_with("_INBOX")).collect();
        assert_eq!(inboxes, [&inbox], "{}", user.name);
    }
}

#[test]
fn only_who_says_facts_may_look_for_them_by_their_sequence() {
    let may_look = |entry: ServiceEntry| {
        let user = users(&[entry], "EVT").users.swap_remove(0);
        user.permissions.publish.allow.iter().any(|subject| subject == "$JS.API.STREAM.MSG.GET.EVT")
    };
    for entry in events::catalogue::services().unwrap() {
        assert!(may_look(entry.clone()), "{}", entry.service);
        assert!(!may_look(ServiceEntry { facts: Vec::new(), ..entry }), "it has nothing to look for");
    }
}

#[test]
fn a_service_that_hears_nothing_gets_no_consumer() {
    let entry = json!({ "service": "clock", "facts": [], "reactions": [] });
    let entry: ServiceEntry = serde_json::from_value(entry).unwrap();
    let clock = &users(&[entry], "EVT").users[0];
    assert_eq!(clock.permissions.publish.allow, ["mesh.wake.clock", "mesh.ops.clock", "mesh.ops.clock.events"]);
}
