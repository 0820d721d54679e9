use std::fs;
use std::path::Path;

use envelope::Timestamp;
use serde_json::{Value, json};

use super::compatible::{problems, unmet};
use super::folder::ContractFolder;
use super::{check, docs, waiver};
use crate::graph::Finding;

const FACT: &str = "parcels.booked";

/// A schema by the rules of the house.
fn schema(revision: u16) -> Value {
    json!({
        "$id": format!("urn:mesh:schema:{FACT}:1:{revision}"),
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Booked",
        "description": "A parcel was booked.",
        "type": "object",
        "required": ["parcel_id", "weight"],
        "properties": {
            "parcel_id": { "description": "The parcel.", "type": "string", "format": "uuid" },
            "weight": { "description": "In grams.", "type": "integer", "minimum": 1, "maximum": 30_000 },
            "class": { "description": "How fast.", "anyOf": [
                { "description": "At once.", "const": "express", "type": "string" },
                { "description": "Any other code.", "type": "string" },
            ] },
            "parts": { "description": "What is in it.", "type": "array", "items": {
                "description": "One part.", "type": "object", "required": ["sku"],
                "properties": { "sku": { "description": "Which.", "type": "string", "pattern": "^[a-z]+$" } },
            } },
        },
        "x-event": { "type": format!("{FACT}.v1"), "publisher": "parcels", "key": "parcel_id", "outcome": ["entry"] },
    })
}

/// A folder of contracts on disk: one fact, one reader of it.
struct Contracts {
    folder: tempfile::TempDir,
}

impl Contracts {
    /// Sound and locked.
    fn new() -> Self {
        let contracts = Self { folder: tempfile::tempdir().unwrap() };
        contracts.write(&format!("schemas/{FACT}/v1/r1.schema.json"), &schema(1));
        let sample = json!({ "parcel_id": "0198c2f0-0000-7000-8000-000000000001", "weight": 900, "class": "express" });
        contracts.write(&format!("schemas/{FACT}/v1/samples/express.json"), &sample);
        contracts.catalogue(1);
        let need = json!({
            "type": "object", "required": ["weight"], "properties": { "weight": { "type": "integer" } },
            "x-headers": ["ce-id", "ce-type"],
        });
        contracts.write("needs/booked.json", &need);
        contracts.read().enter_new_files().unwrap();
        contracts
    }

    fn catalogue(&self, revision: u16) {
        let parcels = json!({
            "service": "parcels",
            "facts": [{ "type": format!("{FACT}.v1"), "revision": revision, "outcome": ["entry"] }],
            "actions": [{ "name": "book", "emits": [FACT] }],
            "reactions": [],
        });
        let scales = json!({
            "service": "scales", "facts": [],
            "reactions": [{ "subscriber": "weigh", "on": FACT, "majors": [1], "emits": [] }],
            "needs": { format!("{FACT}.v1"): "needs/booked.json" },
        });
        self.write("catalogue/parcels.json", &parcels);
        self.write("catalogue/scales.json", &scales);
    }

    fn write(&self, name: &str, value: &Value) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    }

    fn read(&self) -> ContractFolder {
        ContractFolder::read(self.folder.path()).unwrap()
    }

    /// Rule and subject of everything that is found.
    fn found(&self) -> Vec<(&'static str, String)> {
        check::all(&[self.read()]).into_iter().map(|finding| (finding.rule, finding.subject)).collect()
    }
}

fn pair(rule: &'static str, subject: &str) -> (&'static str, String) {
    (rule, subject.to_owned())
}

