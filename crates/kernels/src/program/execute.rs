//! Running a plan over a block of rows and columns, tile by tile.

// Buffers and tiles are given as addresses; the public functions of this module's parent say what must hold of them.
#![allow(unsafe_code)]

use std::ops::Range;

use super::lane::{Lane, for_lane};
use super::layout::{Kind, Walk, position, runs};
use super::loops::{Call, Operand};
use super::plan::{Action, Node, Plan, Store, Target};
use super::scratch::{Scratch, View};
use super::transfer::{self, Run};

/// What a plan reads and writes.
#[derive(Clone, Copy)]
pub(super) struct Buffers<'a> {
    pub(super) inputs: &'a [*const u8],
    pub(super) outputs: &'a [*mut u8],
    pub(super) tile: *mut u8,
    /// Elements from one row of the tile to the next.
    pub(super) tile_stride: usize,
    /// Row and column of the tile's first element.
    pub(super) tile_origin: (usize, usize),
}

// SAFETY: the callers of the public functions promise that the buffers can be used from all workers.
unsafe impl Sync for Buffers<'_> {}

/// The rows and columns that are computed at a time.
#[derive(Debug, Clone, Copy)]
struct Region {
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
}

/// Runs a plan over a block.
///
/// # Safety
///
/// The buffers hold what the program's accesses name within the block, and so does the tile.
pub(super) unsafe fn block(
    plan: &Plan,
    scratch: &mut Scratch,
    buffers: &Buffers<'_>,
    rows: Range<usize>,
    columns: Range<usize>,
) {
    if rows.is_empty() {
        return;
    }
    let (memory, views) = scratch.parts(plan.scratch, plan.nodes.len());
    let mut state = State { plan, buffers, memory, views };
    let most = if plan.whole_rows { columns.len() } else { even_part(columns.len(), plan.capacity) };
    let mut column = columns.start;
    loop {
        let width = most.min(columns.end - column);
        let height = (plan.capacity / width.max(1)).clamp(1, rows.len());
        let mut region = Region { row: rows.start, rows: height, column, columns: width };
        // SAFETY: the caller's promise.
        unsafe { state.evaluate(&region, false) };
        while region.row < rows.end {
            region.rows = height.min(rows.end - region.row);
            // SAFETY: the caller's promise; values that do not vary with rows are those of these columns.
            unsafe {
                state.evaluate(&region, true);
                state.store(&region);
            }
            region.row += region.rows;
        }
        column += width;
        if column >= columns.end {
            return;
        }
    }
}

/// The size of parts, none above `most`, that a count is cut into as evenly as whole cache lines allow.
fn even_part(count: usize, most: usize) -> usize {
    count.div_ceil(count.div_ceil(most).max(1)).next_multiple_of(64).min(most)
}

struct State<'a> {
    plan: &'a Plan,
    buffers: &'a Buffers<'a>,
    memory: *mut u8,
    views: &'a mut [View],
}

