//! Convolution plans: candidates from the library, the fastest is kept.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::descriptor::{ConvDescriptor, ConvDescriptors, TensorDescriptor};
use super::fusion::FusionPlan;
use super::problem::{ConvBuffers, ConvProblem, TensorLayout};
use super::{Miopen, Solution, check};
use crate::driver::{Handle, Stream};
use crate::error::{GpuError, Result};
use crate::tuning::least_time;

/// Solutions to measure.
const MEASURED: usize = 8;

/// Algorithms that are less accurate than f32: FFT and Winograd.
const INEXACT: [i32; 2] = [2, 3];

/// A convolution that is ready to run.
pub(crate) struct MiopenPlan {
    library: Arc<Miopen>,
    descriptors: ConvDescriptors,
    buffers: ConvBuffers,
    algorithm: Algorithm,
}

enum Algorithm {
    /// A solution with its workspace size.
    Solution(u64, usize),
    /// A fusion plan.
    Fused(FusionPlan),
}

// SAFETY: descriptions are not changed any more; the library is used under its lock.
unsafe impl Send for MiopenPlan {}
// SAFETY: as above.
unsafe impl Sync for MiopenPlan {}

impl MiopenPlan {
    /// The fastest solution or fusion plan. The buffers are overwritten.
    ///
    /// # Errors
    ///
    /// When MIOpen has none.
    pub(crate) fn new(
        library: &Arc<Miopen>,
        problem: &ConvProblem,
        buffers: ConvBuffers,
        stream: &Stream,
    ) -> Result<Self> {
        let tensor = |of: &TensorLayout| TensorDescriptor::new(library, problem.element, of);
        let descriptors = ConvDescriptors {
            input: tensor(&problem.input)?,
            weights: tensor(&problem.weights)?,
            output: tensor(&problem.output)?,
            convolution: ConvDescriptor::new(library, &problem.window, problem.groups)?,
        };
        if problem.bias || problem.relu {
            let fused = FusionPlan::new(library, &descriptors, problem, &buffers, stream)?;
            let plan = Self {
                library: Arc::clone(library),
                descriptors,
                buffers,
                algorithm: Algorithm::Fused(fused),
            };
            // Failures are reported now, while another lowering can be chosen.
            plan.run(stream)?;
            return Ok(plan);
        }
        let mut plan =
            Self { library: Arc::clone(library), descriptors, buffers, algorithm: Algorithm::Solution(0, 0) };
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
        plan.algorithm = Algorithm::Solution(number, workspace);
        Ok(plan)
    }

    /// Launches the convolution.
    pub(crate) fn run(&self, stream: &Stream) -> Result<()> {
        match &self.algorithm {
            &Algorithm::Solution(number, workspace) => self.run_by(number, workspace, stream),
            Algorithm::Fused(fused) => {
                let handle = self.library.on(stream)?;
                fused.run(*handle, &self.descriptors, &self.buffers)
            }
        }
    }

    fn handles(&self) -> [Handle; 4] {
        let ConvDescriptors { input, weights, output, convolution } = &self.descriptors;
        [weights.handle, input.handle, convolution.handle, output.handle]
    }

    fn run_by(&self, number: u64, workspace: usize, stream: &Stream) -> Result<()> {
        let handle = self.library.on(stream)?;
        let [weights, input, convolution, output] = self.handles();
        let ConvBuffers { input: x, weights: w, output: y, workspace: (room, _), .. } = self.buffers;
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

    /// The fastest solution and its workspace size.
    fn best(&self, exact: bool, stream: &Stream) -> Result<(u64, usize)> {
        let room = self.buffers.workspace.1;
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
        let none =
            || reason.unwrap_or_else(|| GpuError::Other("MIOpen has no algorithm for this".to_owned()));
        let (_, best) = best.ok_or_else(none)?;
        Ok((best.number, best.workspace))
    }

    fn measure(&self, solution: Solution, stream: &Stream) -> Result<Duration> {
        self.compile(solution.number, stream)?;
        let run = || self.run_by(solution.number, solution.workspace, stream);
        least_time(&self.library.gpu, stream, run)
    }
}
