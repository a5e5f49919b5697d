//! Runs compiled loops over a block of rows and columns.

// Machine code is called through a pointer.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::data_movement::{StridedLoop, TransposeKernel};

use super::super::layout::{AccessPattern, IterationLayout, position};
use super::super::loop_plan::LoopPlan;
use super::super::scratch::Scratch;
use super::super::tile_eval::LoopBuffers;
use super::frame::Frame;
use super::machine_code::MachineCode;
use super::phases::{Stream, StreamLocation};

/// Rows of a transposed block: whole cache lines on both sides, and few enough for the L1 cache.
const TRANSPOSED_ROWS: usize = 64;

/// Bytes of the elements that are transposed.
const SIZE: usize = 4;

impl MachineCode {
    /// Computes a block.
    ///
    /// # Safety
    ///
    /// The buffers and the tile hold the elements of all accesses within the block. With `nontemporal`,
    /// [`MachineCode::can_stream`] holds and the first column is a multiple of a vector.
    pub(in super::super) unsafe fn run(
        &self,
        plan: &LoopPlan,
        scratch: &mut Scratch,
        buffers: &LoopBuffers<'_>,
        rows: Range<usize>,
        columns: Range<usize>,
        nontemporal: bool,
    ) {
        let entry = self.streaming.as_ref().filter(|_| nontemporal).unwrap_or(&self.usual);
        let function = entry.function();
        let layout = &plan.layout;
        let inner = layout.columns.last().copied().unwrap_or(1);
        let row_bytes = (inner * 4).next_multiple_of(64);
        let block_bytes = row_bytes * TRANSPOSED_ROWS;
        let (memory, _) = scratch.parts(self.rows * row_bytes + self.blocks * block_bytes, 0);
        let row_at = |row: usize| memory.wrapping_add(row * row_bytes);
        let block_at = |block: usize| memory.wrapping_add(self.rows * row_bytes + block * block_bytes);
        let mut frame = Frame::new();
        self.blocks_of(layout, rows, columns, |block| {
            let Block { row, column, height, width, along } = block;
            let element = |pattern: usize, stream: &Stream, data: *const u8| {
                element(layout, &layout.patterns[pattern], stream, data, &block)
            };
            for (at, stream) in self.streams.iter().enumerate() {
                let (data, stride) = match stream.location {
                    StreamLocation::Input { input, pattern } => {
                        element(pattern, stream, buffers.inputs[input])
                    }
                    StreamLocation::Output { output, pattern } => {
                        element(pattern, stream, buffers.outputs[output].cast_const())
                    }
                    StreamLocation::Tile => {
                        let (first_row, first_column) = buffers.tile_origin;
                        let stride = buffers.tile_stride * stream.width;
                        let at = (row - first_row) * stride + (column - first_column) * stream.width;
                        let stride = if along == Along::Rows { stride } else { width * stream.width };
                        (buffers.tile.wrapping_add(at).cast_const(), stride as isize)
                    }
                    StreamLocation::Row(row) => (row_at(row).cast_const(), 0),
                    StreamLocation::TransposedInput { input, pattern, block } => {
                        let (from, _) = element(pattern, stream, buffers.inputs[input]);
                        let to = block_at(block);
                        let rows =
                            StridedLoop { size: height, source: SIZE as isize, target: row_bytes as isize };
                        let columns = StridedLoop {
                            size: width,
                            source: column_stride(&layout.patterns[pattern]),
                            target: SIZE as isize,
                        };
                        // SAFETY: guaranteed by the caller; a block has space for that many rows.
                        unsafe {
                            TransposeKernel::best(SIZE).transpose_block(
                                SIZE,
                                (rows, columns),
                                from,
                                to,
                                false,
                            );
                        };
                        (to.cast_const(), row_bytes as isize)
                    }
                    StreamLocation::TransposedOutput { block, .. } => {
                        (block_at(block).cast_const(), row_bytes as isize)
                    }
                };
                frame.streams[at] = data.cast_mut();
                frame.strides[at] = stride;
            }
            // SAFETY: the streams are guaranteed by the caller, or are rows and blocks of the scratch memory; the
            // machine has the instructions.
            unsafe { function(&raw mut frame, height, width) };
            for stream in &self.streams {
                let StreamLocation::TransposedOutput { output, pattern, block } = stream.location else {
                    continue;
                };
                let (to, _) = element(pattern, stream, buffers.outputs[output].cast_const());
                let target = column_stride(&layout.patterns[pattern]);
                // Rows of the transpose are columns of the loop.
                let rows = StridedLoop { size: width, source: SIZE as isize, target };
                let columns = StridedLoop { size: height, source: row_bytes as isize, target: SIZE as isize };
                let (from, to) = (block_at(block).cast_const(), to.cast_mut());
                // SAFETY: guaranteed by the caller; the code has written that many rows of the block.
                unsafe {
                    TransposeKernel::best(SIZE).transpose_block(SIZE, (rows, columns), from, to, false);
                };
            }
        });
    }