impl State<'_> {
    /// Evaluates the steps whose values vary with rows, or those whose values do not.
    ///
    /// # Safety
    ///
    /// As [`block`].
    unsafe fn evaluate(&mut self, region: &Region, with_rows: bool) {
        let plan = self.plan;
        for (at, node) in plan.nodes.iter().enumerate().filter(|(_, node)| node.kind.rows == with_rows) {
            // SAFETY: the caller's promise; the plan's places lie in the scratch memory.
            self.views[at] = unsafe { self.value(node, region) };
        }
    }

    /// # Safety
    ///
    /// As [`block`].
    unsafe fn value(&mut self, node: &Node, region: &Region) -> View {
        let slot = self.memory.wrapping_add(node.slot);
        let held = View { data: slot, row_stride: (region.columns * node.width) as isize };
        match &node.action {
            Action::Load { input, walk, narrow } => {
                let (walk, data) = (&self.plan.layout.walks[*walk], self.buffers.inputs[*input]);
                if narrow.is_none()
                    && let Some(view) = self.in_place(walk, data, node.width, region)
                {
                    return view;
                }
                let (width, narrow) = (node.width, *narrow);
                // SAFETY: the caller's promise; the place has room for all elements of a tile.
                self.fill(walk, node, region, &|at, stride, target, count| unsafe {
                    match narrow {
                        Some(narrow) => {
                            let from = Run { data: data.offset(at * 2), stride };
                            transfer::widen(narrow, from, Run { data: target, stride: 1 }, count);
                        }
                        None => {
                            let from = Run { data: data.offset(at * width as isize), stride };
                            transfer::copy(width, from, Run { data: target, stride: 1 }, count);
                        }
                    }
                });
                held
            }
            Action::Tile { narrow } => {
                let (origin_row, origin_column) = self.buffers.tile_origin;
                let bytes = if narrow.is_some() { 2 } else { node.width };
                let stride = self.buffers.tile_stride * bytes;
                let first = (region.row - origin_row) * stride + (region.column - origin_column) * bytes;
                let data = self.buffers.tile.wrapping_add(first).cast_const();
                let Some(narrow) = *narrow else { return View { data, row_stride: stride as isize } };
                for row in 0..region.rows {
                    let from = Run { data: data.wrapping_add(row * stride), stride: 1 };
                    let to = Run { data: slot.wrapping_offset(held.row_stride * row as isize), stride: 1 };
                    // SAFETY: the caller's promise; the place has room for all elements of a tile.
                    unsafe { transfer::widen(narrow, from, to, region.columns) };
                }
                held
            }
            Action::Constant(bytes) => {
                // SAFETY: the place has room for an element.
                unsafe { slot.copy_from_nonoverlapping(bytes.as_ptr(), node.width) };
                held
            }
            Action::Iota { walk, lane, narrow } => {
                let walk = &self.plan.layout.walks[*walk];
                let (lane, narrow) = (*lane, *narrow);
                self.fill(walk, node, region, &|at, stride, target, count| {
                    for step in 0..count {
                        let value = at.wrapping_add(stride.wrapping_mul(step as isize)) as i64;
                        // SAFETY: the place has room for all elements of a tile.
                        unsafe {
                            match (lane, narrow) {
                                (Lane::Bool, _) => target.add(step).write(u8::from(value != 0)),
                                (_, Some(narrow)) => {
                                    target.cast::<f32>().add(step).write(narrow.round_once(value as f64));
                                }
                                _ => for_lane!(lane, T => target.cast::<T>().add(step).write(value as T)),
                            }
                        }
                    }
                });
                held
            }
            Action::Compute { kernel, operands, rounding } => {
                let (rows, columns) = extent(node.kind, region);
                let mut call = Call {
                    rows,
                    columns,
                    out: if rounding.is_some() { self.memory.wrapping_add(self.plan.spare[3]) } else { slot },
                    out_stride: (columns * node.width) as isize,
                    operands: [Operand { data: slot, row_stride: 0, one_column: true }; 3],
                };
                for (place, &operand) in call.operands.iter_mut().zip(operands) {
                    *place = self.operand(operand, node.kind);
                }
                for (at, &operand) in operands.iter().enumerate() {
                    if columns == 1 {
                        call.operands[at].one_column = false;
                    } else if call.operands[at].one_column && !kernel.takes_one_column {
                        let spare = self.memory.wrapping_add(self.plan.spare[at]);
                        // SAFETY: a spare place has room for all elements of a tile of the widest type.
                        call.operands[at] = unsafe {
                            spread(&call.operands[at], spare, self.plan.nodes[operand].width, rows, columns)
                        };
                    }
                }
                let widths = operands.iter().map(|&operand| self.plan.nodes[operand].width as isize);
                let flat =
                    call.operands.iter().zip(widths).all(|(operand, width)| match operand.one_column {
                        true => operand.row_stride == 0,
                        false => operand.row_stride == columns as isize * width,
                    });
                if flat && rows > 1 {
                    (call.rows, call.columns) = (1, rows * columns);
                }
                (kernel.run)(&call);
                if let Some(rounding) = rounding {
                    let unrounded =
                        Operand { data: call.out, row_stride: call.out_stride, one_column: false };
                    (rounding.run)(&Call { out: slot, operands: [unrounded; 3], ..call });
                }
                held
            }
            Action::Fold { fold, operand } => {
                let mut values = self.operand(*operand, Kind { rows: true, columns: true });
                let width = self.plan.nodes[*operand].width;
                if values.one_column && region.columns > 1 {
                    let spare = self.memory.wrapping_add(self.plan.spare[0]);
                    // SAFETY: a spare place has room for all elements of a tile of the widest type.
                    values = unsafe { spread(&values, spare, width, region.rows, region.columns) };
                }
                for row in 0..region.rows {
                    let data = values.data.wrapping_offset(values.row_stride * row as isize);
                    (fold.finish)((fold.partial)(data, region.columns), slot.wrapping_add(row * node.width));
                }
                held
            }
        }
    }

    /// A value as an operand of a step whose own value varies with `kind`.
    fn operand(&self, value: usize, kind: Kind) -> Operand {
        let (view, node) = (self.views[value], &self.plan.nodes[value]);
        match (kind.rows && kind.columns, node.kind.rows, node.kind.columns) {
            (true, true, true) => Operand { data: view.data, row_stride: view.row_stride, one_column: false },
            (true, true, false) => {
                Operand { data: view.data, row_stride: node.width as isize, one_column: true }
            }
            // A value for each row is a row itself where nothing varies with columns.
            (_, rows, columns) => {
                Operand { data: view.data, row_stride: 0, one_column: !columns && (kind.columns || !rows) }
            }
        }
    }

    /// The elements of an input where they are, if a step can read them there.
    fn in_place(&self, walk: &Walk, data: *const u8, width: usize, region: &Region) -> Option<View> {
        let layout = &self.plan.layout;
        if walk.kind.columns && !walk.dense_columns || walk.kind.rows && !walk.kind.columns {
            return None;
        }
        let row_stride = if !walk.kind.rows || region.rows <= 1 {
            0
        } else if let Some(stride) = walk.even_rows {
            stride
        } else {
            let inner = *layout.rows.last()?;
            if region.row % inner + region.rows > inner {
                return None;
            }
            *walk.rows.last()?
        };
        let first = walk.offset
            + position(&layout.rows, &walk.rows, region.row)
            + position(&layout.columns, &walk.columns, region.column);
        Some(View {
            data: data.wrapping_offset(first * width as isize),
            row_stride: row_stride * width as isize,
        })
    }

    /// Calls `each` for the runs of a walk's elements that make up the region: with the position of the first, the stride,
    /// the address that they go to and their number.
    fn fill(&self, walk: &Walk, node: &Node, region: &Region, each: &dyn Fn(isize, isize, *mut u8, usize)) {
        let layout = &self.plan.layout;
        let slot = self.memory.wrapping_add(node.slot);
        if walk.kind.rows && !walk.kind.columns {
            runs(&layout.rows, &walk.rows, region.row, region.rows, |before, at, stride, count| {
                each(walk.offset + at, stride, slot.wrapping_add(before * node.width), count);
            });
            return;
        }
        let (rows, columns) = extent(walk.kind, region);
        for row in 0..rows {
            let first = walk.offset
                + if walk.kind.rows { position(&layout.rows, &walk.rows, region.row + row) } else { 0 };
            let start = if walk.kind.columns { region.column } else { 0 };
            let target = slot.wrapping_add(row * columns * node.width);
            runs(&layout.columns, &walk.columns, start, columns, |before, at, stride, count| {
                each(first + at, stride, target.wrapping_add(before * node.width), count);
            });
        }
    }

    /// Writes the outputs of a region.
    ///
    /// # Safety
    ///
    /// As [`block`].
    unsafe fn store(&self, region: &Region) {
        for store in &self.plan.stores {
            let node = &self.plan.nodes[store.value];
            let bytes = if store.narrow.is_some() { 2 } else { node.width };
            let from = self.operand(store.value, Kind { rows: true, columns: true });
            let write = |row: usize, before: usize, to: Run<*mut u8>, count: usize| {
                let data = from.data.wrapping_offset(from.row_stride * row as isize);
                let from = match from.one_column {
                    true => Run { data, stride: 0 },
                    false => Run { data: data.wrapping_add(before * node.width), stride: 1 },
                };
                // SAFETY: the caller's promise.
                unsafe { put(store, node.width, from, to, count) }
            };
            match store.target {
                Target::Tile => {
                    let (origin_row, origin_column) = self.buffers.tile_origin;
                    let stride = self.buffers.tile_stride * bytes;
                    let first = (region.row - origin_row) * stride + (region.column - origin_column) * bytes;
                    for row in 0..region.rows {
                        let data = self.buffers.tile.wrapping_add(first + row * stride);
                        write(row, 0, Run { data, stride: 1 }, region.columns);
                    }
                }
                Target::Memory { output, walk } => {
                    let (walk, layout) = (&self.plan.layout.walks[walk], &self.plan.layout);
                    let data = self.buffers.outputs[output];
                    let address = |at: isize| data.wrapping_offset((walk.offset + at) * bytes as isize);
                    // What is the same for all rows, or columns, is written with the first.
                    let rows = if walk.kind.rows { region.rows } else { usize::from(region.row == 0) };
                    for row in 0..rows {
                        let first = position(&layout.rows, &walk.rows, region.row + row);
                        if !walk.kind.columns {
                            if region.column == 0 {
                                write(row, 0, Run { data: address(first), stride: 1 }, 1);
                            }
                            continue;
                        }
                        runs(
                            &layout.columns,
                            &walk.columns,
                            region.column,
                            region.columns,
                            |before, at, stride, count| {
                                write(row, before, Run { data: address(first + at), stride }, count);
                            },
                        );
                    }
                }
            }
        }
    }
}

