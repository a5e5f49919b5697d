//! Execution plans: candidates from heuristics, the fastest is kept.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::library::{Cudnn, Descriptor, check, kind};
use crate::driver::{Address, Handle, Stream};
use crate::error::{GpuError, Result};
use crate::tuning::least_time;

/// Candidates to consider, and to measure.
const MAX_CANDIDATES: usize = 24;
const MEASURED: usize = 8;

/// Heuristic modes: the best model, and the fallback.
const HEURISTIC_MODES: [i32; 2] = [3, 2];

/// Prefix of graph names whose operands must not be rounded below their type.
pub(super) const EXACT: &str = "exact ";

/// Numerical notes of engines that are less accurate than f32: tensor cores, reduced precision, FFT, Winograd.
const INEXACT: [i32; 8] = [0, 1, 2, 3, 5, 6, 7, 8];

/// Where a tensor is stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Storage {
    /// Device memory.
    Memory(Address),
    /// Virtual: an intermediate result.
    Virtual,
    /// A host scalar.
    Scalar(f32),
}

/// A graph that is ready to run.
pub(crate) struct CudnnPlan {
    library: Arc<Cudnn>,
    plan: Arc<Descriptor>,
    bindings: Descriptor,
    /// Host scalars that the variant pack points to.
    _scalars: Box<[f32]>,
}

impl CudnnPlan {
    /// The fastest plan of a graph; plans are cached by `name`.
    pub(super) fn new(
        library: &Arc<Cudnn>,
        operations: &[Descriptor],
        name: String,
        bindings: &[(i64, Storage)],
        workspace: (Address, usize),
        stream: &Stream,
    ) -> Result<Self> {
        let known = library.plans.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        if let Some(known) = known {
            return Self::with(library, known, bindings, workspace.0);
        }
        // Planning with a handle is not thread-safe.
        let held = library.hold();
        let graph = Descriptor::new(library, kind::GRAPH)?;
        graph.library_handle(800, *held)?;
        let handles: Vec<Handle> = operations.iter().map(Descriptor::handle).collect();
        graph.descriptors(801, &handles)?;
        let graph = graph.finalise()?;
        let exact = name.starts_with(EXACT);
        let mut best: Option<(Duration, Self)> = None;
        let mut reason = None;
        for mode in HEURISTIC_MODES {
            let candidates = match candidates(library, &graph, mode) {
                Ok(candidates) => candidates,
                Err(error) => {
                    reason = Some(error);
                    continue;
                }
            };
            let mut measured = 0;
            for candidate in candidates {
                if measured == MEASURED {
                    break;
                }
                if exact && is_inexact(&candidate)? {
                    continue;
                }
                let tried = Self::of(library, *held, &candidate, bindings, workspace)
                    .and_then(|plan| Ok((plan.measure(*held, stream)?, plan)));
                match tried {
                    Ok((time, plan)) => {
                        measured += 1;
                        if best.as_ref().is_none_or(|(least, _)| time < *least) {
                            best = Some((time, plan));
                        }
                    }
                    Err(error @ GpuError::Lost { .. }) => return Err(error),
                    Err(error) => reason = Some(error),
                }
            }
            if best.is_some() {
                break;
            }
        }
        let none = || reason.unwrap_or_else(|| GpuError::Other("cuDNN has no plan for this".to_owned()));
        let (_, best) = best.ok_or_else(none)?;
        let mut plans = library.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.insert(name, Arc::clone(&best.plan));
        Ok(best)
    }

    fn of(
        library: &Arc<Cudnn>,
        handle: Handle,
        candidate: &Descriptor,
        bindings: &[(i64, Storage)],
        (workspace, most): (Address, usize),
    ) -> Result<Self> {
        let plan = Descriptor::new(library, kind::PLAN)?;
        plan.library_handle(400, handle)?;
        plan.descriptors(401, &[candidate.handle()])?;
        let plan = plan.finalise()?;
        let needed = usize::try_from(plan.int64(402)?).unwrap_or(usize::MAX);
        if needed > most {
            return Err(GpuError::Other(format!("a plan of cuDNN needs {needed} bytes of workspace")));
        }
        Self::with(library, Arc::new(plan), bindings, workspace)
    }

    /// A plan with bound tensors.
    fn with(
        library: &Arc<Cudnn>,
        plan: Arc<Descriptor>,
        bindings: &[(i64, Storage)],
        workspace: Address,
    ) -> Result<Self> {
        let scalars: Box<[f32]> = bindings
            .iter()
            .map(|(_, storage)| if let Storage::Scalar(number) = storage { *number } else { 0.0 })
            .collect();
        let pack = Descriptor::new(library, kind::VARIANT_PACK)?;
        let names: Vec<i64> = bindings.iter().map(|(name, _)| *name).collect();
        let pointers: Vec<u64> = bindings
            .iter()
            .zip(&scalars)
            .map(|((_, storage), number)| match storage {
                Storage::Memory(address) => *address,
                _ => std::ptr::from_ref(number) as u64,
            })
            .collect();
        pack.pointers(1001, &pointers)?;
        pack.int64s(1000, &names)?;
        pack.pointers(1003, &[workspace])?;
        Ok(Self { library: Arc::clone(library), plan, bindings: pack.finalise()?, _scalars: scalars })
    }

    fn measure(&self, handle: Handle, stream: &Stream) -> Result<Duration> {
        least_time(&self.library.gpu, stream, || self.run_by(handle, stream))
    }

    /// Launches the graph.
    pub(crate) fn run(&self, stream: &Stream) -> Result<()> {
        let handle = self.library.hold();
        self.run_by(*handle, stream)
    }

    /// Launches the graph with a locked handle.
    fn run_by(&self, handle: Handle, stream: &Stream) -> Result<()> {
        let functions = &self.library.functions;
        // SAFETY: handle, plan and places live; the places belong to the plan's tensors.
        unsafe {
            check((functions.set_stream)(handle, stream.handle()), "give cuDNN a stream")?;
            check(
                (functions.execute)(handle, self.plan.handle(), self.bindings.handle()),
                "run a plan of cuDNN",
            )
        }
    }
}

fn candidates(library: &Arc<Cudnn>, graph: &Descriptor, mode: i32) -> Result<Vec<Descriptor>> {
    let heuristics = Descriptor::new(library, kind::HEURISTICS)?;
    heuristics.descriptors(201, &[graph.handle()])?;
    heuristics.choice(200, 8, mode)?;
    heuristics.finalise()?.inner(202, kind::CONFIGURATION, MAX_CANDIDATES)
}

/// Whether a candidate is less accurate than its operand type.
fn is_inexact(candidate: &Descriptor) -> Result<bool> {
    let engines = candidate.inner(300, kind::ENGINE, 1)?;
    let Some(engine) = engines.first() else { return Ok(false) };
    let notes = engine.choices(1303, 11, 16)?;
    Ok(notes.iter().any(|note| INEXACT.contains(note)))
}
