use events::{FailureReason, Sku};

use super::{Refusal, allocate};
use crate::domain::{Demand, Stock};

fn demand(lines: &[(&str, u32)]) -> Demand {
    let lines: Vec<_> =
        lines.iter().map(|(sku, quantity)| serde_json::json!({"sku": sku, "quantity": quantity})).collect();
    serde_json::from_value(lines.into()).unwrap()
}

fn stock(sku: &str, on_hand: i64, reserved: i64) -> Stock {
    Stock { sku: Sku::parse(sku).unwrap(), on_hand, reserved, version: 1 }
}

/// Reason, and `(sku, requested, available)` of every shortage.
fn refused(lines: &[(&str, u32)], stock: &[Stock]) -> (FailureReason, Vec<(String, u32, u32)>) {
    let Refusal { reason, shortages } = allocate(&demand(lines), stock).unwrap_err();
    (reason, shortages.into_iter().map(|short| (short.sku.into(), short.requested, short.available)).collect())
}

#[test]
fn what_is_reserved_is_not_available() {
    let stock = [stock("cup", 5, 3)];
    assert_eq!(allocate(&demand(&[("cup", 2)]), &stock), Ok(()));
    assert_eq!(refused(&[("cup", 3)], &stock), (FailureReason::OutOfStock, vec![("cup".into(), 3, 2)]));
}

#[test]
fn one_missing_line_refuses_all_and_every_missing_line_is_named() {
    let stock = [stock("cup", 5, 0), stock("pot", 0, 0)];
    let (reason, shortages) = refused(&[("cup", 1), ("fan", 7), ("pot", 1)], &stock);
    assert_eq!(reason, FailureReason::UnknownSku, "a SKU that is not kept weighs more than one that is sold out");
    assert_eq!(shortages, [("fan".into(), 7, 0), ("pot".into(), 1, 0)]);
}
