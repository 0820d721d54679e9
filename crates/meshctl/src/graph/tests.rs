use std::path::Path;

use events::catalogue::ServiceEntry;
use serde_json::{Value, json};

use super::check::{self, Finding};
use super::{Graph, draw};
use crate::catalogue::Catalogue;

fn entry(value: Value) -> ServiceEntry {
    serde_json::from_value(value).unwrap()
}

fn catalogue(services: Vec<Value>) -> Catalogue {
    Catalogue { services: services.into_iter().map(entry).collect(), flows: Vec::new() }
}

fn fact(name: &str, outcome: &[&str]) -> Value {
    json!({ "type": format!("{name}.v1"), "revision": 1, "outcome": outcome })
}

fn effect(name: &str, undone_by: &str) -> Value {
    json!({ "type": format!("{name}.v1"), "revision": 1, "outcome": ["effect"], "undone_by": undone_by })
}

fn on(subscriber: &str, heard: &str, emits: &[&str]) -> Value {
    json!({ "subscriber": subscriber, "on": heard, "majors": [1], "emits": emits })
}

/// Parcels are booked; a carrier takes or refuses them; a refusal takes the booking back. Sound.
fn parcels() -> Value {
    json!({
        "service": "parcels",
        "facts": [
            { "type": "parcels.booked.v1", "revision": 1, "outcome": ["entry", "effect"], "undone_by": "parcels.withdrawn" },
            fact("parcels.withdrawn", &["undo", "end"]),
            fact("parcels.delivered", &["end"]),
        ],
        "actions": [{ "name": "book", "emits": ["parcels.booked"] }],
        "reactions": [
            on("withdraw", "carrier.refused", &["parcels.withdrawn"]),
            on("close", "carrier.taken", &["parcels.delivered"]),
        ],
    })
}

fn carrier() -> Value {
    json!({
        "service": "carrier",
        "facts": [fact("carrier.taken", &["note"]), fact("carrier.refused", &["failure"])],
        "reactions": [on("take", "parcels.booked", &["carrier.taken", "carrier.refused"])],
    })
}

/// Rule and subject of everything that is wrong.
fn wrong(catalogue: &Catalogue) -> Vec<(&'static str, String)> {
    check::all(catalogue).into_iter().filter(Finding::is_error).map(|finding| (finding.rule, finding.subject)).collect()
}

fn pair(rule: &'static str, subject: &str) -> (&'static str, String) {
    (rule, subject.to_owned())
}

#[test]
fn the_shop_is_sound_and_its_one_cycle_ends() {
    let shop = Catalogue::built_in().unwrap();
    assert_eq!(wrong(&shop), []);
    let graph = Graph::new(&shop);
    let [cycle] = &graph.cycles[..] else { panic!("{:?}", graph.cycles) };
    assert_eq!(cycle.facts, ["orders.order_cancelled", "payments.refund_issued"]);
    assert!(cycle.ends);
    let ended: Vec<_> = cycle.ended_by.iter().map(|bound| (bound.subscriber.as_str(), &bound.facts[..])).collect();
    assert_eq!(
        ended,
        [
            ("cancel-refunded-order", &["orders.order_cancelled".to_owned()][..]),
            ("refund-cancelled-order", &["payments.refund_issued".to_owned()][..]),
        ]
    );
}

#[test]
fn a_sound_catalogue_of_others_is_sound() {
    assert_eq!(wrong(&catalogue(vec![parcels(), carrier()])), []);
}

#[test]
fn a_cycle_that_nothing_ends_is_found_and_one_bound_on_it_is_enough() {
    let mut carrier = carrier();
    // A parcel that was taken is booked again, for ever.
    let mut again = parcels();
    again["reactions"].as_array_mut().unwrap().push(on("book-again", "carrier.taken", &["parcels.booked"]));
    assert_eq!(
        wrong(&catalogue(vec![again.clone(), carrier.clone()])),
        [pair("endless-cycle", "carrier.taken, parcels.booked")]
    );
    carrier["reactions"][0]["at_most_per_key"] = json!(3);
    assert_eq!(wrong(&catalogue(vec![again, carrier])), []);
}

