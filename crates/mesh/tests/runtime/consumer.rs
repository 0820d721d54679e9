//! From the stream to the handlers: every fact once, in the order of its key, whatever goes away meanwhile.

mod durable;
mod effects;
mod faults;
mod gateway;
mod order;
mod poison;
mod shared;
mod stopping;
