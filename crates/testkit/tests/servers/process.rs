//! Child processes: signals, output, and above all that nothing is left behind.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sqlx::{Connection, PgConnection};
use testkit::{ChildProcess, Error, Nats, NatsOptions, Postgres, PostgresOptions, Program, wait};

const LIMIT: Duration = Duration::from_secs(10);
/// What a killed test may leave for how long.
const GONE_WITHIN: Duration = Duration::from_secs(2);

fn shell(script: &str) -> Program {
    Program::new("script", "sh").args(["-c", script])
}

/// The state letter of a process; `None` when it is gone. One that nobody reaps is gone for our purpose.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next().filter(|state| *state != 'Z')
}

async fn first_line(child: &ChildProcess) -> String {
    wait::until("a line of output", LIMIT, || async {
        let line = child.log_tail(1);
        if line.is_empty() { Err("nothing") } else { Ok(line) }
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_child_has_its_environment_its_output_and_its_own_status() {
    let program = shell(r#"echo "$GREETING from $$ in $PWD"; echo trouble >&2; exit 3"#);
    let child = ChildProcess::spawn(program.env("GREETING", "hello").current_dir("/")).unwrap();
    let status = child.wait_exit(LIMIT).await.unwrap();
    assert_eq!(status.code(), Some(3));
    assert_eq!(child.log_tail(2), format!("hello from {} in /\ntrouble", child.pid()));
    assert_eq!(child.exit_status(), Some(status));
    child.kill9().await; // the number may be another's by now: nothing is sent
}

#[tokio::test]
async fn only_what_is_given_gets_into_a_cleared_environment() {
    let child = ChildProcess::spawn(Program::new("env", "env").clear_env().env("ONLY", "this")).unwrap();
    child.wait_exit(LIMIT).await.unwrap();
    let log = child.log_tail(50);
    let mut names: Vec<&str> = log.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    // The shell at the gate adds these.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    names.sort_unstable();
    assert_eq!(names, ["ONLY", "PATH"]);
}

#[tokio::test]
async fn signals_stop_continue_end_and_kill() {
    let polite = shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
    let child = ChildProcess::spawn(polite.clone()).unwrap();
    first_line(&child).await;
    child.stop();
    wait::until("the process to stop", LIMIT, || async {
        if state(child.pid()) == Some('T') { Ok(()) } else { Err(format!("{:?}", state(child.pid()))) }
    })
    .await
    .unwrap();
    child.term();
    assert!(child.is_running(), "a stopped process does not even hear SIGTERM");
    child.cont();
    assert!(child.wait_exit(LIMIT).await.unwrap().success());
    assert_eq!(child.log_tail(1), "bye");

    let child = ChildProcess::spawn(polite).unwrap();
    first_line(&child).await;
    child.kill9().await;
    assert_eq!(child.exit_status().and_then(|status| status.signal()), Some(9));
}

#[tokio::test]
async fn a_shutdown_waits_for_the_grace_and_not_longer() {
    let stubborn = ChildProcess::spawn(shell("trap '' TERM; echo ready; while :; do sleep 0.01; done")).unwrap();
    first_line(&stubborn).await;
    let late = stubborn.wait_exit(Duration::from_millis(50)).await;
    let Err(Error::NotReady { log, .. }) = late else { panic!("{late:?}") };
    assert_eq!(log, "ready");
    let status = stubborn.shutdown(Duration::from_millis(100)).await;
    assert_eq!(status.signal(), Some(9));
}

#[tokio::test]
async fn a_dropped_child_takes_its_children_along() {
    let child = ChildProcess::spawn(shell("sleep 600 & echo $!; wait")).unwrap();
    let grandchild: u32 = first_line(&child).await.parse().unwrap();
    assert!(state(grandchild).is_some());
    let pid = child.pid();
    drop(child);
    assert_eq!(state(pid), None);
    wait::until("the grandchild to be gone", LIMIT, || async { state(grandchild).map_or(Ok(()), Err) }).await.unwrap();
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error_that_names_it() {
    let error = ChildProcess::spawn(Program::new("orders", "/nowhere/orders")).unwrap_err();
    assert_eq!(error.to_string(), "cannot start orders (/nowhere/orders)");
}

#[tokio::test]
async fn a_log_of_the_caller_grows_and_each_process_shows_its_own_part() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("orders.log");
    for word in ["first", "second"] {
        let child = ChildProcess::spawn(shell(&format!("echo {word}")).log_to(&log)).unwrap();
        child.wait_exit(LIMIT).await.unwrap();
        assert_eq!(child.log_tail(9), word);
    }
    assert_eq!(fs::read_to_string(&log).unwrap(), "first\nsecond\n");
}

/// Tells a run of this test binary how it is to end, after it has started servers.
const VICTIM: &str = "TESTKIT_TEST_VICTIM";

/// Starts servers, says on standard output what must be gone later, and ends as it is told.
async fn be_the_victim(end: &str) {
    let postgres = Postgres::start(PostgresOptions::new()).await.unwrap();
    let nats = Nats::start(NatsOptions::new()).await.unwrap();
    let database = testkit::database("victim", |_| async { Ok::<_, String>(()) }).await.unwrap();
    let stubborn = ChildProcess::spawn(shell("trap '' TERM INT QUIT; sleep 600 & echo $!; wait; wait")).unwrap();
    let mut session = PgConnection::connect(&postgres.url("postgres")).await.unwrap();
    let backend: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut session).await.unwrap();
    let shared: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(database.pool()).await.unwrap();
    let grandchild = first_line(&stubborn).await;
    println!("\nvictim pid {grandchild}");
    for pid in [postgres.pid(), nats.pid(), stubborn.pid(), backend.unsigned_abs(), shared.unsigned_abs()] {
        println!("\nvictim pid {pid}");
    }
    let scratch = testkit::scratch::dir("mine").unwrap();
    for directory in [postgres.data_directory(), nats.store_dir(), scratch.path().parent().unwrap().to_owned()] {
        println!("\nvictim directory {}", directory.display());
    }
    println!("\nvictim ready");
    match end {
        // Neither runs `Drop`.
        "exit" => std::process::exit(0),
        _ => std::future::pending().await,
    }
}

/// Runs this test again as the victim; the processes and directories that it made.
fn run_victim(test: &str, end: &str) -> (std::process::Child, Vec<u32>, Vec<PathBuf>) {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(VICTIM, end)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut pids, mut directories) = (Vec::new(), Vec::new());
    for line in BufReader::new(victim.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["victim", "pid", pid] => pids.push(pid.parse().unwrap()),
            ["victim", "directory", directory] => directories.push(directory.into()),
            ["victim", "ready"] => break,
            _ => {}
        }
    }
    assert_eq!((pids.len(), directories.len()), (6, 3), "the victim did not get ready");
    (victim, pids, directories)
}

async fn assert_gone(pids: &[u32], directories: &[PathBuf]) {
    wait::until("everything of the victim to be gone", GONE_WITHIN, || async {
        let alive: Vec<u32> = pids.iter().copied().filter(|pid| state(*pid).is_some()).collect();
        let left: Vec<&Path> = directories.iter().map(PathBuf::as_path).filter(|path| path.exists()).collect();
        if alive.is_empty() && left.is_empty() { Ok(()) } else { Err(format!("{alive:?} {left:?}")) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_killed_test_leaves_neither_processes_nor_files() {
    if let Ok(end) = std::env::var(VICTIM) {
        return be_the_victim(&end).await;
    }
    let test = "process::a_killed_test_leaves_neither_processes_nor_files";
    let (mut victim, pids, directories) = run_victim(test, "killed");
    assert!(pids.iter().all(|pid| state(*pid).is_some()) && directories.iter().all(|path| path.exists()));
    victim.kill().unwrap(); // SIGKILL
    victim.wait().unwrap();
    assert_gone(&pids, &directories).await;
}

#[tokio::test]
async fn a_test_that_exits_without_dropping_leaves_neither_processes_nor_files() {
    if let Ok(end) = std::env::var(VICTIM) {
        return be_the_victim(&end).await;
    }
    let test = "process::a_test_that_exits_without_dropping_leaves_neither_processes_nor_files";
    let (mut victim, pids, directories) = run_victim(test, "exit");
    victim.wait().unwrap();
    assert_gone(&pids, &directories).await;
}
