//! One order is one trace, across all services.

use std::collections::BTreeSet;

use acceptance::shop::{End, order_request};
use anyhow::{Result, ensure};

use crate::in_shared_shop;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT_SPAN: &str = "00f067aa0ba902b7";

#[test]
fn every_fact_of_an_order_carries_the_trace_of_the_request_that_placed_it() -> Result<()> {
    in_shared_shop(async |shop| {
        let customer = shop.customer("EUR", 10_000).await?;
        let (mug, none) = (shop.stocked(1).await?, shop.stocked(0).await?);
        for (sku, end, facts) in [(&mug, End::Confirmed, 4), (&none, End::Cancelled("out_of_stock"), 5)] {
            let request = order_request(customer, "EUR", &[(sku, 1, 1_999)])
                .key(shop.next_key())
                .header("traceparent", format!("00-{TRACE}-{CLIENT_SPAN}-01"));
            let order = shop.accepted(&shop.settle(&request).await?)?;
            shop.ends(order, end).await?;
            let stream = shop.evidence().await?.stream;
            let of_order: Vec<_> = stream.iter().filter(|stored| stored.flow() == Some(order)).collect();
            ensure!(of_order.len() == facts, "{} facts", of_order.len());
            let mut spans = BTreeSet::new();
            for fact in of_order {
                let context = fact.header("ce-traceparent").unwrap_or_default();
                let parts: Vec<&str> = context.split('-').collect();
                ensure!(parts.len() == 4 && parts[1] == TRACE, "{} has the trace {context:?}", fact.kind());
                ensure!(
                    parts[2] != CLIENT_SPAN && spans.insert(parts[2].to_owned()),
                    "{} has no span of its own",
                    fact.kind()
                );
            }
        }
        Ok(())
    })
}
