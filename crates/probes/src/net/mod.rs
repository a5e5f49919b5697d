//! Networks: TCP throughput and round trips, and the server they talk to.
//!
//! A [`Server`] answers any number of connections, each of which asks for one thing: take data, send data, or return
//! what comes. [`measure_throughput`], [`measure_round_trips`] and [`Echo`] are the asking side. `wire` describes every byte
//! that is exchanged beside the payload.

mod address;
mod client;
mod error;
mod flow;
mod placement;
mod server;
#[cfg(test)]
mod tests;
mod wire;

pub use address::{DEFAULT_PORT, resolve};
pub use client::{Direction, Echo, Load, check, measure_round_trips, measure_throughput};
pub use error::NetError;
pub use placement::Placement;
pub use server::{LocalServer, MAX_CLIENTS, Served, Server, Traffic};
pub use wire::{MAX_BLOCK_BYTES, VERSION};
