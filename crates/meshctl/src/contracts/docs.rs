//! `contracts docs`: a page in Markdown about every fact.

use std::fmt::{self, Write};

use events::catalogue::ServiceEntry;
use serde::Serialize;
use serde_json::Value;

use super::folder::{ContractFolder, SchemaFile};
use crate::catalogue::Catalogue;
use crate::flows::fact::spoken;
use crate::graph::{Graph, model::FactNode};

/// The page, and what it is made of.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    facts: Vec<Fact>,
}

/// What there is to know about a fact.
#[derive(Debug, Serialize)]
struct Fact {
    #[serde(rename = "type")]
    event_type: String,
    name: String,
    service: String,
    about: String,
    outcome: Vec<events::OutcomeKind>,
    undone_by: Option<String>,
    key: String,
    said_by: Vec<String>,
    heard_by: Vec<String>,
    revision: u16,
    members: Vec<Member>,
}

/// One member of a body.
#[derive(Debug, PartialEq, Serialize)]
struct Member {
    path: String,
    form: String,
    required: bool,
    about: String,
    /// The services that read it, by what they say under `needs`.
    read_by: Vec<String>,
}

/// Describes the facts of some folders.
pub(super) fn page(folders: &[ContractFolder]) -> Page {
    let services: Vec<ServiceEntry> = folders.iter().flat_map(|folder| folder.catalogue.services.clone()).collect();
    let graph = Graph::new(&Catalogue { services, flows: Vec::new() });
    let of = |folder: &ContractFolder| -> Vec<Fact> {
        let newest = folder.facts().into_iter().filter_map(|(fact, major)| folder.newest(fact, major));
        newest.map(|file| describe(file, &graph, folders)).collect()
    };
    Page { facts: folders.iter().flat_map(of).collect() }
}

fn describe(file: &SchemaFile, graph: &Graph, folders: &[ContractFolder]) -> Fact {
    let node: Option<&FactNode> = graph.fact(&file.fact);
    let name = |speaker: &crate::graph::model::Speaker| format!("{}/{}", speaker.service, speaker.name);
    let event_type = format!("{}.v{}", file.fact, file.major);
    let mut members = Vec::new();
    let needs = folders.iter().flat_map(|folder| &folder.needs).filter(|(_, of, _)| *of == event_type);
    let needs: Vec<(&str, &Value)> = needs.map(|(service, _, need)| (service.as_str(), need)).collect();
    collect("", &file.schema, &needs, &mut members);
    Fact {
        name: spoken(&file.fact),
        service: file.fact.split('.').next().unwrap_or_default().to_owned(),
        about: text(&file.schema, "description"),
        outcome: node.map(|node| node.outcome.clone()).unwrap_or_default(),
        undone_by: node.and_then(|node| node.undone_by.clone()),
        key: text(&file.schema["x-event"], "key"),
        said_by: graph.saying(&file.fact).map(name).collect(),
        heard_by: graph.hearing(&file.fact).map(name).collect(),
        revision: file.revision,
        event_type,
        members,
    }
}

fn collect(prefix: &str, schema: &Value, needs: &[(&str, &Value)], members: &mut Vec<Member>) {
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let readers: Vec<(&str, &Value)> =
            needs.iter().filter_map(|(service, need)| Some((*service, need["properties"].get(name)?))).collect();
        members.push(Member {
            form: form(member),
            required: schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name)),
            about: text(member, "description"),
            read_by: readers.iter().map(|(service, _)| (*service).to_owned()).collect(),
            path: path.clone(),
        });
        collect(&path, member, &readers, members);
        if let Some(items) = member.get("items") {
            let of_items: Vec<(&str, &Value)> =
                readers.iter().filter_map(|(service, need)| Some((*service, need.get("items")?))).collect();
            collect(&format!("{path}[]"), items, &of_items, members);
        }
    }
}

/// The form of a value in a few words.
fn form(schema: &Value) -> String {
    if let Some(branches) = schema["anyOf"].as_array() {
        let codes: Vec<&str> = branches.iter().filter_map(|branch| branch["const"].as_str()).collect();
        return format!("code: {}, or another", codes.join(", "));
    }
    let form = text(schema, "type");
    match (schema["format"].as_str(), schema["pattern"].as_str()) {
        (Some("uuid"), _) => "UUID".to_owned(),
        (_, Some(pattern)) => format!("{form} like {pattern}"),
        _ => form,
    }
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Facts\n")?;
        self.facts.iter().try_for_each(|fact| write!(f, "{fact}"))
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<&str> = self.outcome.iter().map(|part| crate::graph::word(*part)).collect();
        writeln!(f, "## {}\n\n{}\n", self.name, self.about)?;
        writeln!(f, "- On the wire: `{}`, revision {}, ordered by `{}`", self.event_type, self.revision, self.key)?;
        if !parts.is_empty() {
            writeln!(f, "- Part: {}", parts.join(", "))?;
        }
        self.undone_by.iter().try_for_each(|undo| writeln!(f, "- Undone by: {}", spoken(undo)))?;
        writeln!(f, "- Said by: {}", or_nobody(&self.said_by))?;
        writeln!(f, "- Heard by: {}\n", or_nobody(&self.heard_by))?;
        writeln!(f, "| member | form | | meaning | read by |\n|---|---|---|---|---|")?;
        for member in &self.members {
            let optional = if member.required { "" } else { "optional" };
            // A bar would end the cell.
            let cell = |text: &str| text.replace('|', "\\|");
            let mut row = format!("| `{}` | {} | {optional} ", member.path, cell(&member.form));
            write!(row, "| {} | {} |", cell(&member.about), member.read_by.join(", "))?;
            writeln!(f, "{row}")?;
        }
        writeln!(f)
    }
}

fn or_nobody(names: &[String]) -> String {
    if names.is_empty() { "nobody".to_owned() } else { names.join(", ") }
}
