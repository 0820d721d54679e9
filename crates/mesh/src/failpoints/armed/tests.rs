use std::os::unix::process::ExitStatusExt;
use std::panic::catch_unwind;
use std::process::{Command, Stdio};

use super::*;

#[test]
fn faults_are_read() {
    assert_eq!(
        "relay.after_claim=3:kill; consume.before_commit=*:sleep:250;".parse::<Faults>().unwrap().0,
        [
            Fault { point: "relay.after_claim", hit: Some(3), action: Action::Kill },
            Fault { point: "consume.before_commit", hit: None, action: Action::Sleep(Duration::from_millis(250)) },
        ]
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    let error = |faults: &str| faults.parse::<Faults>().unwrap_err();
    assert_eq!(error("relay.after_claim"), FaultError::Form("relay.after_claim".to_owned()));
    assert_eq!(error("relay.after_claim=3"), FaultError::Form("relay.after_claim=3".to_owned()));
    assert_eq!(error("relay.afterclaim=3:kill"), FaultError::Point { name: "relay.afterclaim".to_owned() });
    assert_eq!(error("relay.after_claim=0:kill"), FaultError::Hit("0".to_owned()));
    assert_eq!(error("relay.after_claim=1:explode"), FaultError::Action("explode".to_owned()));
    assert_eq!(error("relay.after_claim=1:sleep:soon"), FaultError::Action("sleep:soon".to_owned()));
}

/// One test for all actions: the registry of points belongs to the process.
#[test]
fn a_fault_acts_at_its_hit_and_at_no_other() {
    arm(&"janitor.mid_delete=2:panic;redrive.after_requeue=*:sleep:20".parse().unwrap());
    hit("janitor.mid_delete");
    assert!(catch_unwind(|| hit("janitor.mid_delete")).is_err(), "the second hit panics");
    hit("janitor.mid_delete");
    for _ in 0..2 {
        let before = Instant::now();
        hit("redrive.after_requeue");
        assert!(before.elapsed() >= Duration::from_millis(20), "every hit sleeps");
    }
}

/// The fault that a child of the next test injects into itself.
const CHILD: &str = "FAULT_OF_THE_CHILD";

/// Runs itself again, in a process of its own, since that is what the faults are about.
#[test]
fn kill_and_stop_reach_the_whole_process() {
    if let Ok(faults) = std::env::var(CHILD) {
        arm(&faults.parse().unwrap());
        hit("redrive.after_requeue");
        return;
    }
    let child = |faults: &str| {
        let this = "failpoints::armed::tests::kill_and_stop_reach_the_whole_process";
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", this]).env(CHILD, faults).stdout(Stdio::null());
        command.spawn().unwrap()
    };
    let mut killed = child("redrive.after_requeue=1:kill");
    assert_eq!(killed.wait().unwrap().signal(), Some(9));
    let mut untouched = child("redrive.after_requeue=2:kill");
    assert!(untouched.wait().unwrap().success(), "there is no second hit");
    let mut stopped = child("redrive.after_requeue=1:stop");
    let pid = rustix::process::Pid::from_child(&stopped);
    let (_, status) = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped(), "{status:?}");
    stopped.kill().unwrap();
    stopped.wait().unwrap();
}
