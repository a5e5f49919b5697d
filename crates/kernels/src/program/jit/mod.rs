//! Machine code for programs: values stay in registers from the loads to the stores.
//!
//! [`lower`] divides a program into phases of operations, [`function`] and [`emit`] make instructions of them. The functions
//! of [`crate::math`] are traced (see [`trace`]), so the code computes what the loops of the interpreter compute, bit for
//! bit. What there is no code for is interpreted.

// Machine code is called by address.
#![allow(unsafe_code)]

mod apply;
mod assembler;
mod emit;
mod frame;
mod function;
mod lower;
mod memory;
mod op;
mod registers;
mod run;
mod trace;

use thiserror::Error;
use warpforge_tensor::ElementType;

use super::layout::Walk;
use super::plan::Plan;
use super::step::Step;
use frame::Function;
use lower::{Place, Stream};
use memory::Pages;

/// Columns that a row must have to be worth the code.
const FEW: usize = 8;

/// Columns that sums are made of in one go: see the interpreter's blocks.
const MOST_SUMMED: usize = super::fold::BLOCK;

/// Elements of a domain from which on results are written past the caches: nobody would find them there.
const PAST_CACHES: usize = 2 << 20;

/// Why there is no code for a program.
#[derive(Debug, Error)]
pub(super) enum JitError {
    /// There is a step, type or access that there is no code for.
    #[error("a step, type or access that there is no code for")]
    Unsupported,
    /// There are not enough registers.
    #[error("not enough registers")]
    Registers,
    /// An instruction could not be encoded.
    #[error(transparent)]
    Encoding(#[from] iced_x86::IcedError),
    /// The system gives no memory for code.
    #[error(transparent)]
    Memory(#[from] std::io::Error),
}

/// The code of a program.
#[derive(Debug)]
pub(super) struct Code {
    streams: Vec<Stream>,
    /// Rows of memory between phases, and blocks for what is turned.
    rows: usize,
    blocks: usize,
    usual: Entry,
    /// Writes results past the caches.
    streaming: Option<Entry>,
}

#[derive(Debug)]
struct Entry {
    pages: Pages,
    start: usize,
}

impl Entry {
    fn new(lowered: &lower::Lowered, streaming: bool) -> Result<Self, JitError> {
        let (bytes, start) = function::compile(lowered, streaming)?;
        Ok(Self { pages: Pages::new(&bytes)?, start })
    }

    fn function(&self) -> Function {
        // SAFETY: the bytes from there on are the code of such a function.
        unsafe { std::mem::transmute::<*const u8, Function>(self.pages.at(self.start)) }
    }
}

impl Code {
    /// The code of a plan's steps, for AVX-512.
    ///
    /// # Errors
    ///
    /// When there is something in it that there is no code for.
    pub(super) fn new(plan: &Plan, steps: &[Step], types: &[ElementType]) -> Result<Self, JitError> {
        let layout = &plan.layout;
        let inner = layout.columns.last().copied().unwrap_or(0);
        let sums = steps.iter().any(|step| matches!(step, Step::Reduce(..)));
        let whole = layout.columns.len() == 1;
        if inner < FEW || sums && (!whole || inner > MOST_SUMMED) || !machine_has_it() {
            return Err(JitError::Unsupported);
        }
        let lowered = lower::lower(plan, steps, types)?;
        let large = layout.row_count.saturating_mul(layout.column_count) >= PAST_CACHES;
        let streaming = if large && lowered.blocks == 0 { Some(Entry::new(&lowered, true)?) } else { None };
        let usual = Entry::new(&lowered, false)?;
        let lower::Lowered { streams, rows, blocks, .. } = lowered;
        Ok(Self { streams, rows, blocks, usual, streaming })
    }

    /// Whether results may be written past the caches: every vector that is written begins at a multiple of its size.
    pub(super) fn can_stream(&self, plan: &Plan, outputs: &[*mut u8]) -> bool {
        const VECTOR: usize = 64;
        let layout = &plan.layout;
        let fits = |stream: &Stream| {
            let Place::Output { output, walk } = stream.place else { return true };
            let walk: &Walk = &layout.walks[walk];
            let multiple = |stride: isize| (stride * stream.width as isize) % VECTOR as isize == 0;
            outputs[output].align_offset(VECTOR) == 0
                && stream.width == 4
                && multiple(walk.offset)
                && walk.rows.iter().all(|&stride| multiple(stride))
                && walk
                    .columns
                    .split_last()
                    .is_some_and(|(_, outer)| outer.iter().all(|&stride| multiple(stride)))
        };
        self.streaming.is_some() && self.streams.iter().all(fits)
    }
}

/// Whether the machine has what the code needs beyond [`crate::isa::Isa::Avx512`].
fn machine_has_it() -> bool {
    is_x86_feature_detected!("bmi2")
}

#[cfg(test)]
mod tests;
