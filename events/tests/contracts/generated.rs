//! Any fact that a publisher can make: inside a closed copy of its schema, without nulls, and read back as it was.

use envelope::{EventType, decode, encode};
use events::{
    Contract, Currency, InventoryFailed, InventoryReleased, InventoryReserved, Money, OrderCancelled, OrderConfirmed,
    OrderCreated, OrderLine, PaymentDeclined, PaymentProcessed, RefundIssued, Shortage, Sku, StockLine, declare,
};
use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::samples::{message, validator};

/// The schema with every object closed: nothing that it does not declare may be published.
fn closed(mut schema: Value) -> Value {
    fn close(schema: &mut Value) {
        match schema {
            Value::Object(members) => {
                if members.contains_key("properties") {
                    members.insert("additionalProperties".to_owned(), json!(false));
                }
                members.values_mut().for_each(close);
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            _ => {}
        }
    }
    close(&mut schema);
    schema
}

fn publish_and_read<C: Contract + Clone + PartialEq + std::fmt::Debug>(event: &C) -> Result<(), TestCaseError> {
    let body = encode(event).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let value: Value = serde_json::from_slice(&body).expect("JSON");
    let validator = validator(&closed(declare::<C>().schema));
    let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    prop_assert_eq!(errors, Vec::<String>::new(), "{}", value);
    let raw = message(&EventType::of::<C>(), &event.key(), &body);
    let (_, read) = decode::<C>(&raw).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&read, event);
    prop_assert_eq!(encode(&read), Ok(body), "written again, byte for byte");
    Ok(())
}

fn id() -> impl Strategy<Value = Uuid> {
    (1..u128::MAX).prop_map(Uuid::from_u128)
}

fn money() -> impl Strategy<Value = Money> {
    (-envelope::INTEGER_MAX..=envelope::INTEGER_MAX, prop::sample::select(vec!["EUR", "JPY", "KWD", "USD"]))
        .prop_map(|(minor, code)| Money::new(minor, Currency::parse(code).expect("a known code")).expect("in range"))
}

fn sku() -> impl Strategy<Value = Sku> {
    "[A-Za-z0-9][A-Za-z0-9._-]{0,63}".prop_map(|text| Sku::parse(&text).expect("in the pattern"))
}

fn order_lines() -> impl Strategy<Value = Vec<OrderLine>> {
    vec((sku(), 1_u32.., money()).prop_map(|(sku, quantity, unit_price)| OrderLine { sku, quantity, unit_price }), 1..4)
}

fn stock_lines() -> impl Strategy<Value = Vec<StockLine>> {
    vec((sku(), 1_u32..).prop_map(|(sku, quantity)| StockLine { sku, quantity }), 1..4)
}

fn shortages() -> impl Strategy<Value = Vec<Shortage>> {
    let shortage = (sku(), 1_u32.., any::<u32>());
    vec(shortage.prop_map(|(sku, requested, available)| Shortage { sku, requested, available }), 0..4)
}

/// Codes of today and of the future.
fn code() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["out_of_stock", "order_cancelled", "insufficient_funds", "customer"])
            .prop_map(str::to_owned),
        "[^\u{0}]{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn orders(ids in [id(), id()], total in money(), lines in order_lines(), reason in code()) {
        let [order_id, customer_id] = ids;
        publish_and_read(&OrderCreated { order_id, customer_id, total, lines })?;
        publish_and_read(&OrderConfirmed { order_id })?;
        publish_and_read(&OrderCancelled { order_id, reason: reason.as_str().into() })?;
    }

    #[test]
    fn payments(ids in [id(), id(), id(), id()], amount in money(), reason in code()) {
        let [order_id, payment_id, customer_id, refund_id] = ids;
        publish_and_read(&PaymentProcessed { order_id, payment_id, customer_id, amount })?;
        publish_and_read(&PaymentDeclined { order_id, customer_id, amount, reason: reason.as_str().into() })?;
        publish_and_read(&RefundIssued { order_id, payment_id, refund_id, amount, reason: reason.as_str().into() })?;
    }

    #[test]
    fn inventory(ids in [id(), id()], lines in stock_lines(), shortages in shortages(), reason in code()) {
        let [order_id, reservation_id] = ids;
        publish_and_read(&InventoryReserved { order_id, reservation_id, lines: lines.clone() })?;
        publish_and_read(&InventoryReleased { order_id, reservation_id, lines })?;
        publish_and_read(&InventoryFailed { order_id, reason: reason.as_str().into(), shortages })?;
    }

    /// A member that is added later, anywhere, changes nothing for today's reader.
    #[test]
    fn members_from_the_future_are_ignored(ids in [id(), id()], total in money(), lines in order_lines(), note in "[^\u{0}]{0,9}") {
        let [order_id, customer_id] = ids;
        let order = OrderCreated { order_id, customer_id, total, lines };
        let mut body = serde_json::to_value(&order).expect("JSON");
        body["zzz"] = json!({"note": note, "list": [1, 2.5, null]});
        body["total"]["tax_minor"] = json!(3);
        body["lines"][0]["gift"] = json!(true);
        let raw = message(&EventType::of::<OrderCreated>(), &order_id.to_string(), body.to_string().as_bytes());
        prop_assert_eq!(decode::<OrderCreated>(&raw).map(|(_, read)| read), Ok(order));
    }
}

proptest! {
    /// What the code takes as a SKU or a currency is what the schemas say it is.
    #[test]
    fn patterns_are_those_of_the_code(text in "([A-Za-z0-9._-]{0,66}|[A-Z]{2,4}|[ -~é\n]{0,5})") {
        let text = json!(text);
        let sku = schemars::schema_for!(Sku).to_value();
        prop_assert_eq!(validator(&sku).is_valid(&text), serde_json::from_value::<Sku>(text.clone()).is_ok(), "{}", text);
        let currency = schemars::schema_for!(Currency).to_value();
        prop_assert_eq!(validator(&currency).is_valid(&text), serde_json::from_value::<Currency>(text.clone()).is_ok(), "{}", text);
    }
}

/// Two spellings of one code would be two reasons.
#[test]
fn known_codes_have_one_form() {
    use events::{CancelReason, DeclineReason, FailureReason, RefundReason};
    let read = |code: &str| serde_json::from_value::<CancelReason>(json!(code)).expect("a code");
    assert_eq!(read("out_of_stock"), CancelReason::OutOfStock);
    assert_eq!(read("fraud"), CancelReason::Other("fraud".into()));
    assert_eq!(CancelReason::from("fraud"), read("fraud"));
    assert_eq!(CancelReason::from("deadline"), CancelReason::Deadline);
    assert_eq!(DeclineReason::UnknownAccount.as_str(), "unknown_account");
    assert_eq!(RefundReason::InventoryFailed.to_string(), "inventory_failed");
    assert_eq!(json!(FailureReason::UnknownSku), json!("unknown_sku"));
    assert!(serde_json::from_value::<CancelReason>(json!(3)).is_err());
}
