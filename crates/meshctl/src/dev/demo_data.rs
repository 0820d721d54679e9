//! What a fresh mesh is filled with: two customers and two goods, enough for every way in which an order can end.

use uuid::Uuid;

use crate::shop::Shop;

/// A customer who can pay.
pub const RICH: Uuid = Uuid::from_u128(0x1111_1111_1111_4111_8111_1111_1111_1111);
/// A customer who cannot.
pub const POOR: Uuid = Uuid::from_u128(0x2222_2222_2222_4222_8222_2222_2222_2222);
/// Goods in stock.
pub const PLENTY: &str = "mug";
/// Goods out of stock.
pub const SOLD_OUT: &str = "poster";
/// The currency of everything here.
pub const CURRENCY: &str = "EUR";
/// Digits of its minor unit.
pub const SCALE: u32 = 2;

/// Minor units on the accounts.
const RICH_BALANCE: i64 = 100_000_000;
const POOR_BALANCE: i64 = 500;
/// Pieces in the house.
const PLENTY_ON_HAND: i64 = 1_000_000;

/// Fills in what is missing. What is there stays as it is, so that a kept mesh can be started again.
///
/// # Errors
/// When a service does not take it.
pub async fn fill(shop: &Shop) -> anyhow::Result<()> {
    for (customer, balance) in [(RICH, RICH_BALANCE), (POOR, POOR_BALANCE)] {
        if shop.account(customer).await?.is_none() {
            shop.open_account(customer, CURRENCY, &format!("demo-data-open-{customer}")).await?;
            shop.deposit(customer, balance, &format!("demo-data-deposit-{customer}")).await?;
        }
    }
    for (sku, on_hand) in [(PLENTY, PLENTY_ON_HAND), (SOLD_OUT, 0)] {
        if shop.stock(sku).await?.is_none() {
            shop.set_stock(sku, on_hand, &format!("demo-data-stock-{sku}")).await?;
        }
    }
    Ok(())
}
