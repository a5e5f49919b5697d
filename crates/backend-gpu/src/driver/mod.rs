//! The driver of a GPU: devices, memory, streams, events, modules and graphs.

// Calls the driver.
#![allow(unsafe_code)]

mod api;
mod compiler;
mod constants;
mod functions;
mod gpu;
mod module;
mod properties;
mod staging;
mod stream;
pub(crate) mod tensor_map;

pub(crate) use api::Driver;
#[cfg(test)]
pub(crate) use compiler::{Compiler, Functions as CompilerFunctions};
pub(crate) use constants::Uploads;
#[cfg(test)]
pub(crate) use functions::Functions;
pub(crate) use functions::{Address, Handle};
pub(crate) use gpu::{Buffer, Gpu, Pinned};
pub(crate) use module::{Function, Module};
pub(crate) use staging::Staging;
pub(crate) use stream::{Event, Graph, Stream};
