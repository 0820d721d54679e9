//! From facts to mails, with a real nats-server and a real mail server.

#![expect(clippy::unwrap_used, reason = "steps that several tests share fail a test as the tests themselves do")]

mod world;

use events::{CancelReason, Currency, Money, OrderCancelled, OrderConfirmed, OrderCreated, OrderLine, RefundIssued};
use events::{RefundReason, Sku};
use serde_json::json;
use testkit::{Smtp, wait};
use uuid::Uuid;

use world::{PATIENCE, World};

const ORDER: Uuid = Uuid::from_u128(0x0d);
const CUSTOMER: Uuid = Uuid::from_u128(0xc0);
const CREATED: Uuid = Uuid::from_u128(0xF1);
const CONFIRMED: Uuid = Uuid::from_u128(0xF2);
const CANCELLED: Uuid = Uuid::from_u128(0xF3);
const REFUNDED: Uuid = Uuid::from_u128(0xF4);

fn money() -> Money {
    Money::new(1999, Currency::parse("EUR").unwrap()).unwrap()
}

fn created() -> OrderCreated {
    let line = OrderLine { sku: Sku::parse("cup").unwrap(), quantity: 1, unit_price: money() };
    OrderCreated { order_id: ORDER, customer_id: CUSTOMER, total: money(), lines: vec![line] }
}

fn confirmed() -> OrderConfirmed {
    OrderConfirmed { order_id: ORDER }
}

fn cancelled() -> OrderCancelled {
    OrderCancelled { order_id: ORDER, reason: CancelReason::OutOfStock }
}

fn refunded() -> RefundIssued {
    let (payment_id, refund_id) = (Uuid::from_u128(2), Uuid::from_u128(3));
    let reason = RefundReason::InventoryFailed;
    RefundIssued { order_id: ORDER, payment_id, refund_id, amount: money(), reason }
}

/// The ids of the mails that went out, in order.
fn ids(smtp: &Smtp) -> Vec<String> {
    let mails = smtp.mails().unwrap();
    mails.iter().map(|mail| mail.header("Message-ID").unwrap_or_default().to_owned()).collect()
}

fn id(fact: Uuid) -> String {
    format!("<{fact}@notifications.shop.example>")
}

#[tokio::test]
async fn each_fact_is_one_mail_however_often_it_comes() {
    let (world, smtp) = (World::start().await, Smtp::start().await.unwrap());
    let running = world.run(&smtp).await;
    for copy in ["a", "b"] {
        world.publish(&created(), CREATED, copy).await;
        world.publish(&cancelled(), CANCELLED, copy).await;
        world.publish(&refunded(), REFUNDED, copy).await;
    }
    world.until_acknowledged().await;
    assert_eq!(ids(&smtp), [id(CANCELLED), id(REFUNDED)]);
    let mails = smtp.mails().unwrap();
    for mail in &mails {
        assert_eq!(mail.to, [format!("{CUSTOMER}@customers.example")]);
        assert_eq!(mail.from, "shop@shop.example");
        // When it happened, by the fact, not when it was sent.
        assert!(mail.header("Date").unwrap().starts_with("Thu, 01 Jan 1970 00:00:00"), "{mail:?}");
    }
    for (mail, words) in mails.iter().zip(["we do not have everything that you ordered", "gave you back 19.99 EUR"]) {
        let text = mail.content.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{text}");
    }
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_mail_waits_for_the_fact_that_says_whose_the_order_is() {
    let (world, smtp) = (World::start().await, Smtp::start().await.unwrap());
    let running = world.run(&smtp).await;
    world.publish(&confirmed(), CONFIRMED, "a").await;
    world.until_acknowledged().await;
    assert_eq!(ids(&smtp), [] as [String; 0]);
    world.publish(&created(), CREATED, "a").await;
    world.until_acknowledged().await;
    world.publish(&confirmed(), CONFIRMED, "b").await;
    world.publish(&created(), CREATED, "b").await;
    world.until_acknowledged().await;
    assert_eq!(ids(&smtp), [id(CONFIRMED)]);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_mail_server_that_is_away_costs_no_attempt_and_no_mail() {
    let (world, smtp) = (World::start().await, Smtp::start().await.unwrap());
    let running = world.run(&smtp).await;
    world.publish(&created(), CREATED, "a").await;
    world.until_acknowledged().await;
    smtp.kill9().await;
    world.publish(&confirmed(), CONFIRMED, "a").await;
    world.publish(&refunded(), REFUNDED, "a").await;
    world.until_claimed("mail-confirmation", CONFIRMED).await;
    // Several probes.
    world::elapse(std::time::Duration::from_secs(4)).await;
    smtp.restart().await.unwrap();
    world.until_acknowledged().await;
    assert_eq!(ids(&smtp), [id(CONFIRMED), id(REFUNDED)]);
    for (subscriber, fact) in [("mail-confirmation", CONFIRMED), ("mail-refund", REFUNDED)] {
        let entry = world.entry(subscriber, fact).await;
        assert_eq!((&entry["state"], &entry["attempt"]), (&json!("settled"), &json!(1)), "{subscriber}");
    }
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_refusal_for_good_is_kept_and_one_for_now_is_tried_again() {
    let (world, smtp) = (World::start().await, Smtp::start().await.unwrap());
    let running = world.run(&smtp).await;
    world.publish(&created(), CREATED, "a").await;
    world.until_acknowledged().await;
    smtp.answer_recipients(Some("451 come back later")).unwrap();
    world.publish(&confirmed(), CONFIRMED, "a").await;
    wait::until("a failed attempt", PATIENCE, || async {
        match world.entry("mail-confirmation", CONFIRMED).await {
            entry if entry["history"][0]["error"].as_str().unwrap_or_default().contains("451") => Ok(()),
            entry => Err(entry.to_string()),
        }
    })
    .await
    .unwrap();
    smtp.answer_recipients(None).unwrap();
    world.until_acknowledged().await;
    assert_eq!(ids(&smtp), [id(CONFIRMED)]);
    smtp.answer_recipients(Some("550 no such mailbox")).unwrap();
    world.publish(&refunded(), REFUNDED, "a").await;
    world.until_acknowledged().await;
    let letters = world.letters().await;
    let [letter] = &letters[..] else { unreachable!("one letter: {letters:?}") };
    assert_eq!((&letter["subscriber"], &letter["reason"]), (&json!("mail-refund"), &json!("rejected")));
    assert!(letter["detail"].as_str().unwrap().contains("550"), "{letter}");
    assert!(letter["message"]["inline"]["payload"].as_str().is_some_and(|bytes| !bytes.is_empty()), "{letter}");
    assert_eq!(ids(&smtp), [id(CONFIRMED)]);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn mails_may_go_into_files_one_for_each_fact() {
    let world = World::start().await;
    let directory = testkit::scratch::dir("mails").unwrap();
    let running = world.run_into(directory.path()).await;
    world.publish(&created(), CREATED, "a").await;
    world.publish(&confirmed(), CONFIRMED, "a").await;
    world.publish(&confirmed(), CONFIRMED, "b").await;
    world.until_acknowledged().await;
    let files: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, [std::ffi::OsString::from(format!("{CONFIRMED}.eml"))]);
    let mail = std::fs::read_to_string(directory.path().join(&files[0])).unwrap();
    assert!(mail.contains(&id(CONFIRMED)) && mail.contains("is confirmed"), "{mail}");
    running.stop().await.unwrap();
}
