//! What this service does about the facts that it hears: one file per reaction.

mod cancel_declined_order;
mod cancel_refunded_order;
mod confirm_order;

pub use cancel_declined_order::CancelDeclinedOrder;
pub use cancel_refunded_order::CancelRefundedOrder;
pub use confirm_order::ConfirmOrder;

#[cfg(test)]
mod tests;
