use std::collections::BTreeSet;

use crate::service;

/// What the code hears is what the catalogue tells the rest of the world.
#[test]
fn the_service_is_what_its_catalogue_entry_says() {
    let entry = events::catalogue::service("inventory").unwrap();
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
