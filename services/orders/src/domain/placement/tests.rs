use events::OrderCreated;
use uuid::Uuid;

use super::{Draft, DraftLine, LINES_MAX, Placement, QUANTITY_MAX};

const CUSTOMER: Uuid = Uuid::from_u128(0xc0);

fn line(sku: &str, quantity: i64, unit_price: i64) -> DraftLine {
    DraftLine { sku: sku.to_owned(), quantity, unit_price }
}

fn draft(lines: Vec<DraftLine>) -> Draft {
    Draft { customer_id: CUSTOMER, currency: "EUR".to_owned(), lines }
}

/// The fields that are refused, in order.
fn refused(draft: &Draft) -> Vec<String> {
    Placement::check(draft).err().into_iter().flatten().map(|violation| violation.field).collect()
}

#[test]
fn the_total_is_the_sum_of_quantity_times_price() {
    let placement =
        Placement::check(&draft(vec![line("cup", 3, 250), line("gift", 1, 0), line("pot", 1, 1999)])).unwrap();
    assert_eq!(placement.total.minor, 3 * 250 + 1999);
    assert_eq!((placement.total.currency.as_str(), placement.total.scale), ("EUR", 2));
    assert_eq!(placement.lines.len(), 3);
}

#[test]
fn the_scale_is_the_one_of_the_currency() {
    let yen = Draft { currency: "JPY".to_owned(), ..draft(vec![line("cup", 1, 300)]) };
    assert_eq!(Placement::check(&yen).unwrap().total.scale, 0);
}

#[test]
fn each_wrong_field_is_named() {
    let one = |sku: &str, quantity, price| refused(&draft(vec![line("ok", 1, 1), line(sku, quantity, price)]));
    assert_eq!(one("", 1, 1), ["lines[1].sku"]);
    assert_eq!(one("two words", 1, 1), ["lines[1].sku"]);
    assert_eq!(one(&"x".repeat(65), 1, 1), ["lines[1].sku"]);
    assert_eq!(one("ok", 1, 1), ["lines[1].sku"], "a repeated SKU");
    assert_eq!(one("b", 0, 1), ["lines[1].quantity"]);
    assert_eq!(one("b", -1, 1), ["lines[1].quantity"]);
    assert_eq!(one("b", i64::from(QUANTITY_MAX) + 1, 1), ["lines[1].quantity"]);
    assert_eq!(one("b", 1, -1), ["lines[1].unit_price"]);
    assert_eq!(one("b", 1, envelope::INTEGER_MAX + 1), ["lines[1].unit_price"]);
    assert_eq!(one("?", 0, -1), ["lines[1].sku", "lines[1].quantity", "lines[1].unit_price"], "all at once");
}

#[test]
fn the_whole_draft_is_checked_too() {
    assert_eq!(refused(&draft(vec![])), ["lines"]);
    assert_eq!(refused(&draft((0..=LINES_MAX).map(|n| line(&format!("s{n}"), 1, 1)).collect())), ["lines"]);
    assert_eq!(refused(&Draft { customer_id: Uuid::nil(), ..draft(vec![line("a", 1, 1)]) }), ["customer_id"]);
    for currency in ["eur", "EURO", "XXX", "", "ZZZ"] {
        let draft = Draft { currency: currency.to_owned(), ..draft(vec![line("a", 0, 1)]) };
        assert_eq!(refused(&draft), ["currency", "lines[0].quantity"], "{currency}");
    }
}

#[test]
fn a_total_of_nothing_or_beyond_the_range_is_refused() {
    let most = envelope::INTEGER_MAX;
    assert_eq!(refused(&draft(vec![line("a", 5, 0)])), ["lines"]);
    assert_eq!(refused(&draft(vec![line("a", 2, most)])), ["lines"], "one line overflows");
    assert_eq!(refused(&draft(vec![line("a", 1, most), line("b", 1, 1)])), ["lines"], "the sum overflows");
    assert_eq!(Placement::check(&draft(vec![line("a", 1, most - 1), line("b", 1, 1)])).unwrap().total.minor, most);
}

#[test]
fn the_largest_order_fits_into_one_fact() {
    let lines = (0..LINES_MAX).map(|n| line(&format!("{n:x>64}"), i64::from(QUANTITY_MAX), 44_000_000)).collect();
    let placement = Placement::check(&draft(lines)).unwrap();
    let fact = OrderCreated {
        order_id: Uuid::max(),
        customer_id: Uuid::max(),
        total: placement.total,
        lines: placement.lines,
    };
    assert!(envelope::encode(&fact).unwrap().len() <= envelope::BODY_BYTES_MAX);
}
