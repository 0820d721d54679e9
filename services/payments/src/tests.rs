use std::collections::BTreeSet;

use events::catalogue;

use crate::service;

/// What the code hears is what the catalogue tells the rest of the world.
#[test]
fn the_service_is_what_its_catalogue_entry_says() {
    let entry = catalogue::service("payments").unwrap();
    let description = service().description();
    let hears = description["subscribers"].as_array().unwrap().iter().map(|subscriber| {
        let text = |member: &str| subscriber[member].as_str().unwrap().to_owned();
        (text("name"), text("hears"))
    });
    let declared = entry.reactions.iter().flat_map(|reaction| {
        reaction.majors.iter().map(|major| (reaction.subscriber.clone(), format!("{}.v{major}", reaction.on)))
    });
    assert_eq!(hears.collect::<BTreeSet<_>>(), declared.collect());
    assert!(entry.actions.is_empty(), "requests to this service publish nothing");
}

/// The page for people tells of every reaction what it hears and what it may say.
#[test]
fn the_page_says_what_the_catalogue_says() {
    let entry = catalogue::service("payments").unwrap();
    let page = include_str!("../../../docs/services/payments.md");
    for catalogue::Reaction { subscriber: name, on, emits, .. } in &entry.reactions {
        let row = page.lines().find(|line| line.starts_with('|') && line.contains(&format!("(`{name}`)")));
        let cells: Vec<&str> = row.unwrap_or_else(|| panic!("no row for {name}")).split('|').collect();
        let (hears, says) = (code_words(cells[1]), code_words(cells[3]));
        assert!(hears.contains(&rust_name(on).as_str()), "{name}: {hears:?}");
        let emits: BTreeSet<String> = emits.iter().map(|fact| rust_name(fact)).collect();
        assert!(says.iter().copied().eq(emits.iter()), "{name} may say {emits:?}, the page tells of {says:?}");
    }
}

/// The words in backticks.
fn code_words(cell: &str) -> BTreeSet<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// `orders.order_created` is `OrderCreated`.
fn rust_name(fact: &str) -> String {
    let words = fact.rsplit('.').next().unwrap_or_default().split('_');
    words.map(|word| format!("{}{}", word[..1].to_uppercase(), &word[1..])).collect()
}
