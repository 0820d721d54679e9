//! The shop over HTTP, as one of its clients.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::Context;
use reqwest::{Client, Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testkit::wait;
use uuid::Uuid;

use crate::outcome::Failure;
use crate::target::Target;

/// How long an endpoint may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A client of the three services.
#[derive(Debug, Clone)]
pub struct Shop {
    http: Client,
    place: Place,
}

/// What is known about addresses.
#[derive(Debug, Clone)]
enum Place {
    Mesh(Target),
    Orders(String),
    Urls(BTreeMap<String, String>),
}

/// What is ordered. Amounts are minor units.
#[derive(Debug, Clone, Serialize)]
pub struct NewOrder {
    /// Who pays.
    pub customer_id: Uuid,
    /// ISO 4217.
    pub currency: String,
    /// What, how many, for how much each.
    pub lines: Vec<NewLine>,
}

/// One position of an order.
#[derive(Debug, Clone, Serialize)]
pub struct NewLine {
    /// What.
    pub sku: String,
    /// How many.
    pub quantity: u32,
    /// Minor units for one.
    pub unit_price: i64,
}

/// An order as the service tells it. What this version does not know is kept for [`Display`](fmt::Display) in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The order, and the id of its flow.
    pub order_id: Uuid,
    /// `pending`, `confirmed` or `cancelled`.
    pub status: String,
    /// Why it was cancelled.
    pub cancel_reason: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Value>,
}

/// The balance of a customer, in minor units.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Account {
    /// ISO 4217.
    pub currency: String,
    /// What is left.
    pub balance: i64,
}

/// The stock of one SKU.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Stock {
    /// In the house.
    pub on_hand: i64,
    /// Promised to orders.
    pub reserved: i64,
}

