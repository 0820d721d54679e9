//! What a fact promises beyond its shape, and the list of all of them.

use envelope::{Event, EventType};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

use crate::{
    InventoryFailed, InventoryReleased, InventoryReserved, OrderCancelled, OrderConfirmed, OrderCreated, Outcome,
    PaymentDeclined, PaymentProcessed, RefundIssued,
};

/// A fact with a schema and a part to play.
pub trait Contract: Event + JsonSchema {
    /// The parts that the fact plays.
    const OUTCOMES: &'static [Outcome];
}

/// What there is to know about a fact without its Rust type.
#[derive(Debug, Clone, PartialEq)]
pub struct FactDeclaration {
    /// Its name on the wire.
    pub event_type: EventType,
    /// Additive edits of the schema.
    pub revision: u16,
    /// The service that may say it.
    pub publisher: &'static str,
    /// The parts that it plays in its flow.
    pub outcomes: &'static [Outcome],
    /// Older majors that are still read.
    pub lifts_from: Vec<u16>,
    /// JSON Schema of the body, as a reader sees it.
    pub schema: Value,
}

/// The name of a fact without its version, `<domain>.<fact>`.
pub fn fact<E: Event>() -> String {
    format!("{}.{}", E::DOMAIN, E::NAME)
}

/// Declares one fact.
pub fn declare<C: Contract>() -> FactDeclaration {
    FactDeclaration {
        event_type: EventType::of::<C>(),
        revision: C::REVISION,
        publisher: C::DOMAIN,
        outcomes: C::OUTCOMES,
        lifts_from: C::LIFTS.iter().map(|(from, _)| *from).collect(),
        schema: schema::<C>(),
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

/// The schema in its committed form: self-contained, in reading direction, sorted.
fn schema<C: Contract>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<C>().to_value();
    if let Value::Object(members) = &mut schema {
        let id = format!("urn:mesh:schema:{}:{}:{}", fact::<C>(), C::MAJOR, C::REVISION);
        members.insert("$id".to_owned(), json!(id));
    }
    sort_required(&mut schema);
    schema
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
