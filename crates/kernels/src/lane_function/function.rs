//! A function of scalars, and its loop over lanes.

use warpforge_tensor::ElementType;

use super::error::LaneFunctionError;
use crate::data_movement::LayoutError;
use crate::fused_loop::{Access, Domain, FusedLoop, Input, Inst, Output, Register, Scratch, Sink, Source};

/// A function of scalars: instructions of a fused loop whose input `n` is argument `n`.
#[derive(Debug, Clone)]
pub struct LaneFunction {
    /// The types of its arguments.
    pub arguments: Vec<ElementType>,
    /// What it computes.
    pub insts: Vec<Inst>,
    /// The registers of its results.
    pub results: Vec<Register>,
}

impl LaneFunction {
    /// The function applied to up to `lanes` lanes, whose arguments are that many elements apart. Results are contiguous and of
    /// these types.
    pub(crate) fn over(
        &self,
        lanes: usize,
        strides: &[isize],
        results: &[ElementType],
    ) -> Result<LaneLoop, LaneFunctionError> {
        if strides.len() != self.arguments.len() || results.len() != self.results.len() {
            return Err(LayoutError::Sizes("the function has other arguments or results").into());
        }
        let access = |stride: isize| Access { offset: 0, rows: Vec::new(), columns: vec![stride] };
        let inputs: Vec<Input> = self
            .arguments
            .iter()
            .zip(strides)
            .map(|(&element, &stride)| Input { element, source: Source::Memory(access(stride)) })
            .collect();
        let output = |&value: &Register| Output { value, sink: Sink::Memory(access(1)) };
        let outputs: Vec<Output> = self.results.iter().map(output).collect();
        let domain = Domain { rows: Vec::new(), columns: vec![lanes] };
        let body = FusedLoop::interpreted(&domain, &inputs, &self.insts, &outputs)?;
        for (&register, &element) in self.results.iter().zip(results) {
            let found = body.element(register).unwrap_or(element);
            if found != element {
                return Err(LayoutError::Element { what: "the result of the function", found }.into());
            }
        }
        Ok(LaneLoop { body: Box::new(body) })
    }
}

/// A function applied to lanes.
#[derive(Debug)]
pub(crate) struct LaneLoop {
    body: Box<FusedLoop>,
}

impl LaneLoop {
    /// Applies the function to the first `lanes` lanes.
    ///
    /// # Safety
    ///
    /// There is an aligned pointer for each argument, which may be read with the stride of the plan, and one for each result, which may
    /// be written and overlaps nothing else; the plan has that many lanes.
    pub(crate) unsafe fn run(
        &self,
        scratch: &mut Scratch,
        arguments: &[*const u8],
        results: &[*mut u8],
        lanes: usize,
    ) {
        // SAFETY: guaranteed by the caller; there is no tile.
        unsafe {
            self.body.run_block(scratch, arguments, results, 0..1, 0..lanes, std::ptr::null_mut(), 0);
        }
    }
}
