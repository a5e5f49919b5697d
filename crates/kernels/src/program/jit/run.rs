//! Running the code over a block of rows and columns.

// Machine code is called by address.
#![allow(unsafe_code)]

use std::ops::Range;

use crate::movement::{Loop, Tile};

use super::super::layout::{Layout, Walk, position};
use super::super::plan::Plan;
use super::super::scratch::Scratch;
use super::super::tile::Buffers;
use super::Code;
use super::frame::Frame;
use super::lower::{Place, Stream};

/// Rows of a block whose elements are turned: lines of cache on both sides, and few enough for the first-level cache.
const TURNED_ROWS: usize = 64;

/// Bytes of the elements that are turned.
const SIZE: usize = 4;

impl Code {
    /// Computes a block.
    ///
    /// # Safety
    ///
    /// The buffers hold what the program's accesses name within the block, and so does the tile. With `past_caches`, the
    /// results may be written so and the block's columns begin at a multiple of a vector's.
    pub(in super::super) unsafe fn run(
        &self,
        plan: &Plan,
        scratch: &mut Scratch,
        buffers: &Buffers<'_>,
        rows: Range<usize>,
        columns: Range<usize>,
        past_caches: bool,
    ) {
        let entry = self.streaming.as_ref().filter(|_| past_caches).unwrap_or(&self.usual);
        let function = entry.function();
        let layout = &plan.layout;
        let inner = layout.columns.last().copied().unwrap_or(1);
        let row_bytes = (inner * 4).next_multiple_of(64);
        let block_bytes = row_bytes * TURNED_ROWS;
        let (memory, _) = scratch.parts(self.rows * row_bytes + self.blocks * block_bytes, 0);
        let row_at = |row: usize| memory.wrapping_add(row * row_bytes);
        let block_at = |block: usize| memory.wrapping_add(self.rows * row_bytes + block * block_bytes);
        let most = if self.blocks > 0 { TURNED_ROWS } else { usize::MAX };
        let mut frame = Frame::new();
        let mut column = columns.start;
        while column < columns.end {
            let width = (inner - column % inner).min(columns.end - column);
            let mut row = rows.start;
            while row < rows.end {
                let height = self.even_rows(layout, row, rows.end).min(most);
                let element = |walk: usize, stream: &Stream, data: *const u8| {
                    element(layout, &layout.walks[walk], stream, data, row, column)
                };
                for (at, stream) in self.streams.iter().enumerate() {
                    let (data, stride) = match stream.place {
                        Place::Input { input, walk } => element(walk, stream, buffers.inputs[input]),
                        Place::Output { output, walk } => {
                            element(walk, stream, buffers.outputs[output].cast_const())
                        }
                        Place::Tile => {
                            let (first_row, first_column) = buffers.tile_origin;
                            let stride = buffers.tile_stride * stream.width;
                            let at = (row - first_row) * stride + (column - first_column) * stream.width;
                            (buffers.tile.wrapping_add(at).cast_const(), stride as isize)
                        }
                        Place::Row(row) => (row_at(row).cast_const(), 0),
                        Place::TurnedInput { input, walk, block } => {
                            let (from, _) = element(walk, stream, buffers.inputs[input]);
                            let to = block_at(block);
                            let rows =
                                Loop { size: height, source: SIZE as isize, target: row_bytes as isize };
                            let columns = Loop {
                                size: width,
                                source: column_stride(&layout.walks[walk]),
                                target: SIZE as isize,
                            };
                            // SAFETY: the caller's promise; a block has room for so many rows.
                            unsafe { Tile::best(SIZE).block(SIZE, (rows, columns), from, to, false) };
                            (to.cast_const(), row_bytes as isize)
                        }
                        Place::TurnedOutput { block, .. } => {
                            (block_at(block).cast_const(), row_bytes as isize)
                        }
                    };
                    frame.streams[at] = data.cast_mut();
                    frame.strides[at] = stride;
                }
                // SAFETY: the streams are those that the caller promises, and rows and blocks of the scratch memory; the
                // machine has the instructions.
                unsafe { function(&raw mut frame, height, width) };
                for stream in &self.streams {
                    let Place::TurnedOutput { output, walk, block } = stream.place else { continue };
                    let (to, _) = element(walk, stream, buffers.outputs[output].cast_const());
                    let target = column_stride(&layout.walks[walk]);
                    // What is a row to the tile is a column of the program.
                    let rows = Loop { size: width, source: SIZE as isize, target };
                    let columns = Loop { size: height, source: row_bytes as isize, target: SIZE as isize };
                    let (from, to) = (block_at(block).cast_const(), to.cast_mut());
                    // SAFETY: the caller's promise; the code has written so many rows of the block.
                    unsafe { Tile::best(SIZE).block(SIZE, (rows, columns), from, to, false) };
                }
                row += height;
            }
            column += width;
        }
    }

    /// How many rows from one on lie evenly in all streams.
    fn even_rows(&self, layout: &Layout, row: usize, end: usize) -> usize {
        let even = |stream: &Stream| match stream.place {
            Place::Input { walk, .. }
            | Place::Output { walk, .. }
            | Place::TurnedInput { walk, .. }
            | Place::TurnedOutput { walk, .. } => layout.walks[walk].even_rows.is_some(),
            Place::Tile | Place::Row(_) => true,
        };
        let inner = layout.rows.last().copied().unwrap_or(1).max(1);
        if self.streams.iter().all(even) { end - row } else { (inner - row % inner).min(end - row) }
    }
}

/// Bytes from one column of what is turned to the next.
fn column_stride(walk: &Walk) -> isize {
    walk.columns.last().copied().unwrap_or(0) * SIZE as isize
}

/// The address of the element at a row and column, and the bytes from one row to the next.
fn element(
    layout: &Layout,
    walk: &Walk,
    stream: &Stream,
    data: *const u8,
    row: usize,
    column: usize,
) -> (*const u8, isize) {
    let width = stream.width as isize;
    let at = walk.offset
        + position(&layout.rows, &walk.rows, row)
        + position(&layout.columns, &walk.columns, column);
    let stride = walk.even_rows.or_else(|| walk.rows.last().copied()).unwrap_or(0);
    (data.wrapping_offset(at * width), stride * width)
}
