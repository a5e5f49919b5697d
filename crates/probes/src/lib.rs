//! Loops that drive one hardware resource to its limit.
//!
//! A probe does a known amount of work on one resource and says how long it took; what to make of the time is left to
//! the caller. The micro suite measures with them, and the roofline of a backend is made of their peaks.

pub mod affinity;
pub mod cpu;
pub mod disk;
pub mod latency;
pub mod limits;
pub mod memory;
pub mod net;
pub mod team;
