//! The house rules, walked over every schema and every source file.

use std::path::Path;

use serde_json::Value;

use crate::released::{files, read};

/// Calls `visit` for every subschema of every fact, with a path for messages.
fn each_subschema(mut visit: impl FnMut(&str, &Value)) {
    fn walk(path: &str, schema: &Value, visit: &mut impl FnMut(&str, &Value)) {
        visit(path, schema);
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            walk(&format!("{path}.{name}"), member, visit);
        }
        if let Some(items) = schema.get("items") {
            walk(&format!("{path}[]"), items, visit);
        }
        for (at, branch) in schema["anyOf"].as_array().into_iter().flatten().enumerate() {
            walk(&format!("{path}|{at}"), branch, visit);
        }
    }
    for declared in events::all() {
        walk(&declared.event_type.to_string(), &declared.schema, &mut visit);
    }
}

/// The walk above must not walk past anything: these keywords are all that there is to descend into.
#[test]
fn schemas_use_only_known_keywords() {
    const KNOWN: [&str; 16] = [
        "$id",
        "$schema",
        "anyOf",
        "const",
        "description",
        "format",
        "items",
        "maximum",
        "minItems",
        "minimum",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
        "x-event",
    ];
    each_subschema(|path, schema| {
        for keyword in schema.as_object().expect("a schema is an object").keys() {
            // `default` would give meaning to what is absent, `additionalProperties` would close or half-close the model.
            assert!(KNOWN.contains(&keyword.as_str()), "{path}: {keyword}");
        }
    });
}

#[test]
fn no_number_is_a_float_and_every_integer_is_bounded() {
    let exact = -envelope::INTEGER_MAX..=envelope::INTEGER_MAX;
    each_subschema(|path, schema| {
        assert_ne!(schema["type"], "number", "{path}");
        assert!(schema["type"].is_string() || schema["anyOf"].is_array(), "{path} has no single type");
        if schema["type"] == "integer" {
            for bound in ["minimum", "maximum"] {
                let value = schema[bound].as_i64().unwrap_or_else(|| panic!("{path} has no {bound}"));
                assert!(exact.contains(&value), "{path}: {bound} {value}");
            }
        }
    });
}

/// A reader without our code has the schema and nothing else.
#[test]
fn every_member_is_described() {
    each_subschema(|path, schema| {
        let words = schema["description"].as_str().unwrap_or_default();
        assert!(words.len() >= 4, "{path} is not described");
        assert!(!words.contains('`') && !words.contains("]("), "{path} is described for Rust readers: {words}");
    });
}

/// A string is an id, has a pattern, or is an open set of codes whose last branch takes any text.
#[test]
fn strings_say_what_they_are_and_enums_are_open() {
    each_subschema(|path, schema| {
        if let Some(branches) = schema["anyOf"].as_array() {
            let (open, codes) = branches.split_last().expect("branches");
            assert_eq!(open["type"], "string", "{path}");
            assert!(open.get("const").is_none() && open.get("pattern").is_none(), "{path} is closed");
            for code in codes {
                let text = code["const"].as_str().unwrap_or_else(|| panic!("{path}: not a code"));
                assert!(envelope::is_token(text), "{path}: {text}");
            }
        } else if schema["type"] == "string" && !path.contains('|') {
            assert!(schema["format"] == "uuid" || schema["pattern"].is_string(), "{path} takes any text");
        }
        assert!(schema.get("enum").is_none(), "{path} is a closed enum");
    });
}

#[test]
fn the_source_keeps_contracts_open_and_exact() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for path in files(&source) {
        let text = String::from_utf8(read(&path)).expect("UTF-8");
        let is_declaration = path.ends_with("catalogue.rs") || path.ends_with("flow.rs");
        for banned in ["f32", "f64", "serde(other)", "deny_unknown_fields", "rust_decimal", "rename_all = \"camel"] {
            // Catalogues and flow declarations are files that people write, where an unknown member is a slip of the pen;
            // facts are not.
            let excused = is_declaration && banned == "deny_unknown_fields";
            assert!(excused || !text.contains(banned), "{} contains {banned}", path.display());
        }
    }
}

/// Each major below the current one has a lift or was never released.
#[test]
fn lifts_form_a_chain() {
    for declared in events::all() {
        let mut lifts = declared.lifts_from.clone();
        lifts.sort_unstable();
        assert_eq!(lifts, (1..declared.event_type.major).collect::<Vec<_>>(), "{}", declared.event_type);
    }
}
