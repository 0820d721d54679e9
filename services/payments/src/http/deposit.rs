//! `POST /accounts/{customer_id}/deposits`.

use mesh::Tx;
use mesh::http::{FieldError, Operation, Problem, Reply};
use serde::Deserialize;
use uuid::Uuid;

use super::read::no_such_account;
use super::view::AccountView;
use crate::ledger;

/// Credits an account with what its customer pays in.
#[derive(Debug)]
pub struct Deposit;

/// How much, in minor units of the account's currency.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewDeposit {
    amount: i64,
}

impl Operation for Deposit {
    const NAME: &'static str = "deposit";
    type Path = Uuid;
    type Body = NewDeposit;

    async fn execute(&self, tx: &mut Tx, customer_id: Uuid, deposit: NewDeposit) -> Result<Reply, Problem> {
        let account = ledger::load_for_update(tx, customer_id).await?;
        let account = account.ok_or_else(|| no_such_account(customer_id))?;
        let entry = account
            .deposit(deposit.amount)
            .map_err(|refused| Problem::invalid(vec![FieldError::new("amount", refused.to_string())]))?;
        let account = ledger::append(tx, customer_id, Some(account), &entry).await?;
        Ok(Reply::ok(&AccountView::from(&account)))
    }
}
