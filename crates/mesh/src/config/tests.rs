use clap::{CommandFactory, Parser};

use super::*;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    arguments: Arguments,
}

fn complete() -> Arguments {
    Arguments {
        database_url: Some("postgres://orders:hunter2@db:5433/orders".to_owned()),
        process: ProcessArguments {
            nats_url: Some("nats://a:4222,nats://b:4222".to_owned()),
            ..ProcessArguments::default()
        },
        ..Arguments::default()
    }
}

fn variables(errors: &ConfigErrors) -> Vec<&str> {
    errors.0.iter().map(|error| error.variable.as_str()).collect()
}

#[test]
fn the_two_addresses_are_enough() {
    let config = complete().check(Vec::new()).unwrap();
    assert_eq!(config.process.listen.to_string(), "0.0.0.0:8080");
    assert_eq!(config.process.drain.as_secs(), 20);
    assert_eq!((config.database_connections_max, config.process.concurrency), (16, 14));
    assert_eq!(config.relay, RelayMode::Inside);
    assert_eq!(config.process.newer_version_wait.as_secs(), 600);
    assert_eq!(config.process.telemetry, TelemetryConfig::default());
}

/// All that is wrong at once with what every process is told.
fn mistaken() -> ProcessArguments {
    ProcessArguments {
        nats_creds: Some("/does/not/exist.creds".to_owned()),
        listen: Some("8080".to_owned()),
        drain_seconds: Some("0".to_owned()),
        log: Some("=[".to_owned()),
        log_format: Some("xml".to_owned()),
        otlp_endpoint: Some("https://collector:4318".to_owned()),
        newer_version_wait_seconds: Some("-1".to_owned()),
        ..ProcessArguments::default()
    }
}

#[test]
fn a_service_without_a_database_knows_nothing_of_one() {
    let arguments = KvArguments { process: complete().process, concurrency: Some("200".to_owned()) };
    assert_eq!(arguments.check(Vec::new()).unwrap().concurrency, 200);
    assert_eq!(KvArguments { concurrency: None, ..arguments }.check(Vec::new()).unwrap().concurrency, 16);
    for variable in ["MESH_DATABASE_URL", "MESH_RELAY", "MESH_DATABASE_CONNECTIONS_MAX"] {
        let unknown = unknown_variables::<KvArguments>([(variable.to_owned(), "x".to_owned())]);
        assert_eq!(unknown.len(), 1, "{variable}");
    }
    let mistaken = KvArguments { process: mistaken(), concurrency: Some("0".to_owned()) };
    assert_eq!(variables(&mistaken.check(Vec::new()).unwrap_err()).len(), 9);
}

