//! Messages that nobody can read, among good ones: each is kept with its reason, the others flow.

use acceptance::shop::{Forged, Shop, Workload};
use anyhow::{Result, ensure};
use uuid::Uuid;

use crate::{run, shop};

/// The subject of a version that nobody knows yet.
const NEWER: &str = "evt.orders.order_cancelled.v2.*";
/// Who hears `OrderCreated` and `OrderCancelled`.
const CREATED: [(&str, &str); 2] = [("payments", "charge-customer"), ("inventory", "note-order")];
const CANCELLED: [(&str, &str); 2] = [("payments", "refund-cancelled-order"), ("inventory", "release-stock")];

/// What is wrong with a message, who is to keep it, and for which reason.
type Case = (Forged, [(&'static str, &'static str); 2], &'static str);

/// An id that no service can draw: its time lies decades back.
fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0060_0000_0000_7000_8000_0000_0000_0000 + number)
}

fn cases() -> Vec<Case> {
    let created = |n| Forged::fact(id(n), "orders", "order_created", 1, id(n), "{}");
    let cancelled = |n, body: &str| Forged::fact(id(n), "orders", "order_cancelled", 1, id(n), body);
    let reason = |n, reason: &str| format!(r#"{{"order_id":"{}","reason":{reason}}}"#, id(n));
    vec![
        (created(1).body(r#"{"order_id": mug}"#), CREATED, "malformed_json"),
        (created(2).body([0xff, 0xfe, 0x00]), CREATED, "bom"),
        (created(3).body(vec![b'['; 50_000]), CREATED, "not_an_object"),
        (created(4), CREATED, "bad_body"),
        (cancelled(5, &reason(5, r#""customer""#)).without("ce-id"), CANCELLED, "malformed_headers"),
        (cancelled(6, &reason(6, r#""customer""#)).header("ce-id", "six"), CANCELLED, "malformed_headers"),
        (
            cancelled(7, &reason(7, r#""customer""#))
                .header("ce-type", "orders.order_created.v1")
                .without("ce-dataschema"),
            CANCELLED,
            "subject_mismatch",
        ),
        (cancelled(8, &reason(8, r#""nul \u0000""#)), CANCELLED, "nul"),
        (cancelled(9, &reason(9, r#""\ud800""#)), CANCELLED, "lone_surrogate"),
        (cancelled(10, &reason(10, "7")), CANCELLED, "bad_body"),
        (
            Forged::fact(id(11), "orders", "order_cancelled", 2, id(11), &reason(11, r#""customer""#)),
            CANCELLED,
            "newer_version",
        ),
    ]
}

#[test]
fn what_cannot_be_read_is_kept_with_its_reason_and_everything_else_flows() -> Result<()> {
    run(async {
        let shop = shop("poison").also_hear([NEWER]).env("MESH_NEWER_VERSION_WAIT_SECONDS", "1").start().await?;
        let workload = Workload::prepare(&shop).await?;
        let mut placed = workload.place_each(&shop).await?;
        for (forged, keepers, reason) in cases() {
            let letters = keepers.map(|(service, subscriber)| (service, subscriber, reason));
            shop.poison(&forged, &letters).await?;
            placed.extend(workload.place_each(&shop).await?);
        }
        shop.end(&placed).await?;
        a_reason_from_the_future_is_no_poison(&shop, &workload).await?;
        shop.finish().await
    })
}

/// The set of reasons is open: who only needs to know that an order was cancelled must not stumble over a new one.
async fn a_reason_from_the_future_is_no_poison(shop: &Shop, workload: &Workload) -> Result<()> {
    let placed = workload.place_each(shop).await?;
    shop.end(&placed).await?;
    let stream = shop.evidence().await?.stream;
    let is_cancelled =
        |order| stream.iter().any(|stored| stored.flow() == order && stored.kind().contains("cancelled"));
    let cancelled = placed.iter().find(|placed| is_cancelled(Some(placed.order_id)));
    let order = cancelled.map(|placed| placed.order_id).unwrap_or_default();
    ensure!(!order.is_nil(), "no order was cancelled");
    let body = format!(r#"{{"order_id":"{order}","reason":"fraud_suspected"}}"#);
    shop.poison(&Forged::fact(id(12), "orders", "order_cancelled", 1, order, &body), &[]).await
}
