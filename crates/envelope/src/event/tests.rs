//! The grammar of event types.

use serde::{Deserialize, Serialize};

use super::*;

#[derive(Serialize, Deserialize)]
struct ParcelSent {}

impl Event for ParcelSent {
    const DOMAIN: &'static str = "shipping";
    const NAME: &'static str = "parcel_sent";
    const MAJOR: u16 = 2;
    const REVISION: u16 = 1;

    fn key(&self) -> String {
        "parcel-1".to_owned()
    }
}

/// Only the constants are on the wire: the name of the Rust type is nowhere (a renamed type changes nothing).
#[test]
fn the_type_comes_from_the_constants() {
    assert_eq!(event_type::<ParcelSent>(), "shipping.parcel_sent.v2");
    assert_eq!("shipping.parcel_sent.v2".parse(), Ok(EventType::of::<ParcelSent>()));
    assert_eq!(EventType::of::<ParcelSent>().fact(), "shipping.parcel_sent");
}

#[test]
fn types_outside_the_grammar_are_refused() {
    let long = "a".repeat(33);
    let hostile = [
        "",
        ".",
        "..",
        "orders",
        "orders.order_created",
        "orders.order_created.v1.3",
        "Orders.order_created.v1",
        "orders.order-created.v1",
        "orders.order_created.1",
        "orders.order_created.v0",
        "orders.order_created.v01",
        "orders.order_created.v1000",
        "orders.order_created.v+1",
        "orders.order_created.v",
        "orders.*.v1",
        "orders.>.v1",
        "orders. .v1",
        "ordérs.order_created.v1",
        "1orders.order_created.v1",
        "_orders.order_created.v1",
        "orders..v1",
        "orders.order_created.v99999",
        " orders.order_created.v1",
        "orders.order_created.v1\n",
    ];
    for text in hostile {
        assert!(text.parse::<EventType>().is_err(), "{text:?} parsed");
    }
    assert!(EventType::new(&long, "x", 1).is_err());
    assert!(EventType::new(&long[..32], "x", 999).is_ok());
}

/// The public fields can be filled in by hand; `check` is what stands between them and a subject.
#[test]
fn hand_made_types_are_checked_again() {
    let made = |domain: &str, name: &str, major| EventType { domain: domain.into(), name: name.into(), major }.check();
    assert_eq!(made("orders", "order_created", 1), Ok(()));
    assert_eq!(made("orders", "order.created", 1), Err(EventTypeError::Token("order.created".into())));
    assert_eq!(made("*", "order_created", 1), Err(EventTypeError::Token("*".into())));
    assert_eq!(made("orders", "order_created", 0), Err(EventTypeError::Major("v0".into())));
    assert_eq!(made("orders", "order_created", 1000), Err(EventTypeError::Major("v1000".into())));
}

#[test]
fn majors_of_one_fact_are_the_same_fact() {
    let v1 = EventType::new("shipping", "parcel_sent", 1).expect("in the grammar");
    assert!(v1.same_fact(&EventType::of::<ParcelSent>()));
    assert!(!v1.same_fact(&EventType::new("shipping", "parcel_lost", 1).expect("in the grammar")));
}