#[test]
fn every_mistake_is_reported_at_once() {
    let arguments = Arguments {
        database_url: Some("mysql://root:hunter2@db/orders".to_owned()),
        process: mistaken(),
        database_connections_max: Some("two".to_owned()),
        relay: Some("outside".to_owned()),
        ..Arguments::default()
    };
    let unknown = unknown_variables::<Arguments>([("MESH_LISTN".to_owned(), "x".to_owned())]);
    let errors = arguments.check(unknown).unwrap_err();
    assert_eq!(
        variables(&errors),
        [
            "MESH_LISTN",
            "MESH_DATABASE_URL",
            "MESH_DATABASE_CONNECTIONS_MAX",
            "MESH_NATS_URL",
            "MESH_NATS_CREDS",
            "MESH_LISTEN",
            "MESH_DRAIN_SECONDS",
            "MESH_NEWER_VERSION_WAIT_SECONDS",
            "MESH_LOG",
            "MESH_LOG_FORMAT",
            "MESH_OTLP_ENDPOINT",
            "MESH_RELAY",
        ]
    );
    let text = errors.to_string();
    assert!(text.contains("MESH_DRAIN_SECONDS=\"0\": expected a whole number from 1 to 3600"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn handlers_leave_two_connections() {
    let with = |pool: &str, concurrency: &str| {
        Arguments {
            database_connections_max: Some(pool.to_owned()),
            concurrency: Some(concurrency.to_owned()),
            ..complete()
        }
        .check(Vec::new())
    };
    assert_eq!(with("10", "8").unwrap().process.concurrency, 8);
    let errors = with("10", "9").unwrap_err();
    assert_eq!(errors.0[0].to_string(), "MESH_CONCURRENCY=\"9\": expected a whole number from 1 to 8");
    assert_eq!(variables(&with("2", "1").unwrap_err()), ["MESH_DATABASE_CONNECTIONS_MAX"]);
}

#[test]
fn a_pool_smaller_than_the_default_concurrency_lowers_it() {
    let arguments = Arguments { database_connections_max: Some("5".to_owned()), ..complete() };
    assert_eq!(arguments.check(Vec::new()).unwrap().process.concurrency, 3);
}

#[test]
fn an_empty_variable_is_a_missing_one() {
    let empty = || Some(String::new());
    let process = ProcessArguments { listen: empty(), nats_url: empty(), ..ProcessArguments::default() };
    let arguments = Arguments { process, ..complete() };
    assert_eq!(variables(&arguments.check(Vec::new()).unwrap_err()), ["MESH_NATS_URL"]);
}

#[test]
fn passwords_do_not_print() {
    let config = complete().check(Vec::new()).unwrap();
    let text = format!("{config:?}");
    assert!(text.contains("postgres://***@db:5433/orders"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn secrets_do_not_go_into_addresses() {
    for nats_url in ["nats://orders:hunter2@a:4222", "nats://a:4222,nats://hunter2@b:4222"] {
        let process = ProcessArguments { nats_url: Some(nats_url.to_owned()), ..ProcessArguments::default() };
        let arguments = Arguments { process, ..complete() };
        let errors = arguments.check(Vec::new()).unwrap_err();
        assert_eq!(variables(&errors), ["MESH_NATS_URL"]);
        assert!(!errors.to_string().contains("hunter2"), "{errors}");
    }
}

#[test]
fn migrations_prefer_their_own_address() {
    let own = Arguments { migration_database_url: Some("postgres://owner@direct/orders".to_owned()), ..complete() };
    assert_eq!(format!("{:?}", own.check_migration(Vec::new()).unwrap()), "postgres://***@direct:5432/orders");
    assert_eq!(format!("{:?}", complete().check_migration(Vec::new()).unwrap()), "postgres://***@db:5433/orders");
    assert_eq!(variables(&Arguments::default().check_migration(Vec::new()).unwrap_err()), ["MESH_DATABASE_URL"]);
}

#[test]
fn unknown_variables_name_the_nearest() {
    let unknown = |name: &str| {
        let errors = unknown_variables::<Arguments>([(name.to_owned(), "hunter2".to_owned())]);
        errors.first().map(ToString::to_string)
    };
    assert_eq!(
        unknown("MESH_DATABSE_URL").as_deref(),
        Some("MESH_DATABSE_URL: unknown variable; did you mean MESH_DATABASE_URL?")
    );
    assert_eq!(
        unknown("MESH_QQQQQQQQQQ").as_deref(),
        Some("MESH_QQQQQQQQQQ: unknown variable; --help lists those that exist")
    );
    assert_eq!(unknown("MESH_LISTEN"), None);
    assert_eq!(unknown("MESH_STATE_DIR"), None, "the command line of the mesh reads it");
    assert_eq!(unknown("PATH"), None);
}

#[test]
fn variables_that_kubernetes_injects_are_not_ours() {
    let injected = [
        "MESH_ORDERS_SERVICE_HOST",
        "MESH_ORDERS_SERVICE_PORT",
        "MESH_ORDERS_SERVICE_PORT_HTTP",
        "MESH_ORDERS_PORT",
        "MESH_ORDERS_PORT_8080_TCP",
        "MESH_ORDERS_PORT_8080_TCP_ADDR",
    ];
    assert_eq!(unknown_variables::<Arguments>(injected.map(|name| (name.to_owned(), String::new()))), []);
    assert_eq!(unknown_variables::<Arguments>([("MESH_LISTEN_PORT".to_owned(), String::new())]).len(), 1);
}

#[test]
fn every_flag_has_its_variable_and_its_help() {
    let command = Program::command();
    let ours: Vec<_> = command.get_arguments().filter(|argument| argument.get_id() != "help").collect();
    assert!(ours.len() >= 13);
    for argument in ours {
        let flag = argument.get_long().expect("a flag");
        let expected = format!("MESH_{}", flag.to_uppercase().replace('-', "_"));
        assert_eq!(argument.get_env().and_then(|env| env.to_str()), Some(expected.as_str()));
        assert!(argument.get_help().is_some(), "{flag}");
    }
    let _ = Program::parse_from(["service", "--listen", "[::]:80"]).arguments;
}
