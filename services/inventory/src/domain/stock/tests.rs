use events::Sku;

use super::{ON_HAND_MAX, Stock, StockRefused};

fn stock(on_hand: i64, reserved: i64) -> Stock {
    Stock { on_hand, reserved, version: 4, ..Stock::unknown(Sku::parse("cup").unwrap()) }
}

#[test]
fn a_count_never_falls_below_what_is_promised() {
    assert_eq!(stock(9, 3).counted(3), Ok(Stock { version: 5, ..stock(3, 3) }));
    assert_eq!(stock(9, 3).counted(2), Err(StockRefused::BelowReserved { reserved: 3 }));
    assert_eq!(stock(9, 3).counted(-1), Err(StockRefused::Count));
    assert_eq!(stock(9, 3).counted(ON_HAND_MAX + 1), Err(StockRefused::Count));
}

#[test]
fn a_restock_adds_and_stays_in_range() {
    assert_eq!(stock(9, 3).restocked(1), Ok(Stock { version: 5, ..stock(10, 3) }));
    for quantity in [0, -1, i64::MIN, i64::MAX, ON_HAND_MAX - 8] {
        assert_eq!(stock(9, 3).restocked(quantity), Err(StockRefused::Quantity), "{quantity}");
    }
    assert_eq!(stock(9, 3).restocked(ON_HAND_MAX - 9).map(|stock| stock.on_hand), Ok(ON_HAND_MAX));
}
