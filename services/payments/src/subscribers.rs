//! What this service does about the facts that it hears: one file per reaction.

mod charge_customer;
mod refund_cancelled_order;
mod refund_failed_order;

pub use charge_customer::ChargeCustomer;
pub use refund_cancelled_order::RefundCancelledOrder;
pub use refund_failed_order::RefundFailedOrder;

#[cfg(test)]
mod tests;
