use std::sync::Arc;
use std::time::Duration;

use async_nats::StatusCode;
use serde_json::{Value, json};
use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, PgPool};
use testkit::{Nats, NatsOptions, TestDatabase, wait};
use tokio::task::JoinHandle;

use super::*;
use crate::clock::System;
use crate::delivery::{Delivery, Registry, SqlInbox};
use crate::lifecycle::{Check, Lifecycle};
use crate::{ServiceContext, schema};

#[test]
fn builds_that_are_no_versions_get_one() {
    assert_eq!(semantic("1.2.3"), "1.2.3");
    assert_eq!(semantic("1.2.3-rc.1+abc"), "1.2.3");
    for other in ["abcdef0", "1.2", "", "1.2.3.4", "v1.2.3"] {
        assert_eq!(semantic(other), "0.0.0", "{other}");
    }
}

#[test]
fn every_replica_hears_a_status_request_and_one_an_outbox_request() {
    let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    assert_ne!(Verb::Status.queue_group(one), Verb::Status.queue_group(other));
    assert_eq!(Verb::Outbox.queue_group(one), Verb::Outbox.queue_group(other));
}

/// One process of the service `shop`, of which nothing but control runs.
async fn replica(client: &Client, pool: &PgPool) -> (Lifecycle, Uuid, JoinHandle<()>) {
    let lifecycle = Lifecycle::new();
    let context = ServiceContext::new("shop", "1.2.3-rc.1", Arc::new(System));
    let instance = context.instance;
    let mesh = Mesh::new(pool.clone(), context, lifecycle.clone());
    let inbox = SqlInbox::new(pool.clone(), Arc::clone(mesh.context()));
    let delivery = Delivery::new(inbox, Arc::clone(mesh.context()), Duration::ZERO);
    let redriver = Redriver::new(pool.clone(), Registry::default(), delivery);
    let serving = lifecycle.spawn("control", serve(client.clone(), mesh, redriver));
    (lifecycle, instance, serving)
}

async fn shop() -> (TestDatabase, Nats) {
    let prepare = |url: String| async move {
        let options = url.parse::<PgConnectOptions>()?;
        schema::migrate(&options, &Migrator::DEFAULT).await?;
        anyhow::Ok(())
    };
    let database = testkit::database("control", prepare).await.unwrap();
    (database, Nats::start(NatsOptions::new()).await.unwrap())
}

