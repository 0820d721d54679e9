//! `POST /accounts`.

use events::{Currency, Money};
use mesh::Tx;
use mesh::http::{FieldError, Operation, Problem, Reply};
use serde::Deserialize;
use uuid::Uuid;

use super::view::AccountView;
use crate::domain::Entry;
use crate::ledger;

/// Opens the account of a customer, who may have one.
#[derive(Debug)]
pub struct OpenAccount;

/// Whose account, in which currency.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewAccount {
    customer_id: Uuid,
    currency: String,
}

impl Operation for OpenAccount {
    const NAME: &'static str = "open-account";
    type Path = ();
    type Body = NewAccount;

    async fn execute(&self, tx: &mut Tx, (): (), account: NewAccount) -> Result<Reply, Problem> {
        let NewAccount { customer_id, currency } = account;
        if customer_id.is_nil() {
            return Err(Problem::invalid(vec![FieldError::new("customer_id", "must not be the nil UUID")]));
        }
        let balance = Currency::parse(&currency)
            .and_then(|currency| Money::new(0, currency))
            .map_err(|error| Problem::invalid(vec![FieldError::new("currency", error.to_string())]))?;
        if ledger::load_for_update(tx, customer_id).await?.is_some() {
            return Err(Problem::conflict("the customer has an account already"));
        }
        let account = ledger::append(tx, customer_id, None, &Entry::Opened { balance }).await?;
        Ok(Reply::created(format!("/accounts/{customer_id}"), &AccountView::from(&account)))
    }
}