#[test]
fn a_fact_that_leads_to_itself_is_a_cycle() {
    let mut parcels = parcels();
    parcels["reactions"].as_array_mut().unwrap().push(on("echo", "parcels.delivered", &["parcels.delivered"]));
    assert_eq!(wrong(&catalogue(vec![parcels, carrier()])), [pair("endless-cycle", "parcels.delivered")]);
}

#[test]
fn facts_that_nobody_hears_and_failures_that_nobody_hears_are_told_apart() {
    let mut deaf = parcels();
    deaf["reactions"] = json!([]);
    let found = wrong(&catalogue(vec![deaf, carrier()]));
    assert_eq!(
        found,
        [
            pair("unheard-fact", "carrier.taken"),
            pair("unheard-failure", "carrier.refused"),
            pair("unsaid-fact", "parcels.withdrawn"),
            pair("unsaid-fact", "parcels.delivered"),
            // Nothing leads from the refusal to what takes the booking back.
            pair("undo-unreachable", "parcels.booked"),
        ]
    );
}

#[test]
fn a_subscriber_that_nothing_feeds_is_found() {
    let mut parcels = parcels();
    parcels["actions"] = json!([]);
    let found = wrong(&catalogue(vec![parcels, carrier()]));
    assert_eq!(
        found,
        [
            pair("unsaid-fact", "parcels.booked"),
            pair("unfed-subscriber", "parcels/withdraw"),
            pair("unfed-subscriber", "parcels/close"),
            pair("unfed-subscriber", "carrier/take"),
        ]
    );
}

#[test]
fn an_effect_names_an_undo_that_exists_and_is_one() {
    let of = |undone_by: &str| {
        let mut parcels = parcels();
        parcels["facts"][0]["undone_by"] = json!(undone_by);
        wrong(&catalogue(vec![parcels, carrier()]))
    };
    assert_eq!(of("parcels.forgotten"), [pair("undo-missing", "parcels.booked")]);
    assert_eq!(of("parcels.delivered"), [pair("undo-missing", "parcels.booked")]);
    let mut nothing = parcels();
    nothing["facts"][0].as_object_mut().unwrap().remove("undone_by");
    assert_eq!(wrong(&catalogue(vec![nothing, carrier()])), [pair("undo-missing", "parcels.booked")]);
}

/// A step that can fail behind an effect makes the missing way to its undo a live hole.
#[test]
fn an_effect_whose_undo_cannot_be_reached_from_a_later_failure_is_found() {
    let customs = json!({
        "service": "customs",
        "facts": [effect("customs.declared", "customs.revoked"), fact("customs.revoked", &["undo"]),
                  fact("customs.rejected", &["failure"])],
        "actions": [{ "name": "revoke", "emits": ["customs.revoked"] }],
        "reactions": [on("declare", "carrier.taken", &["customs.declared"]),
                      on("inspect", "customs.declared", &["customs.rejected"])],
    });
    let mut told = parcels();
    told["reactions"].as_array_mut().unwrap().push(on("withdraw-rejected", "customs.rejected", &["parcels.withdrawn"]));
    let found = wrong(&catalogue(vec![told, carrier(), customs]));
    assert_eq!(found, [pair("undo-unreachable", "customs.declared")]);
}

#[test]
fn a_failure_that_leads_to_no_end_is_found() {
    let mut parcels = parcels();
    parcels["facts"][1]["outcome"] = json!(["undo"]);
    parcels["facts"][2]["outcome"] = json!(["end"]);
    assert_eq!(wrong(&catalogue(vec![parcels, carrier()])), [pair("no-end", "carrier.refused")]);
}