impl Shop {
    /// A client of the shop of this mesh.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn of(target: Target) -> anyhow::Result<Self> {
        Ok(Self { http: client()?, place: Place::Mesh(target) })
    }

    /// A client that knows where orders is, and nothing else.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn at(orders_url: &str) -> anyhow::Result<Self> {
        Ok(Self { http: client()?, place: Place::Orders(orders_url.trim_end_matches('/').to_owned()) })
    }

    /// A client that knows where these services are.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn among(urls: BTreeMap<String, String>) -> anyhow::Result<Self> {
        Ok(Self { http: client()?, place: Place::Urls(urls) })
    }

    /// Places an order.
    ///
    /// # Errors
    /// When it is refused, with the service's reasons, or orders does not answer.
    pub async fn place(&self, order: &NewOrder, idempotency_key: &str) -> anyhow::Result<Order> {
        self.send(Method::POST, "orders", "/orders", &json!(order), idempotency_key).await
    }

    /// Waits until an order is not pending any more.
    ///
    /// # Errors
    /// The last thing that was seen, when it still is.
    pub async fn settled(&self, order_id: Uuid, within: Duration) -> anyhow::Result<Order> {
        let settled = wait::until("the end of the order", within, || async {
            match self.order(order_id).await {
                Ok(order) if order.status != "pending" => Ok(order),
                Ok(order) => Err(order.to_string()),
                Err(error) => Err(format!("{error:#}")),
            }
        });
        Ok(settled.await?)
    }

    /// Asks that an order be cancelled.
    ///
    /// # Errors
    /// As [`Shop::place`].
    pub async fn cancel(&self, order_id: Uuid, idempotency_key: &str) -> anyhow::Result<()> {
        let path = format!("/orders/{order_id}/cancel");
        self.answer(Method::POST, "orders", &path, None, idempotency_key).await.map(drop)
    }

    /// Reads an order.
    ///
    /// # Errors
    /// When there is none, or orders does not answer.
    pub async fn order(&self, order_id: Uuid) -> anyhow::Result<Order> {
        let path = format!("/orders/{order_id}");
        self.find("orders", &path).await?.with_context(|| format!("there is no order {order_id}"))
    }

    /// Reads an account; nothing when the customer has none.
    ///
    /// # Errors
    /// When payments does not answer.
    pub async fn account(&self, customer_id: Uuid) -> anyhow::Result<Option<Account>> {
        self.find("payments", &format!("/accounts/{customer_id}")).await
    }

    /// Opens an account.
    ///
    /// # Errors
    /// When it is refused or payments does not answer.
    pub async fn open_account(&self, customer_id: Uuid, currency: &str, idempotency_key: &str) -> anyhow::Result<()> {
        let body = json!({ "customer_id": customer_id, "currency": currency });
        self.answer(Method::POST, "payments", "/accounts", Some(&body), idempotency_key).await.map(drop)
    }

    /// Pays money in, in minor units.
    ///
    /// # Errors
    /// As [`Shop::open_account`].
    pub async fn deposit(&self, customer_id: Uuid, amount: i64, idempotency_key: &str) -> anyhow::Result<()> {
        let path = format!("/accounts/{customer_id}/deposits");
        let body = json!({ "amount": amount });
        self.answer(Method::POST, "payments", &path, Some(&body), idempotency_key).await.map(drop)
    }

    /// Reads the stock of a SKU; nothing when it is unknown.
    ///
    /// # Errors
    /// When inventory does not answer.
    pub async fn stock(&self, sku: &str) -> anyhow::Result<Option<Stock>> {
        self.find("inventory", &format!("/stock/{sku}")).await
    }

    /// Sets how many pieces are in the house.
    ///
    /// # Errors
    /// When it is refused or inventory does not answer.
    pub async fn set_stock(&self, sku: &str, on_hand: i64, idempotency_key: &str) -> anyhow::Result<()> {
        let path = format!("/stock/{sku}");
        let body = json!({ "on_hand": on_hand });
        self.answer(Method::PUT, "inventory", &path, Some(&body), idempotency_key).await.map(drop)
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        service: &str,
        path: &str,
        body: &Value,
        idempotency_key: &str,
    ) -> anyhow::Result<T> {
        let response = self.answer(method, service, path, Some(body), idempotency_key).await?;
        response.json().await.with_context(|| format!("cannot read the answer of {service}"))
    }

    async fn answer(
        &self,
        method: Method,
        service: &str,
        path: &str,
        body: Option<&Value>,
        idempotency_key: &str,
    ) -> anyhow::Result<Response> {
        let url = format!("{}{path}", self.base(service)?);
        let mut request = self.http.request(method, &url).header("Idempotency-Key", idempotency_key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(|error| unanswered(service, &error))?;
        if response.status().is_success() { Ok(response) } else { Err(refusal(service, response).await) }
    }

    async fn find<T: DeserializeOwned>(&self, service: &str, path: &str) -> anyhow::Result<Option<T>> {
        let url = format!("{}{path}", self.base(service)?);
        let response = self.http.get(&url).send().await.map_err(|error| unanswered(service, &error))?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => {
                response.json().await.map(Some).with_context(|| format!("cannot read the answer of {service}"))
            }
            _ => Err(refusal(service, response).await),
        }
    }

    fn base(&self, service: &str) -> anyhow::Result<&str> {
        match &self.place {
            Place::Mesh(target) => target.http_url(service),
            Place::Urls(urls) => {
                let url = urls.get(service).map(String::as_str);
                url.ok_or_else(|| Failure::usage(format!("the address of {service} is not known: name it with --url")))
            }
            Place::Orders(url) if service == "orders" => Ok(url),
            Place::Orders(_) => {
                Err(Failure::usage(format!("only the address of orders is known, not that of {service}")))
            }
        }
    }
}

fn client() -> anyhow::Result<Client> {
    Client::builder().timeout(ANSWER_WITHIN).build().context("cannot make an HTTP client")
}

fn unanswered(service: &str, error: &reqwest::Error) -> anyhow::Error {
    Failure::unreachable(format!("{service} does not answer: {error}"))
}

/// The problem that a service told (RFC 9457), in a sentence.
async fn refusal(service: &str, response: Response) -> anyhow::Error {
    let status = response.status();
    let problem: Value = response.json().await.unwrap_or_default();
    let mut text = format!("{service} refused it: {status}");
    for detail in [&problem["title"], &problem["detail"]].into_iter().filter_map(Value::as_str) {
        text += &format!("; {detail}");
    }
    for error in problem["errors"].as_array().into_iter().flatten() {
        text += &format!("; {}: {}", error["field"].as_str().unwrap_or("?"), error["detail"].as_str().unwrap_or("?"));
    }
    anyhow::anyhow!(text)
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order {}: {}", self.order_id, self.status)?;
        self.cancel_reason.iter().try_for_each(|reason| write!(f, ", {reason}"))
    }
}
