//! How to compile and how to run.

use std::num::NonZeroUsize;
use std::sync::Arc;

use warpforge_fusion::Precision;
use warpforge_fusion::cluster::Machine;
use warpforge_interp::Observer;

use crate::{Device, Tier};

/// How to compile.
#[derive(Debug, Clone, Default)]
pub struct CompileOptions {
    /// Where the program is to run.
    pub device: Device,
    /// How; the best tier that the device has when left out.
    pub tier: Option<Tier>,
    /// The element type that contractions multiply in.
    pub precision: Precision,
    /// The most host threads that a run may use; left out, the backend decides.
    pub threads: Option<NonZeroUsize>,
    /// Refuse a program with operations that only the reference interpreter runs.
    pub no_fallback: bool,
    /// What the machine says about fusion decisions that are close; left out, they are made by rules.
    pub machine: Option<Arc<dyn Machine>>,
    /// Have the backward pass of a training step compute the forward pass again, segment by segment, instead of keeping it.
    pub gradient_checkpointing: bool,
}

/// How to run once.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// Collect profile events.
    pub profile: bool,
    /// Sees every value in the correctness tier, where
    /// [`Capabilities::observes_values`](crate::Capabilities::observes_values).
    pub observer: Option<Arc<dyn Observer>>,
    /// Keep what each cluster gives.
    pub clusters: bool,
}