#[test]
fn our_own_contracts_may_be_released() {
    let folder = ContractFolder::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events")).unwrap();
    assert!(folder.facts().len() >= 9 && folder.samples.len() >= 9 && folder.needs.len() >= 9, "all of it was read");
    let mut findings = check::all(std::slice::from_ref(&folder));
    findings.extend(check::code(&folder).unwrap());
    let wrong: Vec<String> = findings.iter().filter(|finding| finding.is_error()).map(Finding::to_string).collect();
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn contracts_of_another_repository_may_be_released() {
    assert_eq!(Contracts::new().found(), []);
}

#[test]
fn what_was_released_is_neither_edited_nor_removed_nor_added_to_in_silence() {
    let contracts = Contracts::new();
    let name = format!("{FACT}/v1/samples/express.json");
    contracts.write(
        &format!("schemas/{name}"),
        &json!({ "parcel_id": "0198c2f0-0000-7000-8000-000000000001", "weight": 1 }),
    );
    assert_eq!(contracts.found(), [pair("released-edited", &name)]);
    fs::remove_file(contracts.folder.path().join("schemas").join(&name)).unwrap();
    let found = contracts.found();
    assert_eq!(found, [pair("released-removed", &name), pair("no-sample", "parcels.booked.v1")]);

    let contracts = Contracts::new();
    contracts.write("schemas/parcels.booked/notes.json", &json!({}));
    assert_eq!(
        contracts.found(),
        [pair("not-locked", "parcels.booked/notes.json"), pair("misplaced", "parcels.booked/notes.json")]
    );
}

#[test]
fn a_new_revision_is_entered_and_an_incompatible_one_is_not_let_through() {
    let contracts = Contracts::new();
    let name = format!("{FACT}/v1/r2.schema.json");
    let mut later = schema(2);
    later["properties"]["note"] = json!({ "description": "A word.", "type": "string", "pattern": "^.{0,9}$" });
    contracts.write(&format!("schemas/{name}"), &later);
    assert_eq!(contracts.found(), [pair("not-locked", &name), pair("revision", "parcels.booked.v1")]);
    contracts.catalogue(2);
    assert_eq!(contracts.read().enter_new_files().unwrap(), std::slice::from_ref(&name));
    assert_eq!(contracts.found(), []);

    later["required"] = json!(["note", "parcel_id", "weight"]);
    contracts.write(&format!("schemas/{name}"), &later);
    let found = contracts.found();
    // The sample of the first revision lacks what the second asks for.
    let sample = format!("{FACT}/v1/samples/express.json");
    assert_eq!(found, [pair("released-edited", &name), pair("incompatible", &name), pair("sample-invalid", &sample)]);
}

#[test]
fn revisions_have_no_gap_and_say_who_they_are() {
    let contracts = Contracts::new();
    let name = format!("{FACT}/v1/r3.schema.json");
    let mut odd = schema(2);
    odd["x-event"]["key"] = json!("class");
    contracts.write(&format!("schemas/{name}"), &odd);
    contracts.catalogue(3);
    contracts.read().enter_new_files().unwrap();
    let expected = [
        pair("revision-gap", &name),
        pair("identity", &name), // its $id
        pair("identity", &name), // a key that may be absent
        pair("incompatible", &name),
    ];
    assert_eq!(contracts.found(), expected);
}

#[test]
fn a_reader_gets_what_it_needs_from_schema_samples_and_headers() {
    let of = |need: Value| {
        let contracts = Contracts::new();
        contracts.write("needs/booked.json", &need);
        contracts.found()
    };
    let member = |name: &str, member_type: &str| json!({ "type": "object", "required": [name], "properties": { name: { "type": member_type } } });
    let subject = "scales of parcels.booked.v1";
    assert_eq!(of(member("weight", "integer")), []);
    assert_eq!(
        of(member("weight", "string")),
        [pair("need", subject), pair("need-sample", "parcels.booked/v1/samples/express.json")]
    );
    // It is in the sample, and not promised.
    assert_eq!(of(member("class", "string")), [pair("need", subject)]);
    assert_eq!(of(json!({ "type": "object", "x-headers": ["ce-causationid"] })), [pair("need", subject)]);
}

/// A team that only hears keeps a catalogue and needs, and names the folder of those whom it hears.
#[test]
fn a_folder_that_only_hears_is_checked_together_with_the_one_it_hears() {
    let (publisher, hearer) = (Contracts::new(), tempfile::tempdir().unwrap());
    let entry = json!({
        "service": "labels", "facts": [],
        "reactions": [{ "subscriber": "print", "on": FACT, "majors": [1], "emits": [] }],
        "needs": { format!("{FACT}.v1"): "booked.json" },
    });
    fs::create_dir(hearer.path().join("catalogue")).unwrap();
    fs::write(hearer.path().join("catalogue/labels.json"), entry.to_string()).unwrap();
    fs::write(
        hearer.path().join("booked.json"),
        json!({ "type": "object", "required": ["parcel_id"],
        "properties": { "parcel_id": { "type": "string" } } })
        .to_string(),
    )
    .unwrap();
    let labels = ContractFolder::read(hearer.path()).unwrap();
    let alone: Vec<_> = check::all(std::slice::from_ref(&labels)).into_iter().map(|finding| finding.rule).collect();
    assert_eq!(alone, ["need", "unknown-fact", "no-entry"]);
    assert_eq!(check::all(&[publisher.read(), labels]), []);
}

/// What is done to a schema, and how.
type Edit<'a> = (&'a str, &'a dyn Fn(&mut Value));

/// Inside a major, readers of every revision read what writers of every other one write.
#[test]
fn only_optional_members_and_codes_of_open_sets_may_be_added() {
    let edited = |edit: &dyn Fn(&mut Value)| {
        let mut later = schema(2);
        edit(&mut later);
        problems(&schema(1), &later).len()
    };
    let allowed: [Edit<'_>; 5] = [
        ("nothing", &|_| {}),
        ("an optional member", &|s| s["properties"]["note"] = json!({ "type": "string" })),
        ("an optional member of an item", &|s| {
            s["properties"]["parts"]["items"]["properties"]["note"] = json!({ "type": "string" });
        }),
        ("a code of an open set", &|s| {
            s["properties"]["class"]["anyOf"]
                .as_array_mut()
                .unwrap()
                .insert(0, json!({ "const": "slow", "type": "string" }));
        }),
        ("words, and the order of what is required", &|s| {
            s["description"] = json!("Somebody booked a parcel.");
            s["required"] = json!(["weight", "parcel_id"]);
        }),
    ];
    for (name, edit) in allowed {
        assert_eq!(edited(edit), 0, "{name}");
    }
    let forbidden: [Edit<'_>; 16] = [
        ("a required member", &|s| {
            s["properties"]["note"] = json!({ "type": "string" });
            s["required"] = json!(["note", "parcel_id", "weight"]);
        }),
        ("removing an optional member", &|s| {
            s["properties"].as_object_mut().unwrap().remove("class");
        }),
        ("required to optional", &|s| s["required"] = json!(["parcel_id"])),
        ("optional to required", &|s| s["required"] = json!(["class", "parcel_id", "weight"])),
        ("another type", &|s| s["properties"]["weight"]["type"] = json!("string")),
        ("a removed code", &|s| {
            s["properties"]["class"]["anyOf"].as_array_mut().unwrap().remove(0);
        }),
        ("a closed set", &|s| {
            s["properties"]["class"]["anyOf"].as_array_mut().unwrap().pop();
        }),
        ("a tighter range", &|s| s["properties"]["weight"]["maximum"] = json!(20_000)),
        ("a wider range", &|s| s["properties"]["weight"]["maximum"] = json!(40_000)),
        ("another pattern", &|s| {
            s["properties"]["parts"]["items"]["properties"]["sku"]["pattern"] = json!("^[a-z0-9]+$");
        }),
        ("another format", &|s| s["properties"]["parcel_id"]["format"] = json!("uri")),
        ("a default", &|s| s["properties"]["class"]["default"] = json!("express")),
        ("multipleOf", &|s| s["properties"]["weight"]["multipleOf"] = json!(10)),
        ("additionalProperties", &|s| s["additionalProperties"] = json!(false)),
        ("another key", &|s| s["x-event"]["key"] = json!("weight")),
        ("items of another kind", &|s| {
            s["properties"]["parts"].as_object_mut().unwrap().remove("items");
        }),
    ];
    for (name, edit) in forbidden {
        assert_ne!(edited(edit), 0, "{name}");
    }
}

#[test]
fn the_rules_of_the_house_are_walked_over_every_level() {
    let of = |edit: &dyn Fn(&mut Value)| {
        let contracts = Contracts::new();
        let mut odd = schema(1);
        edit(&mut odd);
        contracts.write(&format!("schemas/{FACT}/v1/r1.schema.json"), &odd);
        contracts.found().into_iter().filter(|(rule, _)| *rule == "house-rule").count()
    };
    assert_eq!(of(&|_| {}), 0);
    assert_eq!(of(&|s| s["properties"]["weight"]["type"] = json!("number")), 1);
    assert_eq!(of(&|s| s["properties"]["weight"]["maximum"] = json!(9_007_199_254_740_992_i64)), 1);
    assert_eq!(of(&|s| s["properties"]["weight"].as_object_mut().unwrap().remove("minimum").map(drop).unwrap()), 1);
    assert_eq!(of(&|s| s["properties"]["parts"]["items"]["properties"]["sku"]["description"] = json!("x")), 1);
    assert_eq!(of(&|s| s["properties"]["parts"]["items"]["enum"] = json!(["a"])), 1);
    assert_eq!(of(&|s| s["properties"]["parcel_id"]["format"] = json!("uri")), 1);
    assert_eq!(of(&|s| s["properties"]["class"]["anyOf"][0]["const"] = json!("Express!")), 1);
}

#[test]
fn what_is_read_has_to_be_promised_at_every_level() {
    let need = json!({ "type": "object", "properties": { "parts": { "type": "array", "items": {
        "type": "object", "required": ["sku", "count"], "properties": { "sku": { "type": "string" } } } } } });
    assert_eq!(unmet("body", &need, &schema(1)), ["body.parts[].count is relied on and not promised"]);
}

#[test]
fn a_waiver_holds_until_its_day_and_is_told() {
    let contracts = Contracts::new();
    fs::create_dir(contracts.folder.path().join("waivers")).unwrap();
    let text = "# Why\n\nrule: house-rule\nsubject: parcels.booked\nexpires: 2026-03-01\n\nAgreed with everybody.\n";
    fs::write(contracts.folder.path().join("waivers/weight.md"), text).unwrap();
    let at = |time: &str| {
        let findings = vec![Finding::error("house-rule", FACT, "wrong"), Finding::error("need", FACT, "wrong")];
        let time: Timestamp = time.parse().unwrap();
        let found = waiver::apply(findings, &[contracts.read()], time).unwrap();
        found.into_iter().filter(Finding::is_error).map(|finding| finding.rule).collect::<Vec<_>>()
    };
    assert_eq!(at("2026-02-28T23:59:59.999Z"), ["need"]);
    assert_eq!(at("2026-03-01T00:00:00.000Z"), ["house-rule", "need", "waiver-expired"]);
    fs::write(contracts.folder.path().join("waivers/weight.md"), "rule: house-rule\nexpires: soon\n").unwrap();
    assert!(waiver::apply(Vec::new(), &[contracts.read()], "2026-02-28T00:00:00.000Z".parse().unwrap()).is_err());
}

#[test]
fn the_page_tells_each_member_and_who_reads_it() {
    let page = docs::page(&[Contracts::new().read()]).to_string();
    let expected = "\
# Facts

## Booked

A parcel was booked.

- On the wire: `parcels.booked.v1`, revision 1, ordered by `parcel_id`
- Part: entry
- Said by: parcels/book
- Heard by: scales/weigh

| member | form | | meaning | read by |
|---|---|---|---|---|
| `class` | code: express, or another | optional | How fast. |  |
| `parcel_id` | UUID |  | The parcel. |  |
| `parts` | array | optional | What is in it. |  |
| `parts[].sku` | string like ^[a-z]+$ |  | Which. |  |
| `weight` | integer |  | In grams. | scales |

";
    assert_eq!(page, expected);
}
