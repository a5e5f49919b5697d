//! Evaluating the steps of a plan over one tile.

// Buffers and tiles are given as addresses; the public functions of this module's parent say what must hold of them.
#![allow(unsafe_code)]

use super::lane::{Lane, for_lane};
use super::layout::{Kind, Walk, position, runs};
use super::loops::{Call, Kernel, Operand};
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

impl Buffers<'_> {
    /// Which stores, as bits, may be written by the step that computes the value: those to memory that is no input's.
    pub(super) fn direct(&self, plan: &Plan) -> u64 {
        let range = |data: *const u8, walk: &Walk, width: usize| {
            let address = |at: isize| (data as isize).wrapping_add(at.wrapping_mul(width as isize));
            (address(walk.extent.0), address(walk.extent.1 + 1))
        };
        let mut direct = 0;
        for (at, store) in plan.stores.iter().enumerate().take(64) {
            let Target::Memory { output, walk } = store.target else { continue };
            let place = range(self.outputs[output], &plan.layout.walks[walk], plan.nodes[store.value].width);
            let overlaps = plan.nodes.iter().any(|node| match &node.action {
                Action::Load { input, walk, narrow } => {
                    let width = if narrow.is_some() { 2 } else { node.width };
                    let read = range(self.inputs[*input], &plan.layout.walks[*walk], width);
                    read.0 < place.1 && place.0 < read.1
                }
                _ => false,
            });
            direct |= u64::from(!overlaps) << at;
        }
        direct
    }
}

// SAFETY: the callers of the public functions promise that the buffers can be used from all workers.
unsafe impl Sync for Buffers<'_> {}

/// The rows and columns that are computed at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    pub(super) row: usize,
    pub(super) rows: usize,
    pub(super) column: usize,
    pub(super) columns: usize,
}

/// Folds over rows that are computed part by part, in passes.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    /// Which steps this pass evaluates.
    pub(super) needed: &'a [bool],
    /// Which folds are complete: their values are here, eight bytes each, by number of the step.
    pub(super) complete: &'a [Option<[u8; 8]>],
}

/// A worker's state while it evaluates a plan.
pub(super) struct State<'a> {
    plan: &'a Plan,
    buffers: &'a Buffers<'a>,
    memory: *mut u8,
    views: &'a mut [View],
    /// Stores, as bits, that steps may do themselves, and those that they have done in this tile.
    direct: u64,
    stored: u64,
    parts: Option<Parts<'a>>,
}

impl<'a> State<'a> {
    /// A state in some scratch memory.
    pub(super) fn new(
        plan: &'a Plan,
        scratch: &'a mut Scratch,
        buffers: &'a Buffers<'a>,
        parts: Option<Parts<'a>>,
    ) -> Self {
        let (memory, views) = scratch.parts(plan.scratch, plan.nodes.len());
        Self { plan, buffers, memory, views, direct: buffers.direct(plan), stored: 0, parts }
    }

    /// Evaluates the steps of each tile, or those that many tiles share.
    ///
    /// # Safety
    ///
    /// The buffers, and the tile, hold what the program's accesses name within the region.
    pub(super) unsafe fn evaluate(&mut self, region: &Region, of_tile: bool) {
        let plan = self.plan;
        self.stored = 0;
        for (at, node) in plan.nodes.iter().enumerate().filter(|(_, node)| node.once != of_tile) {
            if self.parts.is_some_and(|parts| !parts.needed[at]) {
                continue;
            }
            // SAFETY: the caller's promise; the plan's places lie in the scratch memory.
            self.views[at] = unsafe { self.value(at, node, region) };
        }
    }

    /// The partial result of a fold over the columns of a row of the region.
    pub(super) fn partial(&self, at: usize, region: &Region, row: usize) -> Option<u64> {
        let Action::Fold { fold, operand } = &self.plan.nodes[at].action else { return None };
        let values = self.spread_operand(*operand, region);
        let data = values.data.wrapping_offset(values.row_stride * row as isize);
        Some((fold.partial)(data, region.columns))
    }

    /// A row of a value, with all columns of the region.
    pub(super) fn row(&self, at: usize, region: &Region) -> Operand {
        self.spread_operand(at, region)
    }

