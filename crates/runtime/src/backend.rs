//! The contract that every backend fulfils.

use std::time::Duration;

use warpforge_fusion::pipeline::Plan;
use warpforge_ir::{OpId, ValueId};
use warpforge_tensor::Tensor;

use crate::error::{ErrorKind, Result};
use crate::fallback::Fallback;
use crate::profile::Profile;
use crate::registry::Target;
use crate::{Device, DeviceCollectives, Precision, Program, RunOptions, State, Tier};

/// What a backend can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The tiers it has, the fastest first.
    pub tiers: Vec<Tier>,
    /// The precisions that it computes in.
    pub precisions: Vec<Precision>,
    /// Whether [`RunOptions::observer`] sees the values of a run in the correctness tier.
    pub observes_values: bool,
}

/// Compiles programs for the devices that it knows.
pub trait Backend: Send + Sync {
    /// Its name in records: one word.
    fn name(&self) -> &'static str;

    /// Whether it is for devices of this kind, on this machine or another.
    fn serves(&self, device: Device) -> bool;

    /// The devices of this machine that it can run on.
    fn devices(&self) -> Vec<Device>;

    /// Why a device that it could have is not among [`Backend::devices`]; `None` when it is none of its kind.
    fn why_not(&self, _: Device) -> Option<String> {
        None
    }

    /// What it can do on one of its devices.
    fn capabilities(&self, device: Device) -> Capabilities;

    /// What [`Backend::compile`] makes kernels of: the graph of the program and its clusters.
    ///
    /// # Errors
    ///
    /// When the program is no graph of tensors, or the backend does not cluster.
    fn plan(&self, _: &Program, _: &Target) -> Result<Plan> {
        Err(ErrorKind::NotOffered { backend: self.name(), what: "fuse operations".to_owned() }.into())
    }

    /// State on the device of a target, for the programs that are compiled for it.
    ///
    /// # Errors
    ///
    /// When the device fails or has no memory.
    fn state(&self, values: &[Tensor], _: &Target) -> Result<State> {
        Ok(State::on_host(values))
    }

    /// The engine that connects its devices with those of other ranks, such as `NCCL`; `None` where only hosts can.
    fn device_engine(&self) -> Option<&'static str> {
        None
    }

    /// A device to be connected with those of other ranks.
    ///
    /// # Errors
    ///
    /// When the backend has no engine for that, its library is missing, or there is no such device.
    fn device_collectives(&self, _: Device) -> Result<Box<dyn DeviceCollectives>> {
        Err(ErrorKind::NotOffered {
            backend: self.name(),
            what: "connect devices of several ranks".to_owned(),
        }
        .into())
    }

    /// Compiles a program. Operations without a kernel fall back to the reference interpreter, and are reported by
    /// [`Executable::fallbacks`].
    ///
    /// # Errors
    ///
    /// When the program has an operation that not even the reference interpreter can run, all of them named; or when the
    /// device fails or has no memory.
    fn compile(&self, program: &Program, target: &Target) -> Result<Box<dyn Executable>>;
}

/// A compiled program.
pub trait Executable: Send + Sync {
    /// The program.
    fn program(&self) -> &Program;

    /// Runs once: inputs in the order of [`Program::inputs`], outputs in the order of [`Program::outputs`]. State that the program
    /// is bound to is updated in place.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, or the run fails. A run that fails half-way leaves a state that has to be loaded again.
    fn run(&self, inputs: &[Tensor], options: &RunOptions) -> Result<Outcome>;

    /// Puts inputs where a device reads them, for runs that take and give nothing else: `None` where inputs are read
    /// from the host anyway.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit, or the device fails.
    fn bind(&self, _: &[Tensor]) -> Result<Option<Box<dyn Bound + '_>>> {
        Ok(None)
    }

    /// What a run does on its device, where the backend counts it.
    fn counters(&self) -> Option<Counters> {
        None
    }

    /// How many host threads a run uses.
    fn threads(&self) -> usize;

    /// The most bytes that a run holds on its device, weights included, where the backend plans or counts them.
    fn peak_memory_bytes(&self) -> Option<u64>;

    /// What a run holds on its device, and from which kernel to which, where the backend plans it.
    fn lifetimes(&self) -> Vec<Lifetime> {
        Vec::new()
    }

    /// The operations that the reference interpreter runs because the backend has no kernel for them.
    fn fallbacks(&self) -> Vec<Fallback> {
        Vec::new()
    }
}

/// Memory that a run holds for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifetime {
    /// What it holds: a kernel or an operation that gives it.
    pub name: String,
    /// `weights` of a kernel, `constant`, `value` or `output`.
    pub kind: &'static str,
    /// Its bytes.
    pub bytes: u64,
    /// Where it begins in the memory that values share.
    pub offset: Option<u64>,
    /// The kernel that first holds it, in the order in which they run; none where it is there before the run.
    pub first: Option<usize>,
    /// The last kernel that holds it; none where it stays.
    pub last: Option<usize>,
}

impl Lifetime {
    /// What is there before the first kernel and stays.
    #[must_use]
    pub fn of_all_kernels(name: String, kind: &'static str, bytes: u64) -> Self {
        Self { name, kind, bytes, offset: None, first: None, last: None }
    }
}

/// An executable with its inputs on the device. Nobody else runs the executable meanwhile.
pub trait Bound {
    /// Runs once and waits: the time by the device's own clock, transfers from and to the host not in it.
    ///
    /// # Errors
    ///
    /// When the run fails.
    fn run(&mut self) -> Result<Duration>;

    /// The results of the last run, brought to the host.
    ///
    /// # Errors
    ///
    /// When the device fails.
    fn outputs(&mut self) -> Result<Vec<Tensor>>;
}

/// What a run does on its device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Kernels launched, those inside library calls counted as one each.
    pub kernel_launches: u64,
    /// Bytes that kernels read and write, each value once a kernel, as the cost model counts them.
    pub bytes_moved: u64,
}

/// What a run gives.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The results of the entry function that are no state, in order.
    pub outputs: Vec<Tensor>,
    /// What happened when, where [`RunOptions::profile`] asks for it.
    pub profile: Profile,
    /// What each cluster gave, in the order in which they ran, where [`RunOptions::clusters`] asks for it.
    pub clusters: Vec<ClusterValues>,
}

/// What the kernel of a cluster gave.
#[derive(Debug, Clone)]
pub struct ClusterValues {
    /// The kernel's name, as in profiles.
    pub kernel: String,
    /// The operations of the program's module that it computes.
    pub ops: Vec<OpId>,
    /// The values of the entry function that it leaves in memory; those inside it are nowhere.
    pub values: Vec<(ValueId, Tensor)>,
}
