//! Events to measure with: what agents send, over HTTP and by the real hook program, and what became of it.

mod client;
mod events;
mod hooks;
mod ledger;

pub(super) use client::{Acknowledgement, Client};
pub(super) use events::{Clock, Key, Outgoing, Session};
pub(super) use hooks::{HookCall, HookLoad};
pub(super) use ledger::{Audit, Ledger, Sent};
