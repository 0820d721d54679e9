use super::*;

const ADDRESSES: [&str; 4] = ["--database-url", "postgres://u@h/d", "--nats-url", "nats://h:4222"];

fn parse_all(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Invocation, ParseError> {
    let arguments = ["orders"].iter().chain(arguments).map(OsString::from);
    parse("orders", "1.2.3", arguments, variables.iter().map(|(name, value)| ((*name).into(), (*value).into())))
}

fn with_addresses(command: &[&'static str]) -> Vec<&'static str> {
    command.iter().copied().chain(ADDRESSES).collect()
}

#[test]
fn serving_is_the_default() {
    assert!(matches!(parse_all(&ADDRESSES, &[]), Ok(Invocation::Serve(_))));
    assert!(matches!(parse_all(&with_addresses(&["serve"]), &[]), Ok(Invocation::Serve(_))));
    assert!(matches!(parse_all(&with_addresses(&["relay"]), &[]), Ok(Invocation::Relay(_))));
    assert!(matches!(parse_all(&with_addresses(&["migrate"]), &[]), Ok(Invocation::Migrate(_))));
    assert!(matches!(parse_all(&["describe"], &[]), Ok(Invocation::Describe)));
}

#[test]
fn flags_may_stand_on_either_side_of_the_command() {
    let Ok(Invocation::Serve(config)) = parse_all(&[&ADDRESSES[..], &["serve", "--listen", "[::1]:9"]].concat(), &[])
    else {
        unreachable!("both places are read")
    };
    assert_eq!(config.process.listen.to_string(), "[::1]:9");
}

#[test]
fn unknown_variables_stop_every_command_that_reads_them() {
    for command in [&["serve"][..], &["relay"], &["migrate"]] {
        let parsed = parse_all(&with_addresses(command), &[("MESH_LISTN", "x")]);
        let Err(ParseError::Config(errors)) = parsed else { unreachable!("{command:?} reads the environment") };
        assert!(errors.to_string().contains("did you mean MESH_LISTEN?"), "{errors}");
    }
}

#[test]
fn help_explains_every_variable_and_code() {
    let Err(ParseError::CommandLine(help)) = parse_all(&["--help"], &[]) else { unreachable!("help is no run") };
    let text = help.to_string();
    assert!(text.starts_with("The service orders of the mesh"), "{text}");
    for expected in ["MESH_DATABASE_URL", "MESH_OTLP_ENDPOINT", "migrate", "describe", "Exit codes"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert_eq!(help.exit_code(), 0);
}

#[test]
fn the_command_lines_are_well_formed() {
    CommandLine::command().debug_assert();
    KvCommandLine::command().debug_assert();
}

#[test]
fn a_service_without_a_database_has_neither_relay_nor_migration() {
    let parse_all = |arguments: &[&str], variables: &[(&str, &str)]| {
        let arguments = ["notifications"].iter().chain(arguments).map(OsString::from);
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        parse_kv("notifications", "1.2.3", arguments, variables)
    };
    let nats = ["--nats-url", "nats://h:4222"];
    assert!(matches!(parse_all(&nats, &[]), Ok(KvInvocation::Serve(_))));
    assert!(matches!(parse_all(&["describe"], &[]), Ok(KvInvocation::Describe)));
    for command in ["relay", "migrate"] {
        assert!(matches!(parse_all(&[command, nats[0], nats[1]], &[]), Err(ParseError::CommandLine(_))), "{command}");
    }
    let parsed = parse_all(&nats, &[("MESH_DATABASE_URL", "postgres://u@h/d")]);
    let Err(ParseError::Config(errors)) = parsed else { unreachable!("there is no such variable") };
    assert!(errors.to_string().contains("MESH_DATABASE_URL: unknown variable"), "{errors}");
}

#[test]
fn exit_codes_tell_who_must_act() {
    let older = SchemaError::Older { service: "orders", pending: vec!["0002 more".to_owned()] };
    assert!(older.to_string().contains("run `orders migrate` first"), "{older}");
    assert_eq!(exit_of(&anyhow::Error::from(older).context("start")), Exit::Refused);
    assert_eq!(exit_of(&Refused("consumer orders is missing".to_owned()).into()), Exit::Refused);
    assert_eq!(exit_of(&ConfigErrors(Vec::new()).into()), Exit::Usage);
    assert_eq!(exit_of(&SchemaError::Database(sqlx::Error::PoolTimedOut).into()), Exit::Failed);
    assert_eq!(exit_of(&anyhow::anyhow!("anything else")), Exit::Failed);
    assert_eq!([Exit::Done, Exit::Failed, Exit::Usage, Exit::Refused].map(|exit| exit as u8), [0, 1, 2, 3]);
}
