//! What a fact promises beyond its shape, and the list of all of them.

use envelope::{DecodeError, Event, EventType, RawMessage};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

use crate::{
    InventoryFailed, InventoryReleased, InventoryReserved, OrderCancelled, OrderConfirmed, OrderCreated, Outcome,
    OutcomeKind, PaymentDeclined, PaymentProcessed, RefundIssued,
};

/// A fact with a schema and a part to play.
pub trait Contract: Event + JsonSchema {
    /// The member of the body that [`Event::key`] is taken from.
    const KEY: &'static str;
    /// The parts that the fact plays.
    const OUTCOMES: &'static [Outcome];
}

/// What there is to know about a fact without its Rust type.
#[derive(Debug, Clone)]
pub struct FactDeclaration {
    /// Its name on the wire.
    pub event_type: EventType,
    /// Additive edits of the schema.
    pub revision: u16,
    /// The service that may say it.
    pub publisher: &'static str,
    /// The member of the body that is the ordering key.
    pub key: &'static str,
    /// The parts that it plays in its flow.
    pub outcomes: &'static [Outcome],
    /// Older majors that are still read.
    pub lifts_from: Vec<u16>,
    /// JSON Schema of the body, as a reader sees it.
    pub schema: Value,
    /// Reads a message as this fact and gives back what was understood, lifted to the current major: for tools that show
    /// or check facts of any type.
    pub read: fn(&RawMessage) -> Result<Value, DecodeError>,
}

impl FactDeclaration {
    /// For an effect: the fact that undoes it, `<domain>.<fact>`.
    pub fn undone_by(&self) -> Option<&'static str> {
        undone_by(self.outcomes)
    }
}

fn undone_by(outcomes: &[Outcome]) -> Option<&'static str> {
    outcomes.iter().find_map(|outcome| outcome.undone_by())
}

/// The name of a fact without its version, `<domain>.<fact>`.
pub fn fact<E: Event>() -> String {
    EventType::of::<E>().fact()
}

/// Declares one fact.
pub fn declare<C: Contract>() -> FactDeclaration {
    FactDeclaration {
        event_type: EventType::of::<C>(),
        revision: C::REVISION,
        publisher: C::DOMAIN,
        key: C::KEY,
        outcomes: C::OUTCOMES,
        lifts_from: C::LIFTS.iter().map(|(from, _)| *from).collect(),
        schema: schema::<C>(),
        read: read::<C>,
    }
}

/// Every fact of the shop.
pub fn all() -> Vec<FactDeclaration> {
    vec![
        declare::<OrderCreated>(),
        declare::<OrderConfirmed>(),
        declare::<OrderCancelled>(),
        declare::<PaymentProcessed>(),
        declare::<PaymentDeclined>(),
        declare::<RefundIssued>(),
        declare::<InventoryReserved>(),
        declare::<InventoryFailed>(),
        declare::<InventoryReleased>(),
    ]
}

fn read<C: Contract>(raw: &RawMessage) -> Result<Value, DecodeError> {
    let (_, event) = envelope::decode::<C>(raw)?;
    serde_json::to_value(event).map_err(|error| DecodeError::BadBody(error.to_string()))
}

/// The schema in its committed form: self-contained, as a reader needs it, sorted.
fn schema<C: Contract>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<C>().to_value();
    let id = format!("urn:mesh:schema:{}:{}:{}", fact::<C>(), C::MAJOR, C::REVISION);
    if let Value::Object(members) = &mut schema {
        members.insert("$id".to_owned(), json!(id));
        members.insert("x-event".to_owned(), about::<C>());
    }
    sort_required(&mut schema);
    schema
}

/// What a reader without the Rust type wants to know beside the shape.
fn about<C: Contract>() -> Value {
    let outcome: Vec<OutcomeKind> = C::OUTCOMES.iter().map(|outcome| outcome.kind()).collect();
    let mut about = json!({
        "type": EventType::of::<C>().to_string(),
        "publisher": C::DOMAIN,
        "key": C::KEY,
        "outcome": outcome,
    });
    if let Some(undone_by) = undone_by(C::OUTCOMES) {
        about["undone_by"] = json!(undone_by);
    }
    about
}

/// `required` follows the order of declaration, which is no part of the contract.
fn sort_required(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Array(required)) = members.get_mut("required") {
                required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            }
            members.values_mut().for_each(sort_required);
        }
        Value::Array(items) => items.iter_mut().for_each(sort_required),
        _ => {}
    }
}