/// # Safety
///
/// The elements can be read and written.
unsafe fn put(store: &Store, width: usize, from: Run<*const u8>, to: Run<*mut u8>, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match store.narrow {
            Some(narrow) => transfer::narrow(narrow, from, to, count),
            None => transfer::copy(width, from, to, count),
        }
    }
}

/// How many rows and columns a loop over values of a kind has; a value for each row is a row itself.
fn extent(kind: Kind, region: &Region) -> (usize, usize) {
    match (kind.rows, kind.columns) {
        (true, true) => (region.rows, region.columns),
        (true, false) => (1, region.rows),
        (false, true) => (1, region.columns),
        (false, false) => (1, 1),
    }
}

/// Copies an operand of one column to as many as a step has.
///
/// # Safety
///
/// The operand can be read and the target has room.
unsafe fn spread(operand: &Operand, target: *mut u8, width: usize, rows: usize, columns: usize) -> Operand {
    let row_stride = (columns * width) as isize;
    for row in 0..rows as isize {
        let from = Run { data: operand.data.wrapping_offset(operand.row_stride * row), stride: 0 };
        let to = Run { data: target.wrapping_offset(row_stride * row), stride: 1 };
        // SAFETY: the caller's promise.
        unsafe { transfer::copy(width, from, to, columns) };
    }
    Operand { data: target, row_stride, one_column: false }
}