/// The answers of everybody who hears the question, `expected` of them.
async fn ask(client: &Client, subject: &str, expected: usize) -> Vec<Value> {
    wait::until(&format!("{expected} answers"), Duration::from_secs(20), || async {
        let inbox = client.new_inbox();
        let mut replies = client.subscribe(inbox.clone()).await.unwrap();
        client.publish_with_reply(subject.to_owned(), inbox, "".into()).await.unwrap();
        let mut answers = Vec::new();
        while let Ok(Some(reply)) = tokio::time::timeout(Duration::from_millis(500), replies.next()).await {
            if reply.status != Some(StatusCode::NO_RESPONDERS) {
                answers.push(serde_json::from_slice(&reply.payload).unwrap());
            }
        }
        if answers.len() == expected { Ok(answers) } else { Err(format!("{answers:?}")) }
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn status_is_answered_by_every_replica_and_outbox_by_one() {
    let (database, nats) = shop().await;
    let client = nats.admin().await.unwrap();
    let (one, first, serving) = replica(&client, database.pool()).await;
    let (_other, second, _) = replica(&client, database.pool()).await;
    one.readiness().fails(Check::Broker, "no answer");
    let mut statuses = ask(&client, "mesh.ctl.shop.status", 2).await;
    statuses.sort_by_key(|status| status["instance"] != first.to_string());
    assert_eq!(statuses[0]["service"], "shop");
    assert_eq!(statuses[0]["build"], "1.2.3-rc.1");
    assert_eq!(statuses[0]["checks"][3], json!({ "name": "broker", "ok": false, "detail": "no answer" }));
    assert_eq!(statuses[1]["instance"], second.to_string());
    assert_eq!(statuses[1]["ready"], false);
    ask(&client, "mesh.ctl.shop.outbox", 1).await;
    one.stop();
    serving.await.unwrap();
    ask(&client, "mesh.ctl.shop.status", 1).await;
}

#[tokio::test]
async fn the_outbox_tells_what_waits_behind_what() {
    let (database, nats) = shop().await;
    let client = nats.admin().await.unwrap();
    let (_lifecycle, instance, _) = replica(&client, database.pool()).await;
    let rows = format!(
        "insert into mesh.outbox (bucket_group, event_id, subject, event_type, partition_key, key_version, headers, payload,
                                  created_at, attempts, last_error)
         values (3, '{waiting}', 's', 't', 'healthy', 1, '[]', '', now() - interval '10 s', 0, null),
                (3, '{failing}', 's', 't', 'failing', 1, '[]', '', now() - interval '5 s', 2, 'refused');
         insert into mesh.outbox_dead (bucket_group, seq, event_id, subject, event_type, partition_key, key_version,
                                       headers, payload, occurred_at, created_at, attempts, error)
         values (3, 99, '{dead}', 's', 't', 'dead', 1, '[]', '', now(), now(), 10, 'too large');
         insert into mesh.outbox_relay (owner, label, expires_at) values ('{instance}', 'shop/a', now() + interval '9 s');
         update mesh.outbox_lease set owner = '{instance}', epoch = 7, expires_at = now() + interval '9 s'
         where bucket_group = 3;",
        waiting = Uuid::from_u128(1),
        failing = Uuid::from_u128(2),
        dead = Uuid::from_u128(3),
    );
    sqlx::raw_sql(AssertSqlSafe(rows)).execute(database.pool()).await.unwrap();
    let answer = ask(&client, "mesh.ctl.shop.outbox", 1).await.remove(0);
    assert_eq!((&answer["pending"], &answer["failed"], &answer["sent_last_hour"]), (&json!(2), &json!(1), &json!(0)));
    assert!(answer["oldest_pending_seconds"].as_f64().unwrap() >= 10.0, "{answer}");
    assert_eq!(answer["groups"].as_array().unwrap().len(), 16);
    let (free, held) = (&answer["groups"][0], &answer["groups"][3]);
    assert_eq!((&free["owner"], &free["expires_in_seconds"]), (&Value::Null, &Value::Null));
    assert_eq!((&held["label"], &held["epoch"]), (&json!("shop/a"), &json!(7)));
    assert!((0.0..=9.0).contains(&held["expires_in_seconds"].as_f64().unwrap()), "{held}");
    assert!(held["oldest_pending_seconds"].as_f64().unwrap() >= 10.0, "{held}");
    let failing = &answer["backing_off"];
    assert_eq!(failing.as_array().unwrap().len(), 1);
    assert_eq!(
        (&failing[0]["key"], &failing[0]["attempts"], &failing[0]["last_error"]),
        (&json!("failing"), &json!(2), &json!("refused"))
    );
    assert_eq!((&answer["dead"][0]["key"], &answer["dead"][0]["error"]), (&json!("dead"), &json!("too large")));
}

#[tokio::test]
async fn a_request_that_cannot_be_answered_says_why() {
    let (database, nats) = shop().await;
    let client = nats.admin().await.unwrap();
    database.pool().close().await;
    let _replica = replica(&client, database.pool()).await;
    let refused = wait::until("an answer", Duration::from_secs(20), || async {
        let reply = client.request("mesh.ctl.shop.outbox", "".into()).await.map_err(|error| error.to_string())?;
        let headers = reply.headers.ok_or("no headers")?;
        let code = headers.get("Nats-Service-Error-Code").map(ToString::to_string);
        code.ok_or_else(|| "no code".to_owned())
    });
    assert_eq!(refused.await.unwrap(), "500");
}

#[tokio::test]
async fn a_question_about_facts_and_keys_is_answered_by_what_is_durable() {
    let (database, nats) = shop().await;
    let client = nats.admin().await.unwrap();
    let _replica = replica(&client, database.pool()).await;
    let id = Uuid::from_u128;
    let rows = format!(
        "insert into mesh.inbox (event_id, subscriber, no_effect)
         values ('{0}', 'charge', null), ('{1}', 'charge', 'already_paid'), ('{2}', 'charge', 'dead_letter'),
                ('{3}', 'charge', 'dead_letter');
         insert into mesh.dead_letter (subscriber, event_id, event_type, partition_key, state, reason, detail, attempts,
                                       behind_event, subject, headers, payload, stream_sequence, build)
         values ('charge', '{2}', 't', 'k', 'dead', 'rejected', 'no such account', 5, null, 's', '[]', '', 3, 'b'),
                ('charge', '{3}', 't', 'k', 'parked', 'behind', 'x', 1, '{2}', 's', '[]', '', 4, 'b');
         insert into mesh.delivery_attempt (event_id, subscriber, attempts, history)
         values ('{4}', 'charge', 2, '[{{\"error\": \"old\"}}, {{\"error\": \"deadlock\"}}]'), ('{0}', 'charge', 1, '[]');
         insert into mesh.outbox (bucket_group, event_id, subject, event_type, partition_key, key_version, headers, payload,
                                  created_at, attempts, last_error)
         values ({group}, '{5}', 's', 'shop.paid.v1', 'k1', 1, '[]', '', now() - interval '10 s', 2, 'no stream'),
                ({group}, '{6}', 's', 'shop.paid.v1', 'k2', 1, '[]', '', now(), 0, null);",
        id(1),
        id(2),
        id(3),
        id(4),
        id(5),
        id(6),
        id(7),
        group = crate::outbox::bucket_group(envelope::bucket("k1")),
    );
    sqlx::raw_sql(AssertSqlSafe(rows)).execute(database.pool()).await.unwrap();
    let question = json!({ "events": (1..=9).map(id).collect::<Vec<_>>(), "keys": ["k1"] });
    let answer: Value = wait::until("an answer", Duration::from_secs(20), || async {
        let asked = client.request("mesh.ctl.shop.explain", question.to_string().into()).await;
        asked.map_err(|error| error.to_string()).map(|reply| serde_json::from_slice(&reply.payload).unwrap())
    })
    .await
    .unwrap();
    let deliveries = answer["deliveries"].as_array().unwrap();
    let states: Vec<_> = deliveries.iter().map(|delivery| delivery["state"].as_str().unwrap()).collect();
    // Nothing is said about what was not begun; an attempt that is left over says nothing about what is settled.
    assert_eq!(states, ["handled", "no_effect", "dead", "parked", "retrying"], "{answer}");
    assert_eq!(deliveries[1]["reason"], "already_paid");
    assert_eq!((&deliveries[2]["reason"], &deliveries[2]["error"]), (&json!("rejected"), &json!("no such account")));
    assert_eq!(deliveries[3]["behind"], id(3).to_string());
    assert_eq!((&deliveries[4]["attempts"], &deliveries[4]["error"]), (&json!(2), &json!("deadlock")));
    let [waiting] = &answer["unpublished"].as_array().unwrap()[..] else { panic!("{answer}") };
    assert_eq!(
        (&waiting["key"], &waiting["dead"], &waiting["error"]),
        (&json!("k1"), &json!(false), &json!("no stream"))
    );
    assert!(waiting["waiting_seconds"].as_f64().unwrap() >= 10.0);
    let refused = client.request("mesh.ctl.shop.explain", "{".into()).await.unwrap();
    assert!(refused.headers.unwrap().get("Nats-Service-Error-Code").is_some());
}
