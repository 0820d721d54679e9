use events::{Currency, Money, OrderLine, Sku};

use super::{Demand, DemandError};

fn sku(text: &str) -> Sku {
    Sku::parse(text).unwrap()
}

fn order(lines: &[(&str, u32)]) -> Vec<OrderLine> {
    let unit_price = Money::new(1, Currency::parse("EUR").unwrap()).unwrap();
    lines.iter().map(|(name, quantity)| OrderLine { sku: sku(name), quantity: *quantity, unit_price }).collect()
}

fn lines(demand: &Demand) -> Vec<(&str, u32)> {
    demand.lines().iter().map(|line| (line.sku.as_str(), line.quantity)).collect()
}

#[test]
fn lines_are_in_sku_order_and_one_per_sku() {
    let demand = Demand::of(&order(&[("pot", 1), ("cup", 2), ("pot", 3)])).unwrap();
    assert_eq!(lines(&demand), [("cup", 2), ("pot", 4)]);
}

#[test]
fn lines_that_no_stock_can_serve_are_refused() {
    assert_eq!(Demand::of(&[]), Err(DemandError::Empty));
    assert_eq!(Demand::of(&order(&[("cup", 1), ("pot", 0)])), Err(DemandError::NoPieces(sku("pot"))));
    assert_eq!(Demand::of(&order(&[("cup", u32::MAX), ("cup", 1)])), Err(DemandError::TooMany(sku("cup"))));
}

#[test]
fn a_stored_demand_of_the_first_release_stays_readable() {
    let demand: Demand = serde_json::from_str(r#"[{"sku": "cup", "quantity": 2}]"#).unwrap();
    assert_eq!(lines(&demand), [("cup", 2)]);
    assert_eq!(serde_json::to_string(&demand).unwrap(), r#"[{"sku":"cup","quantity":2}]"#);
}
