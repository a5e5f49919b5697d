//! Execution plans: candidates from heuristics; the fastest is kept, for later processes too.

use std::sync::Arc;
use std::time::Duration;

use super::library::{Cudnn, Descriptor, check, kind};
use crate::driver::{Address, Handle, Stream};
use crate::error::{GpuError, Result};
use crate::tuning::{Choice, least_time};

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
        if let Some(known) = library.known(&name) {
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
        let candidates = Candidates { library, handle: *held, graph: &graph, exact, bindings, workspace };
        let task = format!("{name} in {} bytes", workspace.1);
        let choice = Choice::new(library.choices.as_ref(), &library.gpu, &library.version(), &task)?;
        let best = match choice.known().and_then(|position| candidates.at(position)) {
            Some(plan) => plan,
            None => {
                let (position, plan) = candidates.fastest(stream)?;
                choice.keep(position);
                plan
            }
        };
        library.remember(name, &best.plan);
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

/// What the heuristics offer for a graph, and what plans need besides.
struct Candidates<'a> {
    library: &'a Arc<Cudnn>,
    handle: Handle,
    graph: &'a Descriptor,
    /// Whether operands must not be rounded below their type.
    exact: bool,
    bindings: &'a [(i64, Storage)],
    workspace: (Address, usize),
}

impl Candidates<'_> {
    fn of_mode(&self, mode: i32) -> Result<Vec<Descriptor>> {
        let heuristics = Descriptor::new(self.library, kind::HEURISTICS)?;
        heuristics.descriptors(201, &[self.graph.handle()])?;
        heuristics.choice(200, 8, mode)?;
        heuristics.finalise()?.inner(202, kind::CONFIGURATION, MAX_CANDIDATES)
    }

    fn plan(&self, candidate: &Descriptor) -> Result<CudnnPlan> {
        CudnnPlan::of(self.library, self.handle, candidate, self.bindings, self.workspace)
    }

    /// The plan of the candidate at a position, counted over the modes.
    fn at(&self, position: usize) -> Option<CudnnPlan> {
        let mode = *HEURISTIC_MODES.get(position / MAX_CANDIDATES)?;
        let candidates = self.of_mode(mode).ok()?;
        self.plan(candidates.get(position % MAX_CANDIDATES)?).ok()
    }

    /// The fastest plan and the position of its candidate.
    fn fastest(&self, stream: &Stream) -> Result<(usize, CudnnPlan)> {
        let mut best: Option<(Duration, usize, CudnnPlan)> = None;
        let mut reason = None;
        for (at, mode) in HEURISTIC_MODES.into_iter().enumerate() {
            let candidates = match self.of_mode(mode) {
                Ok(candidates) => candidates,
                Err(error) => {
                    reason = Some(error);
                    continue;
                }
            };
            let mut measured = 0;
            for (position, candidate) in (at * MAX_CANDIDATES..).zip(&candidates) {
                if measured == MEASURED {
                    break;
                }
                if self.exact && is_inexact(candidate)? {
                    continue;
                }
                let tried =
                    self.plan(candidate).and_then(|plan| Ok((plan.measure(self.handle, stream)?, plan)));
                match tried {
                    Ok((time, plan)) => {
                        measured += 1;
                        if best.as_ref().is_none_or(|(least, ..)| time < *least) {
                            best = Some((time, position, plan));
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
        best.map(|(_, position, plan)| (position, plan)).ok_or_else(none)
    }
}

/// Whether a candidate is less accurate than its operand type.
fn is_inexact(candidate: &Descriptor) -> Result<bool> {
    let engines = candidate.inner(300, kind::ENGINE, 1)?;
    let Some(engine) = engines.first() else { return Ok(false) };
    let notes = engine.choices(1303, 11, 16)?;
    Ok(notes.iter().any(|note| INEXACT.contains(note)))
}
