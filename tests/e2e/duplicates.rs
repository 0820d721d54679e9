//! The stream delivers what it likes, as often as it likes: nothing is done twice.

use acceptance::checker::Evidence;
use acceptance::shop::{Forged, Service, Shop, Workload};
use anyhow::{Result, ensure};

use crate::in_shared_shop;

/// How often every fact is stored once more.
const COPIES: usize = 2;

#[test]
fn facts_that_are_stored_again_have_no_effect_again() -> Result<()> {
    in_shared_shop(async |shop| {
        let workload = Workload::prepare(shop).await?;
        let placed = workload.place_many(shop, 12, 4).await?;
        shop.end(&placed).await?;
        let before = shop.evidence().await?;
        let absorbed = absorbed(shop).await?;
        let facts: Vec<_> = before
            .stream
            .iter()
            .filter(|stored| placed.iter().any(|placed| stored.flow() == Some(placed.order_id)))
            .collect();
        ensure!(facts.len() > 3 * placed.len(), "only {} facts of {} orders", facts.len(), placed.len());
        // Backwards: the last fact of each order comes again before the first.
        for stored in facts.iter().rev() {
            for _ in 0..COPIES {
                shop.store(&Forged::again(stored), &shop.next_key()).await?;
            }
        }
        let after = shop.evidence().await?;
        ensure!(after.stream.len() == before.stream.len() + COPIES * facts.len(), "a copy was followed by something");
        same_books(&before, &after)?;
        let heard = |kind: &str| {
            before.reactions.iter().filter(|reaction| reaction.hears.iter().any(|hears| hears == kind)).count()
        };
        let repeats: usize = facts.iter().map(|stored| COPIES * heard(stored.kind())).sum();
        let counted = self::absorbed(shop).await? - absorbed;
        ensure!(
            counted == u64::try_from(repeats)?,
            "{repeats} repeats were delivered, {counted} counted as duplicates"
        );
        Ok(())
    })
}

/// Every table that an effect would show in is as it was.
fn same_books(before: &Evidence, after: &Evidence) -> Result<()> {
    ensure!(before.orders == after.orders, "an order has changed");
    ensure!(before.ledger == after.ledger && before.payments == after.payments, "an account has changed");
    ensure!(before.stock == after.stock && before.reservations == after.reservations, "stock has changed");
    Ok(())
}

/// `inbox_duplicates_total`, summed over all services.
async fn absorbed(shop: &Shop) -> Result<u64> {
    let mut total = 0;
    for service in Service::ALL {
        total += shop.metric(service, "inbox_duplicates_total").await?;
    }
    Ok(total)
}
