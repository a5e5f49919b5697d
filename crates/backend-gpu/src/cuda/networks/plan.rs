//! Plans of graphs: cuDNN proposes, the fastest is kept.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::descriptor::{Descriptor, kind};
use super::graph::Place;
use super::{Networks, check};
use crate::driver::{Address, Handle, Stream};
use crate::error::{GpuError, Result};
use crate::tuning::least_time;

/// Proposals that are looked at, and those of them that are measured.
const PROPOSALS: usize = 24;
const MEASURED: usize = 8;

/// Ways of asking for proposals: the best model, and what always works.
const ASKED: [i32; 2] = [3, 2];

/// How the name of a graph begins whose operands may not be rounded further than their type does.
pub(super) const EXACT: &str = "exact ";

/// The notes of engines whose f32 is less than f32: tensor cores, rounded operands, short sums, FFT and Winograd.
const INEXACT: [i32; 8] = [0, 1, 2, 3, 5, 6, 7, 8];

/// A graph ready to run.
pub(crate) struct Plan {
    library: Arc<Networks>,
    plan: Arc<Descriptor>,
    places: Descriptor,
    /// Numbers that the places point to.
    _numbers: Box<[f32]>,
}

impl Plan {
    /// The fastest plan for a graph that is known by `name`; where one of that name was found before, the same again.
    pub(super) fn new(
        library: &Arc<Networks>,
        operations: &[Descriptor],
        name: String,
        places: &[(i64, Place)],
        workspace: (Address, usize),
        stream: &Stream,
    ) -> Result<Self> {
        let known = library.plans.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        if let Some(known) = known {
            return Self::with(library, known, places, workspace.0);
        }
        // Held to the end: one thread at a time may plan with a handle.
        let held = library.hold();
        let graph = Descriptor::new(library, kind::GRAPH)?;
        graph.library_handle(800, *held)?;
        let handles: Vec<Handle> = operations.iter().map(Descriptor::handle).collect();
        graph.descriptors(801, &handles)?;
        let graph = graph.finalise()?;
        let exact = name.starts_with(EXACT);
        let mut best: Option<(Duration, Self)> = None;
        let mut reason = None;
        for mode in ASKED {
            let proposals = match proposals(library, &graph, mode) {
                Ok(proposals) => proposals,
                Err(error) => {
                    reason = Some(error);
                    continue;
                }
            };
            let mut measured = 0;
            for proposal in proposals {
                if measured == MEASURED {
                    break;
                }
                if exact && rounds(&proposal)? {
                    continue;
                }
                let tried = Self::of(library, *held, &proposal, places, workspace)
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
        library: &Arc<Networks>,
        handle: Handle,
        proposal: &Descriptor,
        places: &[(i64, Place)],
        (workspace, most): (Address, usize),
    ) -> Result<Self> {
        let plan = Descriptor::new(library, kind::PLAN)?;
        plan.library_handle(400, handle)?;
        plan.descriptors(401, &[proposal.handle()])?;
        let plan = plan.finalise()?;
        let needed = usize::try_from(plan.number(402)?).unwrap_or(usize::MAX);
        if needed > most {
            return Err(GpuError::Other(format!("a plan of cuDNN needs {needed} bytes of workspace")));
        }
        Self::with(library, Arc::new(plan), places, workspace)
    }

    /// A plan with where its tensors are.
    fn with(
        library: &Arc<Networks>,
        plan: Arc<Descriptor>,
        places: &[(i64, Place)],
        workspace: Address,
    ) -> Result<Self> {
        let numbers: Box<[f32]> = places
            .iter()
            .map(|(_, place)| if let Place::Number(number) = place { *number } else { 0.0 })
            .collect();
        let pack = Descriptor::new(library, kind::PLACES)?;
        let names: Vec<i64> = places.iter().map(|(name, _)| *name).collect();
        let pointers: Vec<u64> = places
            .iter()
            .zip(&numbers)
            .map(|((_, place), number)| match place {
                Place::Memory(address) => *address,
                _ => std::ptr::from_ref(number) as u64,
            })
            .collect();
        pack.pointers(1001, &pointers)?;
        pack.numbers(1000, &names)?;
        pack.pointers(1003, &[workspace])?;
        Ok(Self { library: Arc::clone(library), plan, places: pack.finalise()?, _numbers: numbers })
    }

    fn measure(&self, handle: Handle, stream: &Stream) -> Result<Duration> {
        least_time(&self.library.gpu, stream, || self.run_by(handle, stream))
    }

    /// Starts the graph.
    pub(crate) fn run(&self, stream: &Stream) -> Result<()> {
        let handle = self.library.hold();
        self.run_by(*handle, stream)
    }

    /// Starts the graph by a handle that nobody else uses now.
    fn run_by(&self, handle: Handle, stream: &Stream) -> Result<()> {
        let functions = &self.library.functions;
        // SAFETY: handle, plan and places live; the places belong to the plan's tensors.
        unsafe {
            check((functions.set_stream)(handle, stream.handle()), "give cuDNN a stream")?;
            check(
                (functions.execute)(handle, self.plan.handle(), self.places.handle()),
                "run a plan of cuDNN",
            )
        }
    }
}

fn proposals(library: &Arc<Networks>, graph: &Descriptor, mode: i32) -> Result<Vec<Descriptor>> {
    let heuristics = Descriptor::new(library, kind::HEURISTICS)?;
    heuristics.descriptors(201, &[graph.handle()])?;
    heuristics.choice(200, 8, mode)?;
    heuristics.finalise()?.inner(202, kind::CONFIGURATION, PROPOSALS)
}

/// Whether a proposal computes with less than its operands' type has.
fn rounds(proposal: &Descriptor) -> Result<bool> {
    let engines = proposal.inner(300, kind::ENGINE, 1)?;
    let Some(engine) = engines.first() else { return Ok(false) };
    let notes = engine.choices(1303, 11, 16)?;
    Ok(notes.iter().any(|note| INEXACT.contains(note)))
}
