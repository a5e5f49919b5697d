//! The endpoint for Prometheus: a record as text, and a small server that hands it out.

mod http;
mod server;
mod text;

pub(super) use server::Endpoint;
