//! What this service does about the facts that it hears: one file per reaction.

mod note_order;
mod release_stock;
mod reserve_stock;

pub use note_order::NoteOrder;
pub use release_stock::ReleaseStock;
pub use reserve_stock::ReserveStock;

#[cfg(test)]
mod tests;
