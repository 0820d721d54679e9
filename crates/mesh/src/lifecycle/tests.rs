use std::time::Duration;

use tokio::sync::oneshot;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_what_is_in_flight() {
    let lifecycle = Lifecycle::new();
    let (finish, finished) = oneshot::channel::<()>();
    let task = lifecycle.spawn("delivery", async move { finished.await.is_ok() });
    let drain = tokio::spawn({
        let lifecycle = lifecycle.clone();
        async move { lifecycle.drain(Duration::from_secs(20)).await }
    });
    lifecycle.soft().cancelled().await;
    assert!(!drain.is_finished());
    assert!(!lifecycle.hard().is_cancelled());
    finish.send(()).unwrap();
    assert!(task.await.unwrap(), "the task ran to its end");
    assert_eq!(drain.await.unwrap(), Ok(()));
    assert!(lifecycle.hard().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_in_time_and_names_what_it_cut_off() {
    let lifecycle = Lifecycle::new();
    lifecycle.spawn("delivery", std::future::pending::<()>());
    lifecycle.spawn("delivery", std::future::pending::<()>());
    lifecycle.spawn("relay", async {}).await.unwrap();
    lifecycle.tracker().spawn(std::future::pending::<()>());
    let before = tokio::time::Instant::now();
    let unfinished = lifecycle.drain(Duration::from_secs(20)).await.unwrap_err();
    assert_eq!(before.elapsed().as_secs(), 20);
    assert_eq!(unfinished.to_string(), "3 tasks were cut off, 2 of them delivery");
}

#[tokio::test(start_paused = true)]
async fn a_kill_ends_the_drain_at_once() {
    let lifecycle = Lifecycle::new();
    lifecycle.spawn("delivery", std::future::pending::<()>());
    lifecycle.kill();
    let before = tokio::time::Instant::now();
    assert_eq!(lifecycle.drain(Duration::from_secs(20)).await.unwrap_err().total, 1);
    assert_eq!(before.elapsed().as_secs(), 0);
}

#[tokio::test]
async fn the_first_signal_stops_and_the_second_kills() {
    let lifecycle = Lifecycle::new();
    lifecycle.listen_for_signals().unwrap();
    let this = rustix::process::getpid();
    rustix::process::kill_process(this, rustix::process::Signal::TERM).unwrap();
    lifecycle.soft().cancelled().await;
    assert!(!lifecycle.hard().is_cancelled());
    assert!(!lifecycle.readiness().report().ready);
    rustix::process::kill_process(this, rustix::process::Signal::INT).unwrap();
    lifecycle.hard().cancelled().await;
}

/// The names of the checks that fail, and whether the process is ready all the same.
fn failing(readiness: &Readiness) -> (String, bool) {
    let report = readiness.report();
    let failing: Vec<_> = report.checks.iter().filter(|check| !check.ok).map(|check| check.name).collect();
    (failing.join(" "), report.ready)
}

fn all_hold() -> Readiness {
    let readiness = Readiness::default();
    for check in [Check::Schema, Check::Database, Check::Broker, Check::Consumer] {
        readiness.holds(check);
    }
    readiness
}

#[tokio::test(start_paused = true)]
async fn readiness_needs_every_check_and_says_which_fails() {
    assert_eq!(failing(&Readiness::default()), ("schema database broker consumer".to_owned(), false));
    let readiness = all_hold();
    assert_eq!(failing(&readiness), (String::new(), true));
    readiness.fails(Check::Database, "no answer");
    assert_eq!(failing(&readiness), ("database".to_owned(), false));
    assert_eq!(readiness.report().checks[2].detail.as_deref(), Some("no answer"));
    readiness.holds(Check::Database);
    readiness.drain();
    assert_eq!(failing(&readiness), ("lifecycle".to_owned(), false));
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_was_there_once_may_be_away_and_the_process_still_takes_work() {
    let never_seen = Readiness::default();
    never_seen.fails(Check::Broker, "refused");
    assert!(!never_seen.report().ready);

    let readiness = all_hold();
    readiness.fails(Check::Broker, "no answer");
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(failing(&readiness), ("broker".to_owned(), true));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_confirms_any_more_is_not_believed() {
    let readiness = all_hold();
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(failing(&readiness), (String::new(), true));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(failing(&readiness), ("database".to_owned(), false));
    readiness.holds(Check::Database);
    assert_eq!(failing(&readiness), (String::new(), true));
}
