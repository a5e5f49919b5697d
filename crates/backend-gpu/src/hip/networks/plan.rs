//! Convolutions ready to run: the library proposes solutions, the fastest is kept.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use warpforge_tensor::ElementType;

use super::descriptor::{Convolution, Tensor};
use super::fused::Fused;
use super::{Networks, Solution, check};
use crate::driver::{Address, Handle, Stream};
use crate::error::{GpuError, Result};
use crate::networks::Windows;
use crate::tuning::least_time;

/// Solutions that are measured.
const MEASURED: usize = 8;

/// The algorithms whose f32 is less than f32: by FFT and by Winograd.
const INEXACT: [i32; 2] = [2, 3];

/// Sizes and strides, channels second.
#[derive(Debug, Clone)]
pub(crate) struct Shaped {
    pub(crate) dims: Vec<i64>,
    pub(crate) strides: Vec<i64>,
}

/// A convolution.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) element: ElementType,
    pub(crate) input: Shaped,
    pub(crate) weights: Shaped,
    pub(crate) output: Shaped,
    pub(crate) windows: Windows,
    pub(crate) groups: usize,
    /// Whether solutions that round further than their type does are left out.
    pub(crate) exact: bool,
    /// Whether a number for each channel is added.
    pub(crate) bias: bool,
    /// Whether nothing below zero is left.
    pub(crate) relu: bool,
}

/// Where the tensors of a convolution are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Places {
    pub(crate) input: Address,
    pub(crate) weights: Address,
    pub(crate) bias: Address,
    pub(crate) output: Address,
    /// For what the library needs while it runs, and how much there is.
    pub(crate) workspace: (Address, usize),
}

/// The library's descriptions of a convolution.
pub(super) struct Described {
    pub(super) input: Tensor,
    pub(super) weights: Tensor,
    pub(super) output: Tensor,
    pub(super) convolution: Convolution,
}

/// A convolution ready to run.
pub(crate) struct Plan {
    library: Arc<Networks>,
    described: Described,
    places: Places,
    way: Way,
}

enum Way {
    /// By a solution of this number, which needs so much workspace.
    Solution(u64, usize),
    /// By a fusion plan, with what follows the convolution.
    Fused(Fused),
}

// SAFETY: descriptions are not changed any more; the library is used under its lock.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

impl Plan {
    /// The fastest way that the library has; what is at the places is overwritten.
    ///
    /// # Errors
    ///
    /// When it has none.
    pub(crate) fn new(
        library: &Arc<Networks>,
        problem: &Problem,
        places: Places,
        stream: &Stream,
    ) -> Result<Self> {
        let tensor = |of: &Shaped| Tensor::new(library, problem.element, of);
        let described = Described {
            input: tensor(&problem.input)?,
            weights: tensor(&problem.weights)?,
            output: tensor(&problem.output)?,
            convolution: Convolution::new(library, &problem.windows, problem.groups)?,
        };
        if problem.bias || problem.relu {
            let fused = Fused::new(library, &described, problem, &places, stream)?;
            let plan = Self { library: Arc::clone(library), described, places, way: Way::Fused(fused) };
            // What cannot run says so now, while something else can still be chosen.
            plan.run(stream)?;
            return Ok(plan);
        }
        let mut plan = Self { library: Arc::clone(library), described, places, way: Way::Solution(0, 0) };
        let name = format!("{problem:?}");
        let lock = || library.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&name).copied();
        let (number, workspace) = match known {
            Some(known) => known,
            None => {
                let best = plan.best(problem.exact, stream)?;
                lock().insert(name, best);
                best
            }
        };
        plan.compile(number, stream)?;
        plan.way = Way::Solution(number, workspace);
        Ok(plan)
    }

    /// Starts the convolution.
    pub(crate) fn run(&self, stream: &Stream) -> Result<()> {
        match &self.way {
            &Way::Solution(number, workspace) => self.run_by(number, workspace, stream),
            Way::Fused(fused) => {
                let handle = self.library.on(stream)?;
                fused.run(*handle, &self.described, &self.places)
            }
        }
    }

    fn handles(&self) -> [Handle; 4] {
        let Described { input, weights, output, convolution } = &self.described;
        [weights.handle, input.handle, convolution.handle, output.handle]
    }

    fn run_by(&self, number: u64, workspace: usize, stream: &Stream) -> Result<()> {
        let handle = self.library.on(stream)?;
        let [weights, input, convolution, output] = self.handles();
        let Places { input: x, weights: w, output: y, workspace: (room, _), .. } = self.places;
        // SAFETY: handle and descriptions live, and the places belong to them; the workspace is as large as is said.
        let code = unsafe {
            let run = self.library.functions.run;
            run(*handle, weights, w, input, x, convolution, output, y, room, workspace, number)
        };
        check(code, "run a convolution")
    }

    fn compile(&self, number: u64, stream: &Stream) -> Result<()> {
        let handle = self.library.on(stream)?;
        let [weights, input, convolution, output] = self.handles();
        // SAFETY: handle and descriptions live.
        let code = unsafe {
            (self.library.functions.solution_compile)(*handle, weights, input, convolution, output, number)
        };
        check(code, "compile a convolution")
    }

    fn solutions(&self, stream: &Stream) -> Result<Vec<Solution>> {
        let handle = self.library.on(stream)?;
        let [weights, input, convolution, output] = self.handles();
        let functions = &self.library.functions;
        let mut count = 0;
        // SAFETY: handle and descriptions live, and the address is that of a variable.
        let code = unsafe {
            (functions.solution_count)(*handle, weights, input, convolution, output, &raw mut count)
        };
        check(code, "count the ways of a convolution")?;
        let mut found = vec![Solution::default(); count.min(1024)];
        let mut given = 0;
        // SAFETY: as above, and there is room for so many solutions.
        let code = unsafe {
            let (most, to) = (found.len(), found.as_mut_ptr());
            (functions.solutions)(*handle, weights, input, convolution, output, most, &raw mut given, to)
        };
        check(code, "ask for the ways of a convolution")?;
        found.truncate(given);
        Ok(found)
    }

    /// The fastest solution, and its workspace.
    fn best(&self, exact: bool, stream: &Stream) -> Result<(u64, usize)> {
        let room = self.places.workspace.1;
        let usable = |solution: &Solution| {
            solution.workspace <= room && !(exact && INEXACT.contains(&solution.algorithm))
        };
        let mut best: Option<(Duration, Solution)> = None;
        let mut reason = None;
        for solution in self.solutions(stream)?.into_iter().filter(usable).take(MEASURED) {
            match self.measure(solution, stream) {
                Ok(time) if best.is_none_or(|(least, _)| time < least) => best = Some((time, solution)),
                Ok(_) => {}
                Err(error @ GpuError::Lost { .. }) => return Err(error),
                Err(error) => reason = Some(error),
            }
        }
        let none = || reason.unwrap_or_else(|| GpuError::Other("MIOpen has no way for this".to_owned()));
        let (_, best) = best.ok_or_else(none)?;
        Ok((best.number, best.workspace))
    }

    fn measure(&self, solution: Solution, stream: &Stream) -> Result<Duration> {
        self.compile(solution.number, stream)?;
        let run = || self.run_by(solution.number, solution.workspace, stream);
        least_time(&self.library.gpu, stream, run)
    }
}
