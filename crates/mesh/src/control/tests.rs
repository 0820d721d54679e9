use super::*;

#[test]
fn builds_that_are_no_versions_get_one() {
    assert_eq!(semantic("1.2.3"), "1.2.3");
    assert_eq!(semantic("1.2.3-rc.1+abc"), "1.2.3");
    for other in ["abcdef0", "1.2", "", "1.2.3.4", "v1.2.3"] {
        assert_eq!(semantic(other), "0.0.0", "{other}");
    }
}

#[test]
fn every_replica_hears_a_status_request_and_one_an_outbox_request() {
    let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    assert_ne!(Verb::Status.queue_group(one), Verb::Status.queue_group(other));
    assert_eq!(Verb::Outbox.queue_group(one), Verb::Outbox.queue_group(other));
}
