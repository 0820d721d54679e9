use std::collections::BTreeSet;

use mesh::Timer;
use mesh::http::Operation;

use crate::http::{CancelOrder, PlaceOrder};
use crate::{Settings, deadline, service};

/// What the code hears and acts on is what the catalogue tells the rest of the world.
#[test]
fn the_service_is_what_its_catalogue_entry_says() {
    let entry = events::catalogue::service("orders").unwrap();
    let description = service(Settings::default()).description();
    let hears = description["subscribers"].as_array().unwrap().iter().map(|subscriber| {
        let text = |member: &str| subscriber[member].as_str().unwrap().to_owned();
        (text("name"), text("hears"))
    });
    let declared = entry.reactions.iter().flat_map(|reaction| {
        reaction.majors.iter().map(|major| (reaction.subscriber.clone(), format!("{}.v{major}", reaction.on)))
    });
    assert_eq!(hears.collect::<BTreeSet<_>>(), declared.collect());

    let acts = BTreeSet::from([PlaceOrder::NAME, CancelOrder::NAME, deadline::OrderDeadline::NAME]);
    assert_eq!(acts, entry.actions.iter().map(|action| action.name.as_str()).collect());
}
