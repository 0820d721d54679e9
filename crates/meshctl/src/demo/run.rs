//! Places the four orders, one after the other, and waits for the end of each.

use std::time::Duration;

use anyhow::Context;
use testkit::wait;
use uuid::Uuid;

use super::report::{Ended, Moved, Report, facts};
use super::scenario::{self, Scenario, UNIT_PRICE};
use crate::broker::Broker;
use crate::clock;
use crate::dev::demo_data::CURRENCY;
use crate::dev::mesh::DevMesh;
use crate::flows;
use crate::flows::read::STREAM;
use crate::output::say;
use crate::permissions::OPERATOR;
use crate::shop::{NewLine, NewOrder, Order, Shop};
use crate::streams;

/// How long one step of an order may take on a busy machine.
const STEP_WITHIN: Duration = Duration::from_secs(30);

/// What a run of the demonstration works with.
struct Stage<'a> {
    mesh: &'a DevMesh,
    shop: Shop,
    broker: Broker,
}

/// Money, stock and mails that an order may move.
#[derive(Debug, Clone, Copy)]
struct Holdings {
    balance: i64,
    reserved: i64,
    mails: usize,
}

/// Plays all scenarios.
pub(super) async fn all(mesh: &DevMesh) -> anyhow::Result<Report> {
    let target = mesh.target();
    let broker = Broker::connect(&target, OPERATOR).await?;
    let stage = Stage { mesh, shop: Shop::of(target)?, broker };
    let mut orders = Vec::new();
    for scenario in &scenario::ALL {
        say(format_args!("placing an order: {}", scenario.title));
        orders.push(stage.play(scenario).await.with_context(|| format!("the order to be {}", scenario.title))?);
    }
    Ok(Report { orders })
}

impl Stage<'_> {
    async fn play(&self, scenario: &Scenario) -> anyhow::Result<Ended> {
        let before = self.holdings(scenario).await?;
        let order_id = if scenario.cancelled_in_flight {
            self.place_and_cancel(scenario).await?
        } else {
            self.place(scenario).await?.order_id
        };
        // What does not come in time is told by the report: it compares everything that is there.
        let complete = self.complete(order_id, scenario).await;
        self.quiet().await?;
        let order = self.shop.order(order_id).await?;
        let timeline = flows::timeline(&self.broker, order_id).await?;
        let after = self.holdings(scenario).await?;
        let charged = before.balance - after.balance;
        let moved = Moved { charged, reserved: after.reserved - before.reserved, mails: after.mails - before.mails };
        let mut ended = Ended::new(scenario, order, timeline, moved);
        if let Err(late) = complete {
            ended.problems.push(late.to_string());
        }
        Ok(ended)
    }

    async fn place(&self, scenario: &Scenario) -> anyhow::Result<Order> {
        let line = NewLine { sku: scenario.sku.to_owned(), quantity: 1, unit_price: UNIT_PRICE };
        let order = NewOrder { customer_id: scenario.customer, currency: CURRENCY.to_owned(), lines: vec![line] };
        self.shop.place(&order, &clock::draw_id().to_string()).await
    }

    /// Holds inventory still, so that the order surely is in flight when it is cancelled: charged and not reserved.
    async fn place_and_cancel(&self, scenario: &Scenario) -> anyhow::Result<Uuid> {
        let _still = self.mesh.hold("inventory");
        let order = self.place(scenario).await?;
        self.has_fact(order.order_id, "payments.payment_processed").await?;
        self.shop.cancel(order.order_id, &clock::draw_id().to_string()).await?;
        self.has_fact(order.order_id, "payments.refund_issued").await?;
        Ok(order.order_id)
    }

    async fn has_fact(&self, order_id: Uuid, fact: &str) -> anyhow::Result<()> {
        let seen = wait::until(fact, STEP_WITHIN, || async {
            match flows::timeline(&self.broker, order_id).await {
                Ok(Some(timeline)) if timeline.has(fact) => Ok(()),
                Ok(timeline) => Err(timeline.map_or("no fact".to_owned(), |timeline| facts(&timeline).join(", "))),
                Err(error) => Err(format!("{error:#}")),
            }
        });
        Ok(seen.await?)
    }

    /// Waits until the flow has every fact of the scenario and the order has its status.
    async fn complete(&self, order_id: Uuid, scenario: &Scenario) -> anyhow::Result<()> {
        for fact in scenario.facts {
            self.has_fact(order_id, fact).await?;
        }
        self.shop.settled(order_id, STEP_WITHIN).await.map(drop)
    }

    /// Waits until every service has handled everything, so that nothing comes after the comparison.
    async fn quiet(&self) -> anyhow::Result<()> {
        let quiet = wait::until("all facts to be handled", STEP_WITHIN, || async {
            let consumers = streams::consumers(&self.broker, STREAM).await.map_err(|error| format!("{error:#}"))?;
            let busy = consumers.iter().find(|consumer| {
                consumer["config"]["durable_name"].is_string()
                    && [&consumer["num_pending"], &consumer["num_ack_pending"]].iter().any(|count| **count != 0)
            });
            match busy {
                None => Ok(()),
                Some(consumer) => Err(format!("{} is at work", consumer["name"])),
            }
        });
        Ok(quiet.await?)
    }

    async fn holdings(&self, scenario: &Scenario) -> anyhow::Result<Holdings> {
        let account = self.shop.account(scenario.customer).await?.context("the customer has no account")?;
        let stock = self.shop.stock(scenario.sku).await?.context("the goods are unknown")?;
        Ok(Holdings { balance: account.balance, reserved: stock.reserved, mails: self.mesh.mails()? })
    }
}
