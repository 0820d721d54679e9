use events::{Currency, DeclineReason, Money};
use proptest::prelude::*;
use uuid::Uuid;

use super::{Account, Charge, DepositRefused, Entry, LedgerError};
use crate::domain::Bill;

const CUSTOMER: Uuid = Uuid::from_u128(0xc0);
const ORDER: Uuid = Uuid::from_u128(0x0d);

fn money(minor: i64, code: &str) -> Money {
    Money::new(minor, Currency::parse(code).unwrap()).unwrap()
}

fn euros(minor: i64) -> Money {
    money(minor, "EUR")
}

fn opened() -> Entry {
    Entry::Opened { balance: euros(0) }
}

fn fold(entries: &[Entry]) -> Result<Option<Account>, LedgerError> {
    entries.iter().try_fold(None, |before, entry| Account::after(before, CUSTOMER, entry).map(Some))
}

fn account(balance: i64) -> Account {
    fold(&[opened(), Entry::Deposited { amount: euros(balance) }]).unwrap().unwrap()
}

fn charge(amount: Money) -> Charge {
    Charge { payment_id: Uuid::from_u128(0xca), bill: Bill::new(CUSTOMER, amount).unwrap() }
}

#[test]
fn a_charge_and_its_refund_leave_the_balance_as_it_was() {
    let before = account(5_000);
    let charge = charge(euros(1_999));
    let charged = Account::after(Some(before), CUSTOMER, &before.charge(ORDER, &charge).unwrap()).unwrap();
    assert_eq!((charged.balance, charged.version), (euros(3_001), 3));
    let refunded = Account::after(Some(charged), CUSTOMER, &charge.refund(ORDER, Uuid::max())).unwrap();
    assert_eq!((refunded.balance, refunded.deposited, refunded.version), (euros(5_000), euros(5_000), 4));
}

#[test]
fn a_charge_is_declined_for_exactly_these_reasons() {
    let decide = |balance, amount| account(balance).charge(ORDER, &charge(amount)).map(|_| ());
    assert_eq!(decide(100, euros(100)), Ok(()));
    assert_eq!(decide(100, euros(101)), Err(DeclineReason::InsufficientFunds));
    assert_eq!(decide(100, money(1, "USD")), Err(DeclineReason::CurrencyMismatch));
    let mut finer = euros(1);
    finer.scale = 3;
    assert_eq!(decide(100, finer), Err(DeclineReason::CurrencyMismatch), "another scale is another unit");
}

#[test]
fn a_deposit_is_above_zero_and_keeps_room_for_every_refund() {
    let limit = envelope::INTEGER_MAX;
    assert_eq!(account(1).deposit(0), Err(DepositRefused::NotPositive));
    assert_eq!(account(1).deposit(-5), Err(DepositRefused::NotPositive));
    assert_eq!(account(1).deposit(i64::MIN), Err(DepositRefused::NotPositive));
    assert_eq!(account(1).deposit(limit), Err(DepositRefused::TooLarge));
    let full = account(limit);
    let spent = Account::after(Some(full), CUSTOMER, &full.charge(ORDER, &charge(euros(limit))).unwrap()).unwrap();
    assert_eq!(spent.balance, euros(0));
    assert_eq!(spent.deposit(1), Err(DepositRefused::TooLarge), "the refund must still fit");
    let refund = charge(euros(limit)).refund(ORDER, Uuid::max());
    assert_eq!(Account::after(Some(spent), CUSTOMER, &refund).unwrap().balance, euros(limit));
}

#[test]
fn a_ledger_that_cannot_be_is_an_error() {
    assert_eq!(fold(&[Entry::Deposited { amount: euros(1) }]), Err(LedgerError::NotOpened));
    assert_eq!(fold(&[opened(), opened()]), Err(LedgerError::OpenedTwice));
    let overdraft = Entry::Charged { order_id: ORDER, payment_id: Uuid::max(), amount: euros(1) };
    assert_eq!(fold(&[opened(), overdraft]), Err(LedgerError::Overdrawn(-1)));
    let foreign = Entry::Deposited { amount: money(1, "JPY") };
    assert!(matches!(fold(&[opened(), foreign]), Err(LedgerError::Amount(_))));
}

#[test]
fn stored_entries_of_the_first_release_stay_readable() {
    let stored = [
        (r#"{"event_type": "opened", "payload": {"balance": {"minor": 0, "currency": "EUR", "scale": 2}}}"#, 0),
        (r#"{"event_type": "deposited", "payload": {"amount": {"minor": 500, "currency": "EUR", "scale": 2}}}"#, 500),
        (
            r#"{"event_type": "charged", "payload": {"order_id": "00000000-0000-0000-0000-00000000000d",
                "payment_id": "00000000-0000-0000-0000-0000000000ca",
                "amount": {"minor": 200, "currency": "EUR", "scale": 2}}}"#,
            -200,
        ),
        (
            r#"{"event_type": "refunded", "payload": {"order_id": "00000000-0000-0000-0000-00000000000d",
                "payment_id": "00000000-0000-0000-0000-0000000000ca",
                "refund_id": "00000000-0000-0000-0000-0000000000cb",
                "amount": {"minor": 200, "currency": "EUR", "scale": 2}}}"#,
            200,
        ),
    ];
    let entries = stored.map(|(json, change)| {
        let entry: Entry = serde_json::from_str(json).unwrap();
        assert_eq!(entry.change(), change);
        assert!(json.contains(&format!("\"event_type\": \"{}\"", entry.kind())), "{json}");
        assert_eq!(serde_json::to_value(entry).unwrap(), serde_json::from_str::<serde_json::Value>(json).unwrap());
        entry
    });
    assert_eq!(fold(&entries).unwrap().unwrap().balance, euros(500));
}

proptest! {
    /// Whatever is asked of an account, what it agrees to adds up to its balance, and the balance stays in its bounds.
    #[test]
    fn the_balance_is_the_sum_of_the_entries(wishes in prop::collection::vec((0..3_u8, 1..1_000_i64), 0..60)) {
        let mut entries = vec![opened()];
        let mut open_charges = Vec::new();
        for (kind, minor) in wishes {
            let account = fold(&entries).unwrap().unwrap();
            match kind {
                0 => entries.extend(account.deposit(minor)),
                1 => {
                    let charge = charge(euros(minor));
                    if let Ok(entry) = account.charge(ORDER, &charge) {
                        entries.push(entry);
                        open_charges.push(charge);
                    }
                }
                _ => entries.extend(open_charges.pop().map(|charge| charge.refund(ORDER, Uuid::max()))),
            }
        }
        let account = fold(&entries).unwrap().unwrap();
        prop_assert_eq!(account.balance.minor, entries.iter().map(Entry::change).sum::<i64>());
        prop_assert_eq!(account.version, entries.len() as i64);
        prop_assert!((0..=account.deposited.minor).contains(&account.balance.minor));
    }
}
