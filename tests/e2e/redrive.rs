//! A dead letter of the shop, redriven: SIGKILL in the middle of it leaves it kept, and its effect happens once.

use acceptance::shop::{Ended, Forged, Service, Shop, Workload};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::wait;
use uuid::Uuid;

use crate::kills::{HIT_LIMIT, REDRIVE};
use crate::{run, shop};

/// An order that nobody placed, cancelled with a reason that cannot be read.
const ORDER: Uuid = Uuid::from_u128(0x0060_0000_0000_7000_8000_0000_0000_0d0d);
const LETTERS: &str = "select count(*) from mesh.dead_letter";
const MARKED: &str = "select count(*) from mesh.inbox where no_effect = 'dead_letter'";

#[test]
fn a_kill_in_the_middle_of_a_redrive_leaves_the_letter_kept_and_its_effect_happens_once() -> Result<()> {
    run(async {
        let shop = shop("redrive").start().await?;
        let workload = Workload::prepare(&shop).await?;
        let placed = workload.place_each(&shop).await?;
        let body = |reason: Value| json!({ "order_id": ORDER, "reason": reason }).to_string();
        let forged = Forged::fact(ORDER, "orders", "order_cancelled", 1, ORDER, &body(json!(7)));
        // That of payments is redriven below.
        shop.poison(&forged, &[("inventory", "release-stock", "bad_body")]).await?;
        until(&shop, LETTERS, 1).await?;
        // As a later build would read it.
        let mended = format!("update mesh.dead_letter set payload = convert_to('{}', 'UTF8')", body(json!("customer")));
        execute(&shop, mended).await?;

        let payments = shop.replica(Service::Payments);
        payments.restart_with([("MESH_FAILPOINT", format!("{REDRIVE}=1:kill"))]).await?;
        let before = payments.ended().len();
        redrive(&shop, 1).await?;
        wait::until("payments to be killed", HIT_LIMIT, || async {
            let ended = payments.ended().split_off(before);
            if ended.iter().any(Ended::by_failpoint) { Ok(()) } else { Err(format!("{ended:?}")) }
        })
        .await?;
        ensure!(count(&shop, LETTERS).await? == 1 && count(&shop, MARKED).await? == 1, "the letter is not kept");

        payments.restart_with([("MESH_FAILPOINT", String::new())]).await?;
        until(&shop, "select count(*) from mesh.operation_item where outcome = 'failed'", 1).await?;
        redrive(&shop, 2).await?;
        until(&shop, "select count(*) from mesh.operation_item where outcome = 'redriven'", 1).await?;
        ensure!(count(&shop, LETTERS).await? == 0 && count(&shop, MARKED).await? == 0, "the letter is still kept");
        shop.end(&placed).await?;
        shop.finish().await
    })
}

/// Has payments redrive everything that it keeps.
async fn redrive(shop: &Shop, operation: u128) -> Result<()> {
    let preview = ask(shop, "dead.preview", json!({ "action": "redrive" })).await?;
    let order = json!({
        "token": preview["token"], "operation_id": Uuid::from_u128(operation), "reason": "it can be read now", "who": "kim",
    });
    ask(shop, "dead.redrive", order).await.map(drop)
}

async fn ask(shop: &Shop, verb: &str, question: Value) -> Result<Value> {
    let client = shop.nats().admin().await?;
    let subject = format!("mesh.ctl.payments.{verb}");
    let reply = wait::until(&subject, HIT_LIMIT, || async {
        client.request(subject.clone(), question.to_string().into()).await.map_err(|error| error.to_string())
    })
    .await?;
    ensure!(reply.headers.is_none(), "{verb} is refused: {:?}", reply.headers);
    serde_json::from_slice(&reply.payload).context("an answer of payments")
}

async fn count(shop: &Shop, sql: &'static str) -> Result<i64> {
    shop.servers().count(Service::Payments, sql).await
}

async fn until(shop: &Shop, sql: &'static str, expected: i64) -> Result<()> {
    let counted = wait::until(sql, HIT_LIMIT, || async {
        match count(shop, sql).await {
            Ok(count) if count == expected => Ok(()),
            other => Err(format!("{other:?} instead of {expected}")),
        }
    });
    Ok(counted.await?)
}

async fn execute(shop: &Shop, sql: String) -> Result<()> {
    use sqlx::{AssertSqlSafe, Connection, PgConnection};
    let mut connection = PgConnection::connect(&shop.servers().superuser_url(Service::Payments)).await?;
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    Ok(connection.close().await?)
}
