//! JIT compiler of fused loops: values stay in registers from loads to stores.
//!
//! [`lower`] splits a fused loop into phases of operations; [`codegen`] and [`emit`] generate instructions for them.
//! The functions of [`crate::math`] are traced (see [`trace`]), so that compiled and interpreted loops are
//! bit-identical. Loops that cannot be compiled are interpreted.

// Machine code is called through a pointer.
#![allow(unsafe_code)]

mod abi;
mod assembler;
mod code_pages;
mod codegen;
mod emit;
mod frame;
mod lower;
mod op;
mod registers;
mod run;
mod trace;
mod translate;

use thiserror::Error;
use warpforge_tensor::ElementType;

use super::inst::Inst;
use super::layout::AccessPattern;
use super::loop_plan::LoopPlan;
use code_pages::CodePages;
use frame::EntryPoint;
use lower::{Stream, StreamLocation};

/// Minimum columns that are worth compiling.
const MIN_COLUMNS: usize = 8;

/// Maximum columns of a sum: the block of the interpreter.
const MAX_SUMMED_COLUMNS: usize = super::reduce::BLOCK;

/// Elements of a domain from which on non-temporal stores are used: results would be evicted from the caches.
const NONTEMPORAL_ELEMENTS: usize = 2 << 20;

/// Why a fused loop is not compiled.
#[derive(Debug, Error)]
pub(super) enum JitError {
    /// An unsupported instruction, type or access.
    #[error("an unsupported instruction, type or access")]
    Unsupported,
    /// There are not enough registers.
    #[error("not enough registers")]
    OutOfRegisters,
    /// An instruction could not be encoded.
    #[error(transparent)]
    Encoding(#[from] iced_x86::IcedError),
    /// Code pages cannot be mapped.
    #[error(transparent)]
    Memory(#[from] std::io::Error),
}

/// A compiled fused loop.
#[derive(Debug)]
pub(super) struct MachineCode {
    streams: Vec<Stream>,
    /// Row buffers between phases, and blocks for transposes.
    rows: usize,
    blocks: usize,
    usual: Entry,
    /// The variant with non-temporal stores.
    streaming: Option<Entry>,
}

#[derive(Debug)]
struct Entry {
    pages: CodePages,
    start: usize,
}

impl Entry {
    fn new(lowered: &lower::Lowered, streaming: bool) -> Result<Self, JitError> {
        let (bytes, start) = codegen::compile(lowered, streaming)?;
        Ok(Self { pages: CodePages::new(&bytes)?, start })
    }

    fn function(&self) -> EntryPoint {
        // SAFETY: the bytes from there on are the code of such a function.
        unsafe { std::mem::transmute::<*const u8, EntryPoint>(self.pages.at(self.start)) }
    }
}

impl MachineCode {
    /// Compiles the instructions of a plan for AVX-512.
    ///
    /// # Errors
    ///
    /// When something in it is unsupported.
    pub(super) fn new(plan: &LoopPlan, insts: &[Inst], types: &[ElementType]) -> Result<Self, JitError> {
        let layout = &plan.layout;
        let inner = layout.columns.last().copied().unwrap_or(0);
        let sums = insts.iter().any(|inst| matches!(inst, Inst::Reduce(..)));
        let whole = layout.columns.len() == 1;
        if inner < MIN_COLUMNS || sums && (!whole || inner > MAX_SUMMED_COLUMNS) || !has_bmi2() {
            return Err(JitError::Unsupported);
        }
        let lowered = lower::lower(plan, insts, types)?;
        let large = layout.row_count.saturating_mul(layout.column_count) >= NONTEMPORAL_ELEMENTS;
        let streaming = if large && lowered.blocks == 0 { Some(Entry::new(&lowered, true)?) } else { None };
        let usual = Entry::new(&lowered, false)?;
        let lower::Lowered { streams, rows, blocks, .. } = lowered;
        Ok(Self { streams, rows, blocks, usual, streaming })
    }

    /// Whether non-temporal stores are possible: every stored vector is aligned.
    pub(super) fn can_stream(&self, plan: &LoopPlan, outputs: &[*mut u8]) -> bool {
        const VECTOR: usize = 64;
        let layout = &plan.layout;
        let fits = |stream: &Stream| {
            let StreamLocation::Output { output, pattern } = stream.location else { return true };
            let pattern: &AccessPattern = &layout.patterns[pattern];
            let multiple = |stride: isize| (stride * stream.width as isize) % VECTOR as isize == 0;
            outputs[output].align_offset(VECTOR) == 0
                && stream.width == 4
                && multiple(pattern.offset)
                && pattern.rows.iter().all(|&stride| multiple(stride))
                && pattern
                    .columns
                    .split_last()
                    .is_some_and(|(_, outer)| outer.iter().all(|&stride| multiple(stride)))
        };
        self.streaming.is_some() && self.streams.iter().all(fits)
    }
}

/// Whether the CPU has BMI2, which the code needs beyond [`crate::isa::Isa::Avx512`].
fn has_bmi2() -> bool {
    is_x86_feature_detected!("bmi2")
}