    /// Calls `each` with blocks that cover these rows and columns.
    fn blocks_of(
        &self,
        layout: &IterationLayout,
        rows: Range<usize>,
        columns: Range<usize>,
        mut each: impl FnMut(Block),
    ) {
        let inner = layout.columns.last().copied().unwrap_or(1).max(1);
        let runs_in_a_row = layout.columns.len().checked_sub(2).map_or(1, |outer| layout.columns[outer]);
        if self.blocks == 0 && columns.len() / inner > rows.len() {
            for row in rows {
                let mut column = columns.start;
                while column < columns.end {
                    let left = runs_in_a_row - column / inner % runs_in_a_row;
                    let (height, width) = match (columns.end - column) / inner {
                        whole if whole > 0 && column.is_multiple_of(inner) => (whole.min(left), inner),
                        _ => (1, (inner - column % inner).min(columns.end - column)),
                    };
                    each(Block { row, column, height, width, along: Along::Columns });
                    column += height * width;
                }
            }
            return;
        }
        let most = if self.blocks > 0 { TRANSPOSED_ROWS } else { usize::MAX };
        let mut column = columns.start;
        while column < columns.end {
            let width = (inner - column % inner).min(columns.end - column);
            let mut row = rows.start;
            while row < rows.end {
                let height = self.even_rows(layout, row, rows.end).min(most);
                each(Block { row, column, height, width, along: Along::Rows });
                row += height;
            }
            column += width;
        }
    }

    /// The number of rows, from `row` on, with a constant stride in all streams.
    fn even_rows(&self, layout: &IterationLayout, row: usize, end: usize) -> usize {
        let even = |stream: &Stream| match stream.location {
            StreamLocation::Input { pattern, .. }
            | StreamLocation::Output { pattern, .. }
            | StreamLocation::TransposedInput { pattern, .. }
            | StreamLocation::TransposedOutput { pattern, .. } => {
                layout.patterns[pattern].even_rows.is_some()
            }
            StreamLocation::Tile | StreamLocation::Row(_) => true,
        };
        let inner = layout.rows.last().copied().unwrap_or(1).max(1);
        if self.streams.iter().all(even) { end - row } else { (inner - row % inner).min(end - row) }
    }
}

/// Bytes from one column of what is transposed to the next.
fn column_stride(pattern: &AccessPattern) -> isize {
    pattern.columns.last().copied().unwrap_or(0) * SIZE as isize
}

/// The elements of a call of the machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block {
    row: usize,
    column: usize,
    /// What the code takes for rows.
    height: usize,
    /// Columns of each of them, along the innermost dimension.
    width: usize,
    along: Along,
}

/// What the code takes for rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Along {
    /// Those of the loop.
    Rows,
    /// Runs of one row along its innermost dimension, where there are more of them.
    Columns,
}

/// The address of the first element of a block, and the bytes from one of its rows to the next.
fn element(
    layout: &IterationLayout,
    pattern: &AccessPattern,
    stream: &Stream,
    data: *const u8,
    block: &Block,
) -> (*const u8, isize) {
    let width = stream.width as isize;
    let at = pattern.offset
        + position(&layout.rows, &pattern.rows, block.row)
        + position(&layout.columns, &pattern.columns, block.column);
    let stride = match (block.along, &pattern.columns[..]) {
        (Along::Rows, _) => pattern.even_rows.or_else(|| pattern.rows.last().copied()).unwrap_or(0),
        (Along::Columns, [.., outer, _]) => *outer,
        (Along::Columns, _) => 0,
    };
    (data.wrapping_offset(at * width), stride * width)
}
