//! What people do in the shop: open accounts, fill shelves, order, cancel, wait.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};
use testkit::wait;
use uuid::Uuid;

use super::client::{Method, Reply, Request};
use super::{Service, Shop};
use crate::checker::Asked;

/// How long an order may take to end: longer than a lost lease and a lost acknowledgement together, several times over.
const END_LIMIT: Duration = Duration::from_secs(120);

/// How an order ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Paid and reserved.
    Confirmed,
    /// Cancelled for this reason.
    Cancelled(&'static str),
}

impl fmt::Display for End {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Confirmed => out.write_str("confirmed"),
            End::Cancelled(reason) => write!(out, "cancelled: {reason}"),
        }
    }
}

/// One line of an order: SKU, pieces, price of one in minor units.
pub type Line<'a> = (&'a str, i64, i64);

impl Shop {
    /// Opens an account for a new customer and pays `paid_in` minor units into it.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn customer(&self, currency: &str, paid_in: i64) -> Result<Uuid> {
        let customer_id = self.stranger();
        let opening = Request::new(Service::Payments, Method::POST, "/accounts").key(self.next_key());
        let opening = opening.json(&json!({ "customer_id": customer_id, "currency": currency }));
        self.settle(&opening).await?.success().context("open an account")?;
        self.record().deposits.insert(customer_id, 0);
        if paid_in > 0 {
            self.pay_in(customer_id, paid_in).await?;
        }
        Ok(customer_id)
    }

    /// A customer without an account.
    #[must_use]
    pub fn stranger(&self) -> Uuid {
        const CUSTOMERS: u128 = 0xc000_0000_0000_7000_8000_0000_0000_0000;
        Uuid::from_u128(CUSTOMERS + u128::from(self.next_number()))
    }

    /// Pays into an account.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn pay_in(&self, customer_id: Uuid, amount: i64) -> Result<()> {
        let path = format!("/accounts/{customer_id}/deposits");
        let deposit = Request::new(Service::Payments, Method::POST, path).key(self.next_key());
        self.settle(&deposit.json(&json!({ "amount": amount }))).await?.success().context("pay in")?;
        *self.record().deposits.entry(customer_id).or_default() += amount;
        Ok(())
    }

    /// Puts `on_hand` pieces of a new SKU on the shelf.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn stocked(&self, on_hand: i64) -> Result<String> {
        let sku = format!("sku-{}", self.next_number());
        let count = Request::new(Service::Inventory, Method::PUT, format!("/stock/{sku}")).key(self.next_key());
        self.settle(&count.json(&json!({ "on_hand": on_hand }))).await?.success().context("count stock")?;
        self.record().stocked.insert(sku.clone(), on_hand);
        Ok(sku)
    }

    /// Adds pieces of a SKU.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn restock(&self, sku: &str, quantity: i64) -> Result<()> {
        let path = format!("/stock/{sku}/restocks");
        let restock = Request::new(Service::Inventory, Method::POST, path).key(self.next_key());
        self.settle(&restock.json(&json!({ "quantity": quantity }))).await?.success().context("restock")?;
        *self.record().stocked.entry(sku.to_owned()).or_default() += quantity;
        Ok(())
    }

    /// Orders, and repeats the request until it is answered.
    ///
    /// # Errors
    /// When the service refuses.
    pub async fn place(&self, customer_id: Uuid, currency: &str, lines: &[Line<'_>]) -> Result<Uuid> {
        let request = order_request(customer_id, currency, lines).key(self.next_key());
        let reply = self.settle(&request).await?;
        self.accepted(&reply)
    }

    /// Notes that a reply has accepted an order.
    ///
    /// # Errors
    /// When it has not.
    pub fn accepted(&self, reply: &Reply) -> Result<Uuid> {
        ensure!(reply.status == 201, "an order was answered {}: {}", reply.status, reply.text);
        let order = &reply.body;
        let id = |member: &str| -> Result<Uuid> {
            let text = order[member].as_str().ok_or_else(|| anyhow!("no {member} in {order}"))?;
            Ok(text.parse()?)
        };
        let order_id = id("order_id")?;
        let asked = Asked { customer_id: id("customer_id")?, total: total(order), pieces: pieces(order) };
        self.record().orders.insert(order_id, asked);
        Ok(order_id)
    }

    /// Asks to cancel an order; the answer says whether that came in time.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn cancel(&self, order_id: Uuid) -> Result<Reply> {
        let path = format!("/orders/{order_id}/cancel");
        self.settle(&Request::new(Service::Orders, Method::POST, path).key(self.next_key())).await
    }

    /// The order as the service shows it.
    ///
    /// # Errors
    /// When it is not shown.
    pub async fn order(&self, order_id: Uuid) -> Result<Value> {
        let path = format!("/orders/{order_id}");
        self.settle(&Request::new(Service::Orders, Method::GET, path)).await?.success()
    }

    /// The balance of an account in minor units, as the service shows it.
    ///
    /// # Errors
    /// When it is not shown.
    pub async fn balance(&self, customer_id: Uuid) -> Result<i64> {
        let path = format!("/accounts/{customer_id}");
        let account = self.settle(&Request::new(Service::Payments, Method::GET, path)).await?.success()?;
        account["balance"].as_i64().ok_or_else(|| anyhow!("no balance in {account}"))
    }

    /// Waits until an order has ended, and holds it to how it should.
    ///
    /// # Errors
    /// When it ends otherwise, or not in time.
    pub async fn ends(&self, order_id: Uuid, expected: End) -> Result<()> {
        let awaited = format!("the end of order {order_id}");
        let order = wait::until(&awaited, END_LIMIT, || async {
            let order = self.order(order_id).await.map_err(|error| format!("{error:#}"))?;
            if order["status"] == "pending" { Err(order.to_string()) } else { Ok(order) }
        })
        .await?;
        let (status, reason) = match expected {
            End::Confirmed => ("confirmed", Value::Null),
            End::Cancelled(reason) => ("cancelled", json!(reason)),
        };
        ensure!(
            order["status"] == status && order["cancel_reason"] == reason,
            "order {order_id} should end {expected}, it is {order}"
        );
        Ok(())
    }
}

/// The request that places an order, without a key.
#[must_use]
pub fn order_request(customer_id: Uuid, currency: &str, lines: &[Line<'_>]) -> Request {
    let line =
        |(sku, quantity, unit_price): &Line<'_>| json!({ "sku": sku, "quantity": quantity, "unit_price": unit_price });
    let lines: Vec<Value> = lines.iter().map(line).collect();
    let body = json!({ "customer_id": customer_id, "currency": currency, "lines": lines });
    Request::new(Service::Orders, Method::POST, "/orders").json(&body)
}

/// What an order costs by its lines.
fn total(order: &Value) -> i64 {
    let price = |line: &Value| Some(line["quantity"].as_i64()? * line["unit_price"].as_i64()?);
    lines(order).iter().filter_map(price).sum()
}

fn pieces(order: &Value) -> BTreeMap<String, i64> {
    let line = |line: &Value| Some((line["sku"].as_str()?.to_owned(), line["quantity"].as_i64()?));
    lines(order).iter().filter_map(line).collect()
}

fn lines(order: &Value) -> &[Value] {
    order["lines"].as_array().map_or(&[], Vec::as_slice)
}
