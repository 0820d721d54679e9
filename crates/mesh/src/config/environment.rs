//! Variables with our prefix that nobody reads: almost always a typing mistake, and a silent one.

use clap::{Args, Command};

use super::ConfigError;

const PREFIX: &str = "MESH_";

/// Variables of the command line, `meshctl`, which may be set in a shell that starts a service as well.
const OF_THE_COMMAND_LINE: [&str; 3] = ["MESH_STATE_DIR", "MESH_NATS_MONITOR_URL", "MESH_ORDERS_URL"];

/// One error for each variable with the prefix `MESH_` that no flag among `A` reads, naming the nearest one that exists.
///
/// Variables that Kubernetes injects for a service whose name starts with `mesh` are not ours and pass.
pub fn unknown_variables<A: Args>(variables: impl IntoIterator<Item = (String, String)>) -> Vec<ConfigError> {
    let known = known_variables::<A>();
    // The values stay out of the errors: a misspelt MESH_DATABASE_URL carries a password.
    let ours: Vec<String> =
        variables.into_iter().map(|(name, _)| name).filter(|name| name.starts_with(PREFIX)).collect();
    let linked: Vec<&str> = ours.iter().filter_map(|name| name.strip_suffix("_SERVICE_HOST")).collect();
    ours.iter()
        .filter(|name| !known.contains(name) && !OF_THE_COMMAND_LINE.contains(&name.as_str()))
        .filter(|name| !is_service_link(name, &linked))
        .map(|name| {
            let problem = match nearest(name, &known) {
                Some(near) => format!("unknown variable; did you mean {near}?"),
                None => "unknown variable; --help lists those that exist".to_owned(),
            };
            ConfigError { variable: name.clone(), value: None, problem }
        })
        .collect()
}

fn known_variables<A: Args>() -> Vec<String> {
    A::augment_args(Command::new("service"))
        .get_arguments()
        .filter_map(|argument| Some(argument.get_env()?.to_str()?.to_owned()))
        .collect()
}

/// Whether the name is one that Kubernetes derives from a service of the namespace: always `<NAME>_SERVICE_HOST`, and
/// with it `<NAME>_SERVICE_PORT..` and `<NAME>_PORT..`.
fn is_service_link(name: &str, linked: &[&str]) -> bool {
    let rest = |service: &&str| name.strip_prefix(*service);
    linked.iter().filter_map(rest).any(|rest| rest.starts_with("_SERVICE_") || rest.starts_with("_PORT"))
}

/// The known name with the fewest edits, if it is close enough to be meant.
fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let close_enough = name.len() / 3;
    known
        .iter()
        .map(|candidate| (distance(name, candidate), candidate.as_str()))
        .filter(|(edits, _)| *edits <= close_enough)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance in bytes: insertions, deletions and replacements that turn `left` into `right`.
fn distance(left: &str, right: &str) -> usize {
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.bytes().enumerate() {
        let mut current = vec![i + 1];
        for (j, b) in right.bytes().enumerate() {
            let replaced = previous[j] + usize::from(a != b);
            current.push(replaced.min(previous[j + 1] + 1).min(current[j] + 1));
        }
        previous = current;
    }
    previous[right.len()]
}
