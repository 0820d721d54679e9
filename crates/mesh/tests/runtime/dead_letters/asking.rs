//! The operator of these tests.

use std::time::Duration;

use async_nats::{Client, Message};
use serde_json::{Value, json};
use testkit::wait;
use uuid::Uuid;

use crate::world::{PATIENCE, World};

/// Asks the service.
pub(crate) struct Operator {
    client: Client,
}

impl Operator {
    pub(crate) async fn of(world: &World) -> Self {
        Self { client: world.nats.admin().await.unwrap() }
    }

    /// The answer of any replica, as soon as one listens.
    async fn reply(&self, verb: &str, body: &Value) -> Message {
        let subject = format!("mesh.ctl.probe.{verb}");
        wait::until(&subject, PATIENCE, || async {
            let asked = self.client.request(subject.clone(), body.to_string().into()).await;
            asked.map_err(|error| error.to_string())
        })
        .await
        .unwrap()
    }

    pub(crate) async fn ask(&self, verb: &str, body: Value) -> Value {
        let reply = self.reply(verb, &body).await;
        assert!(reply.headers.is_none(), "{verb} {body}: {:?}", reply.headers);
        serde_json::from_slice(&reply.payload).unwrap()
    }

    /// Code and words of a refusal.
    pub(crate) async fn refusal(&self, verb: &str, body: Value) -> (String, String) {
        let headers = self.reply(verb, &body).await.headers.unwrap_or_default();
        let header = |name: &str| headers.get(name).map(ToString::to_string).unwrap_or_default();
        (header("Nats-Service-Error-Code"), header("Nats-Service-Error"))
    }

    pub(crate) async fn letters(&self, filter: Value) -> Vec<Value> {
        let page = self.ask("dead.list", json!({ "filter": filter })).await;
        page["letters"].as_array().unwrap().clone()
    }

    pub(crate) async fn preview(&self, action: &str, filter: Value) -> Value {
        self.ask("dead.preview", json!({ "action": action, "filter": filter })).await
    }

    /// A fast operation on what a preview has shown.
    pub(crate) fn order(preview: &Value, operation: u128) -> Value {
        json!({
            "token": preview["token"], "operation_id": Uuid::from_u128(operation), "reason": "the fault is mended",
            "who": "kim", "rate_per_second": 200,
        })
    }

    /// Redrives what agrees with the filter, to the end.
    pub(crate) async fn redrive(&self, filter: Value, operation: u128) -> Value {
        let preview = self.preview("redrive", filter).await;
        self.ask("dead.redrive", Self::order(&preview, operation)).await;
        self.until_ended(operation).await
    }

    /// Discards what agrees with the filter.
    pub(crate) async fn discard(&self, filter: Value, operation: u128) -> Value {
        let preview = self.preview("discard", filter).await;
        self.ask("dead.discard", Self::order(&preview, operation)).await
    }

    pub(crate) async fn until_ended(&self, operation: u128) -> Value {
        let question = json!({ "operation_id": Uuid::from_u128(operation) });
        let ended = wait::until("the end of the operation", Duration::from_secs(60), || async {
            let progress = self.ask("operation.show", question.clone()).await;
            if progress["state"] == "running" { Err(progress) } else { Ok(progress) }
        });
        ended.await.unwrap()
    }
}
