//! Running compiled modules: `Backend` → `Executable` → `run`.
//!
//! A [`Backend`] turns a [`Program`] (a module, its entry function and the weights bound to it) into an [`Executable`]
//! for a [`Device`] at a [`Tier`]. It declares what it can do, and what it cannot is a typed [`Error`] before anything
//! runs. [`choose`] picks the one for a device and a tier among those that a program has, and a [`Session`]
//! compiles once for each set of input shapes.
//!
//! # What stays the same when a faster backend comes
//!
//! - Users hold a [`Session`] and call [`Session::run`]. Which memory is planned, which streams are used and how many
//!   kernels there are is the executable's own business.
//! - Weights are bound once, in [`Weights`]. All programs that a session compiles, one for each shape, share the same
//!   `Weights`, told apart by [`Weights::id`]: a backend that copies them to its device keeps one copy for each id.
//! - Values that a run updates are a [`State`], which a program is bound to. They stay where the backend computes; a run takes
//!   and gives nothing of them. Programs of one backend may share a state: one for each shape, or one that fills a cache and
//!   one that reads it.
//! - [`Executable::run`] takes `&self`, so several threads may run one executable at the same time.

#![forbid(unsafe_code)]

mod backend;
mod cache;
mod calls;
mod device;
mod error;
mod fallback;
mod inputs;
pub mod memory;
pub mod memory_plan;
mod options;
pub mod profile;
mod program;
mod ranks;
mod reference;
mod registry;
mod session;
pub mod state;
mod tier;

pub use backend::{Backend, Bound, Capabilities, ClusterValues, Counters, Executable, Lifetime, Outcome};
pub use calls::{CustomCalls, DeviceReduction};
pub use device::Device;
pub use error::{Error, ErrorKind, Offer, Result};
pub use fallback::{Fallback, ReferenceFallback};
pub use inputs::mismatch;
pub use options::{CompileOptions, RunOptions};
pub use program::{Program, Source, StateBinding, Weights};
pub use ranks::{DeviceCollectives, DeviceGroup, RankPlace};
pub use reference::Reference;
pub use registry::{Choice, Target, choose, offers, planner};
pub use session::{InputType, Session, Specialise};
pub use state::State;
pub use tier::Tier;
pub use warpforge_fusion::Precision;
pub use warpforge_interp::Observer;
