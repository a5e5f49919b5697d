//! The CPU backend: capabilities, thread pools and compilation.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use warpforge_fusion::cluster::{Cluster, HoistLimits, Machine};
use warpforge_fusion::pipeline::{self, Plan};
use warpforge_fusion::{Graph, Recipe};
use warpforge_kernels::pool::Pool;
use warpforge_runtime::{
    Backend, Capabilities, Device, Error, ErrorKind, Executable, Precision, Program, Reference,
    ReferenceFallback, Result, Target, Tier,
};

use crate::executable::{CpuExecutable, NAME};
use crate::kernel;

/// Environment variable with the number of threads, used where the target names none.
const THREADS: &str = "WARPFORGE_NUM_THREADS";

/// The maximum number of threads of a pool.
const MAX_THREADS: usize = 512;

/// Values that depend on constants alone: a part of the caches for what could be computed again at once.
const HOISTED: HoistLimits = HoistLimits { added_bytes: 64 << 20, cheap_bytes: 1 << 20 };

/// The CPU engine.
#[derive(Default)]
pub struct Cpu {
    /// The last pool; executables with the same number of threads share it.
    pool: Mutex<Weak<Pool>>,
}

impl Cpu {
    fn pool(&self, threads: Option<NonZeroUsize>) -> Result<Arc<Pool>> {
        let threads = match threads {
            Some(threads) => threads,
            None => match std::env::var(THREADS) {
                Ok(text) => text.parse().map_err(|_| {
                    ErrorKind::Threads(format!("{THREADS} is `{text}`, not a number above 0"))
                })?,
                Err(_) => std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            },
        };
        if threads.get() > MAX_THREADS {
            let reason = format!("{threads} threads are more than the {MAX_THREADS} that a run may use");
            return Err(ErrorKind::Threads(reason).into());
        }
        let mut known = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = known.upgrade().filter(|pool| pool.threads() == threads.get()) {
            return Ok(pool);
        }
        let pool = Pool::new(threads).map_err(|error| ErrorKind::Failed {
            backend: NAME,
            reason: format!("cannot start {threads} threads: {error}"),
        })?;
        let pool = Arc::new(pool);
        *known = Arc::downgrade(&pool);
        Ok(pool)
    }
}

impl Backend for Cpu {
    fn name(&self) -> &'static str {
        NAME
    }

    fn serves(&self, device: Device) -> bool {
        device == Device::Cpu
    }

    fn devices(&self) -> Vec<Device> {
        vec![Device::Cpu]
    }

    fn capabilities(&self, _: Device) -> Capabilities {
        let plain = [Precision::Model, Precision::Bf16].into_iter();
        let precisions = plain.chain(Recipe::ALL.map(Precision::Quantized)).collect();
        let tiers = vec![Tier::Production, Tier::Observable];
        Capabilities { tiers, precisions, observes_values: false }
    }

    fn plan(&self, program: &Program, target: &Target) -> Result<Plan> {
        let entry = program.entry();
        let func = program.module().function(entry).ok_or_else(|| ErrorKind::Entry {
            entry: entry.to_owned(),
            reason: "there is no such function".to_owned(),
        })?;
        let device = CpuDevice {
            precision: target.precision,
            has_state: !program.bindings().is_empty(),
            machine: target.machine.clone(),
            gradient_checkpointing: target.gradient_checkpointing,
        };
        pipeline::plan(func, &|at| program.weights().get(at).cloned(), &device)
            .map_err(|error| ErrorKind::import(NAME, &error).into())
    }

    fn compile(&self, program: &Program, target: &Target) -> Result<Box<dyn Executable>> {
        let pool = self.pool(target.threads)?;
        let observe = target.tier == Tier::Observable;
        let compiled = self.plan(program, target).and_then(|plan| {
            CpuExecutable::new(program, plan, pool, observe, &|program| self.plan(program, target)).map_err(
                |error| {
                    let reason = error.to_string();
                    match error.is_unsupported() {
                        true => ErrorKind::Unsupported { backend: NAME, operations: vec![reason] },
                        false => ErrorKind::Failed { backend: NAME, reason },
                    }
                    .into()
                },
            )
        });
        match compiled.map_err(Error::into_kind) {
            Ok(compiled) => {
                if !compiled.fallbacks().is_empty() {
                    // What the reference cannot evaluate either is named now, not in the middle of a run.
                    Reference.compile(program, target)?;
                }
                Ok(Box::new(compiled))
            }
            // The reference computes as the model says: another precision is refused.
            Err(ErrorKind::Unsupported { operations, .. }) if target.precision == Precision::Model => {
                Ok(Box::new(ReferenceFallback::new(program, target, operations.join(", "))?))
            }
            Err(kind) => Err(kind.into()),
        }
    }
}

/// The CPU as the pipeline sees it.
struct CpuDevice {
    precision: Precision,
    /// Whether the program updates state.
    has_state: bool,
    machine: Option<Arc<dyn Machine>>,
    gradient_checkpointing: bool,
}

impl pipeline::Device for CpuDevice {
    fn precision(&self) -> Precision {
        self.precision
    }

    /// Operands are packed, and rounded meanwhile.
    fn converts_operands(&self) -> bool {
        true
    }

    fn reads_quantized_weights(&self) -> bool {
        true
    }

    /// A row is some vectors at least, beside what it takes to begin one.
    fn shortest_row(&self) -> usize {
        32
    }

    fn resamples(&self) -> bool {
        true
    }

    fn joins_rows(&self) -> bool {
        true
    }

    /// Updates of a parameter and of its moments read the same values.
    fn joins_loops(&self) -> bool {
        self.has_state
    }

    fn checkpoints_gradients(&self) -> bool {
        self.gradient_checkpointing
    }

    fn hoists(&self) -> Option<HoistLimits> {
        Some(HOISTED)
    }

    fn machine(&self) -> Option<Arc<dyn Machine>> {
        self.machine.clone()
    }

    fn has_kernel(&self, graph: &Graph, cluster: &Cluster) -> bool {
        kernel::has_kernel(graph, cluster, self)
    }

    fn reads_strided_image(&self, graph: &Graph, cluster: &Cluster) -> bool {
        kernel::reads_strided_image(graph, cluster)
    }
}