#[test]
fn names_that_mean_nothing_are_found() {
    let stranger = json!({
        "service": "stranger",
        "facts": [fact("parcels.booked", &["note"])],
        "reactions": [on("a", "parcels.gone", &[]), on("b", "carrier.taken", &["parcels.delivered", "stranger.nothing"]),
                      { "subscriber": "c", "on": "carrier.taken", "majors": [1, 2], "emits": [] },
                      on("c", "carrier.taken", &[])],
    });
    let found = wrong(&catalogue(vec![parcels(), carrier(), stranger]));
    let expected = [
        pair("foreign-fact", "parcels.booked"),
        pair("unknown-fact", "stranger/a"),
        pair("unpublished-major", "stranger/c"),
        pair("two-majors", "stranger/c"),
        pair("subscriber-twice", "stranger/c"),
        pair("foreign-fact", "stranger/b"),
        pair("unknown-fact", "stranger/b"),
    ];
    assert_eq!(found, expected);
}

/// Without an entry every question about ways from it would be answered by "there is none".
#[test]
fn a_catalogue_without_a_beginning_is_no_sound_one() {
    let mut parcels = parcels();
    parcels["facts"][0]["outcome"] = json!(["effect"]);
    assert_eq!(wrong(&catalogue(vec![parcels, carrier()])), [pair("no-entry", "catalogue")]);
}

#[test]
fn a_flow_that_its_services_cannot_keep_is_found() {
    let mut all = catalogue(vec![parcels(), carrier()]);
    all.flows = serde_json::from_value(json!([{
        "name": "parcel", "entry": "parcels.booked", "terminal": ["parcels.delivered", "parcels.lost"],
        "steps": [
            { "after": "parcels.booked", "expect": ["carrier.taken", "carrier.refused"], "within_seconds": 9, "owner": "carrier" },
            { "after": "carrier.taken", "expect": ["parcels.withdrawn"], "within_seconds": 9, "owner": "parcels" },
        ]
    }]))
    .unwrap();
    assert_eq!(wrong(&all), [pair("flow-end", "parcel"), pair("flow-step", "parcel")]);
}

#[test]
fn drawings_have_every_node_and_edge_once() {
    let graph = Graph::new(&catalogue(vec![parcels(), carrier()]));
    let mermaid = draw::mermaid(&graph);
    let dot = draw::dot(&graph);
    // book, withdraw, close, take: one arrow in for each but the first, one out for each fact that they say.
    let arrows = 3 + 5;
    assert_eq!(mermaid.matches("-->").count(), arrows, "{mermaid}");
    assert_eq!(dot.matches(" -> ").count(), arrows, "{dot}");
    for line in [
        "    by_carrier_take[\"take\"]",
        "    fact_parcels_booked([\"Booked\"])",
        "  fact_parcels_booked --> by_carrier_take",
    ] {
        assert!(mermaid.lines().any(|drawn| drawn == line), "{line}: {mermaid}");
    }
    assert!(dot.contains("fact_carrier_refused [label=\"Refused\", style=dashed];"), "{dot}");
    assert_eq!(dot.matches('{').count(), dot.matches('}').count());
}

#[test]
fn the_text_says_who_hears_what() {
    let text = Graph::new(&catalogue(vec![parcels(), carrier()])).to_string();
    let expected = "\
parcels
  book      by itself   says Booked
  withdraw  on Refused  says Withdrawn
  close     on Taken    says Delivered
  Booked (entry, effect, undone by Withdrawn), heard by carrier/take
  Withdrawn (undo, end), heard by nobody
  Delivered (end), heard by nobody

carrier
  take  on Booked  says Taken or Refused
  Taken (note), heard by parcels/close
  Refused (failure), heard by parcels/withdraw

";
    assert_eq!(text, expected);
}

#[test]
fn a_folder_of_files_is_the_built_in_catalogue() {
    let events = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events");
    let by_name = |mut catalogue: Catalogue| {
        catalogue.services.sort_by(|a, b| a.service.cmp(&b.service));
        catalogue
    };
    let built_in = by_name(Catalogue::built_in().unwrap());
    assert_eq!(by_name(Catalogue::load(&[events.join("catalogue")]).unwrap()), built_in);
    assert_eq!(by_name(Catalogue::load(std::slice::from_ref(&events)).unwrap()), built_in);
    assert!(Catalogue::load(&[events.join("schemas")]).is_err());
}