    /// A value that has all columns of the region, whatever it varies with.
    fn spread_operand(&self, at: usize, region: &Region) -> Operand {
        let values = self.operand(at, Kind { rows: true, columns: true });
        if !values.one_column || region.columns <= 1 {
            return values;
        }
        let spare = self.memory.wrapping_add(self.plan.spare[0]);
        // SAFETY: a spare place has room for all elements of a tile of the widest type.
        unsafe { spread(&values, spare, self.plan.nodes[at].width, region.rows, region.columns) }
    }

    /// # Safety
    ///
    /// As [`State::evaluate`].
    unsafe fn value(&mut self, at: usize, node: &Node, region: &Region) -> View {
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
                let to = self.written_directly(node, region).unwrap_or(held);
                self.compute(kernel, operands, rounding.as_ref(), node, region, to);
                to
            }
            Action::Fold { fold, .. } => {
                if let Some(parts) = &self.parts {
                    if let Some(value) = &parts.complete[at] {
                        // SAFETY: the place has room for an element.
                        unsafe { slot.copy_from_nonoverlapping(value.as_ptr(), node.width) };
                    }
                    return held;
                }
                for row in 0..region.rows {
                    let partial = self.partial(at, region, row).unwrap_or_default();
                    (fold.finish)(partial, slot.wrapping_add(row * node.width));
                }
                held
            }
        }
    }

    /// Applies a loop to earlier values.
    fn compute(
        &self,
        kernel: &Kernel,
        operands: &[usize],
        rounding: Option<&Kernel>,
        node: &Node,
        region: &Region,
        to: View,
    ) {
        let (rows, columns) = extent(node.kind, region);
        let mut call = Call {
            rows,
            columns,
            out: to.data.cast_mut(),
            out_stride: to.row_stride,
            operands: [Operand { data: to.data, row_stride: 0, one_column: true }; 3],
        };
        if rounding.is_some() {
            call.out = self.memory.wrapping_add(self.plan.spare[3]);
            call.out_stride = (columns * node.width) as isize;
        }
        for (place, &operand) in call.operands.iter_mut().zip(operands) {
            *place = self.operand(operand, node.kind);
        }
        for (at, &operand) in operands.iter().enumerate() {
            let place = &mut call.operands[at];
            if columns == 1 {
                place.one_column = false;
            } else if place.one_column && !kernel.takes_one_column {
                let spare = self.memory.wrapping_add(self.plan.spare[at]);
                // SAFETY: a spare place has room for all elements of a tile of the widest type.
                *place = unsafe { spread(place, spare, self.plan.nodes[operand].width, rows, columns) };
            }
        }
        let dense = |operand: &Operand, width: usize| match operand.one_column {
            true => operand.row_stride == 0,
            false => operand.row_stride == (columns * width) as isize,
        };
        let mut all = call.operands.iter().zip(operands);
        let flat = call.out_stride == (columns * node.width) as isize
            && all.all(|(operand, &value)| dense(operand, self.plan.nodes[value].width));
        if flat && rows > 1 {
            (call.rows, call.columns) = (1, rows * columns);
        }
        (kernel.run)(&call);
        if let Some(rounding) = rounding {
            let unrounded = Operand { data: call.out, row_stride: call.out_stride, one_column: false };
            (rounding.run)(&Call {
                out: to.data.cast_mut(),
                out_stride: to.row_stride,
                operands: [unrounded; 3],
                ..call
            });
        }
    }

    /// Where a step's value goes in the end, if it can be written there at once.
    fn written_directly(&mut self, node: &Node, region: &Region) -> Option<View> {
        let at = node.direct.filter(|&at| self.direct >> at & 1 == 1)?;
        let Target::Memory { output, walk } = self.plan.stores[at].target else { return None };
        let walk = &self.plan.layout.walks[walk];
        let place = self.in_place(walk, self.buffers.outputs[output].cast_const(), node.width, region)?;
        self.stored |= 1 << at;
        // A single row has no next one; for the loop's sake it is as far as if rows were dense.
        let dense = (region.columns * node.width) as isize;
        Some(View { row_stride: if region.rows <= 1 { dense } else { place.row_stride }, ..place })
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
    /// As [`State::evaluate`].
    pub(super) unsafe fn store(&self, region: &Region) {
        for (at, store) in self.plan.stores.iter().enumerate() {
            if at < 64 && self.stored >> at & 1 == 1 {
                continue;
            }
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
