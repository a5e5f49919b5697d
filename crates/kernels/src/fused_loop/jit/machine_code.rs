//! Compiled loops.

// Machine code is called through a pointer.
#![allow(unsafe_code)]

use warpforge_tensor::ElementType;

use super::super::inst::Inst;
use super::super::layout::AccessPattern;
use super::super::loop_plan::LoopPlan;
use super::code_pages::CodePages;
use super::codegen::compile;
use super::error::JitError;
use super::frame::EntryPoint;
use super::lower::lower;
use super::phases::{Lowered, Stream, StreamLocation};

/// Minimum columns that are worth compiling.
const MIN_COLUMNS: usize = 8;

/// Maximum columns of a sum: the block of the interpreter.
const MAX_SUMMED_COLUMNS: usize = super::super::reduce::BLOCK;

/// Elements of a domain from which on non-temporal stores are used: results would be evicted from the caches.
const NONTEMPORAL_ELEMENTS: usize = 2 << 20;

/// A compiled fused loop.
#[derive(Debug)]
pub(crate) struct MachineCode {
    pub(super) streams: Vec<Stream>,
    /// Row buffers between phases, and blocks for transposes.
    pub(super) rows: usize,
    pub(super) blocks: usize,
    pub(super) usual: Entry,
    /// The variant with non-temporal stores.
    pub(super) streaming: Option<Entry>,
}

/// A function in code pages.
#[derive(Debug)]
pub(super) struct Entry {
    pages: CodePages,
    start: usize,
}

impl Entry {
    fn new(lowered: &Lowered, streaming: bool) -> Result<Self, JitError> {
        let (bytes, start) = compile(lowered, streaming)?;
        Ok(Self { pages: CodePages::new(&bytes)?, start })
    }

    pub(super) fn function(&self) -> EntryPoint {
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
    pub(crate) fn new(plan: &LoopPlan, insts: &[Inst], types: &[ElementType]) -> Result<Self, JitError> {
        let layout = &plan.layout;
        let inner = layout.columns.last().copied().unwrap_or(0);
        let sums = insts.iter().any(|inst| matches!(inst, Inst::Reduce(..)));
        let whole = layout.columns.len() == 1;
        if inner < MIN_COLUMNS || sums && (!whole || inner > MAX_SUMMED_COLUMNS) || !has_bmi2() {
            return Err(JitError::Unsupported);
        }
        let lowered = lower(plan, insts, types)?;
        let large = layout.row_count.saturating_mul(layout.column_count) >= NONTEMPORAL_ELEMENTS;
        let streaming = if large && lowered.blocks == 0 { Some(Entry::new(&lowered, true)?) } else { None };
        let usual = Entry::new(&lowered, false)?;
        let Lowered { streams, rows, blocks, .. } = lowered;
        Ok(Self { streams, rows, blocks, usual, streaming })
    }

    /// Whether non-temporal stores are possible: every stored vector is aligned.
    pub(crate) fn can_stream(&self, plan: &LoopPlan, outputs: &[*mut u8]) -> bool {
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
