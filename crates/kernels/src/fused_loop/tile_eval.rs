//! Evaluation of a plan over one tile.

// Buffers and tiles are passed as pointers; the public functions of the parent module state their requirements.
#![allow(unsafe_code)]

use super::lane_type::{LaneType, for_lane};
use super::layout::{AccessPattern, VariesWith, position, runs};
use super::loop_plan::{Action, LoopPlan, PlannedInst, Store, StoreTarget};
use super::loops::{LoopCall, LoopKernel, LoopOperand};
use super::scratch::{Scratch, View};
use super::transfer::{self, StridedRun};

/// The buffers of a run.
#[derive(Clone, Copy)]
pub(super) struct LoopBuffers<'a> {
    pub(super) inputs: &'a [*const u8],
    pub(super) outputs: &'a [*mut u8],
    pub(super) tile: *mut u8,
    /// Elements from one row of the tile to the next.
    pub(super) tile_stride: usize,
    /// Row and column of the tile's first element.
    pub(super) tile_origin: (usize, usize),
}

impl LoopBuffers<'_> {
    /// The stores, as a bit set, that loops may write directly: those to memory that overlaps no input.
    pub(super) fn direct(&self, plan: &LoopPlan) -> u64 {
        let range = |data: *const u8, pattern: &AccessPattern, width: usize| {
            let address = |at: isize| (data as isize).wrapping_add(at.wrapping_mul(width as isize));
            (address(pattern.extent.0), address(pattern.extent.1 + 1))
        };
        let mut direct = 0;
        for (at, store) in plan.stores.iter().enumerate().take(64) {
            let StoreTarget::Memory { output, pattern } = store.target else { continue };
            let place =
                range(self.outputs[output], &plan.layout.patterns[pattern], plan.planned[store.value].width);
            let overlaps = plan.planned.iter().any(|planned_inst| match &planned_inst.action {
                Action::Load { input, pattern, narrow } => {
                    let width = if narrow.is_some() { 2 } else { planned_inst.width };
                    let read = range(self.inputs[*input], &plan.layout.patterns[*pattern], width);
                    read.0 < place.1 && place.0 < read.1
                }
                _ => false,
            });
            direct |= u64::from(!overlaps) << at;
        }
        direct
    }
}

// SAFETY: the callers of the public functions guarantee that the buffers can be used from all workers.
unsafe impl Sync for LoopBuffers<'_> {}

/// The rows and columns of a tile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Region {
    pub(super) row: usize,
    pub(super) rows: usize,
    pub(super) column: usize,
    pub(super) columns: usize,
}

/// The state of a pass over long rows.
#[derive(Clone, Copy)]
pub(super) struct PassState<'a> {
    /// Which steps this pass evaluates.
    pub(super) needed: &'a [bool],
    /// Complete reductions: eight bytes each, by instruction.
    pub(super) complete: &'a [Option<[u8; 8]>],
}

/// Evaluates a plan on one worker.
pub(super) struct TileEvaluator<'a> {
    plan: &'a LoopPlan,
    buffers: &'a LoopBuffers<'a>,
    memory: *mut u8,
    views: &'a mut [View],
    /// Stores, as bit sets, that loops may write directly, and those that they have written in this tile.
    direct: u64,
    stored: u64,
    parts: Option<PassState<'a>>,
}

impl<'a> TileEvaluator<'a> {
    /// An evaluator in scratch memory.
    pub(super) fn new(
        plan: &'a LoopPlan,
        scratch: &'a mut Scratch,
        buffers: &'a LoopBuffers<'a>,
        parts: Option<PassState<'a>>,
    ) -> Self {
        let (memory, views) = scratch.parts(plan.scratch, plan.planned.len());
        Self { plan, buffers, memory, views, direct: buffers.direct(plan), stored: 0, parts }
    }

    /// Evaluates the instructions of each tile, or the hoisted ones.
    ///
    /// # Safety
    ///
    /// The buffers, and the tile, hold what the loop's accesses name within the region.
    pub(super) unsafe fn evaluate(&mut self, region: &Region, of_tile: bool) {
        let plan = self.plan;
        self.stored = 0;
        for (at, planned_inst) in
            plan.planned.iter().enumerate().filter(|(_, planned_inst)| planned_inst.once != of_tile)
        {
            if self.parts.is_some_and(|parts| !parts.needed[at]) {
                continue;
            }
            // SAFETY: guaranteed by the caller; slots are inside the scratch memory.
            self.views[at] = unsafe { self.value(at, planned_inst, region) };
        }
    }

    /// The partial result of a reduction over the columns of a row of the region.
    pub(super) fn partial(&self, at: usize, region: &Region, row: usize) -> Option<u64> {
        let Action::Reduce { reduction, operand } = &self.plan.planned[at].action else { return None };
        let values = self.spread_operand(*operand, region);
        let data = values.data.wrapping_offset(values.row_stride * row as isize);
        Some((reduction.partial)(data, region.columns))
    }

    /// A row of a value, with all columns of the region.
    pub(super) fn row(&self, at: usize, region: &Region) -> LoopOperand {
        self.spread_operand(at, region)
    }

    /// A value broadcast to all columns of the region.
    fn spread_operand(&self, at: usize, region: &Region) -> LoopOperand {
        let values = self.operand(at, VariesWith { rows: true, columns: true });
        if !values.one_column || region.columns <= 1 {
            return values;
        }
        let spare = self.memory.wrapping_add(self.plan.spare[0]);
        // SAFETY: a spare slot has space for all elements of a tile of the widest type.
        unsafe { spread(&values, spare, self.plan.planned[at].width, region.rows, region.columns) }
    }

    /// # Safety
    ///
    /// As [`TileEvaluator::evaluate`].
    unsafe fn value(&mut self, at: usize, planned_inst: &PlannedInst, region: &Region) -> View {
        let slot = self.memory.wrapping_add(planned_inst.slot);
        let held = View { data: slot, row_stride: (region.columns * planned_inst.width) as isize };
        match &planned_inst.action {
            Action::Load { input, pattern, narrow } => {
                let (pattern, data) = (&self.plan.layout.patterns[*pattern], self.buffers.inputs[*input]);
                if narrow.is_none()
                    && let Some(view) = self.in_place(pattern, data, planned_inst.width, region)
                {
                    return view;
                }
                let (width, narrow) = (planned_inst.width, *narrow);
                // SAFETY: guaranteed by the caller; the slot has space for all elements of a tile.
                self.fill(pattern, planned_inst, region, &|at, stride, target, count| unsafe {
                    match narrow {
                        Some(narrow) => {
                            let from = StridedRun { data: data.offset(at * 2), stride };
                            transfer::widen(narrow, from, StridedRun { data: target, stride: 1 }, count);
                        }
                        None => {
                            let from = StridedRun { data: data.offset(at * width as isize), stride };
                            transfer::copy(width, from, StridedRun { data: target, stride: 1 }, count);
                        }
                    }
                });
                held
            }
            Action::Tile { narrow } => {
                let (origin_row, origin_column) = self.buffers.tile_origin;
                let bytes = if narrow.is_some() { 2 } else { planned_inst.width };
                let stride = self.buffers.tile_stride * bytes;
                let first = (region.row - origin_row) * stride + (region.column - origin_column) * bytes;
                let data = self.buffers.tile.wrapping_add(first).cast_const();
                let Some(narrow) = *narrow else { return View { data, row_stride: stride as isize } };
                for row in 0..region.rows {
                    let from = StridedRun { data: data.wrapping_add(row * stride), stride: 1 };
                    let to =
                        StridedRun { data: slot.wrapping_offset(held.row_stride * row as isize), stride: 1 };
                    // SAFETY: guaranteed by the caller; the slot has space for all elements of a tile.
                    unsafe { transfer::widen(narrow, from, to, region.columns) };
                }
                held
            }
            Action::Constant(bytes) => {
                // SAFETY: the slot has space for an element.
                unsafe { slot.copy_from_nonoverlapping(bytes.as_ptr(), planned_inst.width) };
                held
            }
            Action::Iota { pattern, lane, narrow } => {
                let pattern = &self.plan.layout.patterns[*pattern];
                let (lane, narrow) = (*lane, *narrow);
                self.fill(pattern, planned_inst, region, &|at, stride, target, count| {
                    for lane_index in 0..count {
                        let value = at.wrapping_add(stride.wrapping_mul(lane_index as isize)) as i64;
                        // SAFETY: the slot has space for all elements of a tile.
                        unsafe {
                            match (lane, narrow) {
                                (LaneType::Bool, _) => target.add(lane_index).write(u8::from(value != 0)),
                                (_, Some(narrow)) => {
                                    target
                                        .cast::<f32>()
                                        .add(lane_index)
                                        .write(narrow.round_once(value as f64));
                                }
                                _ => {
                                    for_lane!(lane, T => target.cast::<T>().add(lane_index).write(value as T));
                                }
                            }
                        }
                    }
                });
                held
            }
            Action::Compute { kernel, operands, rounding } => {
                let to = self.written_directly(planned_inst, region).unwrap_or(held);
                self.compute(kernel, operands, rounding.as_ref(), planned_inst, region, to);
                to
            }
            Action::Reduce { reduction, .. } => {
                if let Some(parts) = &self.parts {
                    if let Some(value) = &parts.complete[at] {
                        // SAFETY: the slot has space for an element.
                        unsafe { slot.copy_from_nonoverlapping(value.as_ptr(), planned_inst.width) };
                    }
                    return held;
                }
                for row in 0..region.rows {
                    let partial = self.partial(at, region, row).unwrap_or_default();
                    (reduction.finish)(partial, slot.wrapping_add(row * planned_inst.width));
                }
                held
            }
        }
    }

    /// Applies a loop to earlier values.
    fn compute(
        &self,
        kernel: &LoopKernel,
        operands: &[usize],
        rounding: Option<&LoopKernel>,
        planned_inst: &PlannedInst,
        region: &Region,
        to: View,
    ) {
        let (rows, columns) = extent(planned_inst.kind, region);
        let mut call = LoopCall {
            rows,
            columns,
            out: to.data.cast_mut(),
            out_stride: to.row_stride,
            operands: [LoopOperand { data: to.data, row_stride: 0, one_column: true }; 3],
        };
        if rounding.is_some() {
            call.out = self.memory.wrapping_add(self.plan.spare[3]);
            call.out_stride = (columns * planned_inst.width) as isize;
        }
        for (place, &operand) in call.operands.iter_mut().zip(operands) {
            *place = self.operand(operand, planned_inst.kind);
        }
        for (at, &operand) in operands.iter().enumerate() {
            let place = &mut call.operands[at];
            if columns == 1 {
                place.one_column = false;
            } else if place.one_column && !kernel.takes_one_column {
                let spare = self.memory.wrapping_add(self.plan.spare[at]);
                // SAFETY: a spare slot has space for all elements of a tile of the widest type.
                *place = unsafe { spread(place, spare, self.plan.planned[operand].width, rows, columns) };
            }
        }
        let dense = |operand: &LoopOperand, width: usize| match operand.one_column {
            true => operand.row_stride == 0,
            false => operand.row_stride == (columns * width) as isize,
        };
        let mut all = call.operands.iter().zip(operands);
        let flat = call.out_stride == (columns * planned_inst.width) as isize
            && all.all(|(operand, &value)| dense(operand, self.plan.planned[value].width));
        if flat && rows > 1 {
            (call.rows, call.columns) = (1, rows * columns);
        }
        (kernel.run)(&call);
        if let Some(rounding) = rounding {
            let unrounded = LoopOperand { data: call.out, row_stride: call.out_stride, one_column: false };
            (rounding.run)(&LoopCall {
                out: to.data.cast_mut(),
                out_stride: to.row_stride,
                operands: [unrounded; 3],
                ..call
            });
        }
    }

    /// The final location of a value, if it can be written there directly.
    fn written_directly(&mut self, planned_inst: &PlannedInst, region: &Region) -> Option<View> {
        let at = planned_inst.direct.filter(|&at| self.direct >> at & 1 == 1)?;
        let StoreTarget::Memory { output, pattern } = self.plan.stores[at].target else { return None };
        let pattern = &self.plan.layout.patterns[pattern];
        let place =
            self.in_place(pattern, self.buffers.outputs[output].cast_const(), planned_inst.width, region)?;
        self.stored |= 1 << at;
        // A single row is treated as dense.
        let dense = (region.columns * planned_inst.width) as isize;
        Some(View { row_stride: if region.rows <= 1 { dense } else { place.row_stride }, ..place })
    }

    /// A value as an operand of an instruction that varies with `kind`.
    fn operand(&self, value: usize, kind: VariesWith) -> LoopOperand {
        let (view, planned_inst) = (self.views[value], &self.plan.planned[value]);
        match (kind.rows && kind.columns, planned_inst.kind.rows, planned_inst.kind.columns) {
            (true, true, true) => {
                LoopOperand { data: view.data, row_stride: view.row_stride, one_column: false }
            }
            (true, true, false) => {
                LoopOperand { data: view.data, row_stride: planned_inst.width as isize, one_column: true }
            }
            // A per-row value is a row itself where nothing varies with columns.
            (_, rows, columns) => LoopOperand {
                data: view.data,
                row_stride: 0,
                one_column: !columns && (kind.columns || !rows),
            },
        }
    }

    /// The elements of an access in place, if a loop can read them there.
    fn in_place(
        &self,
        pattern: &AccessPattern,
        data: *const u8,
        width: usize,
        region: &Region,
    ) -> Option<View> {
        let layout = &self.plan.layout;
        if pattern.kind.columns && !pattern.dense_columns || pattern.kind.rows && !pattern.kind.columns {
            return None;
        }
        let row_stride = if !pattern.kind.rows || region.rows <= 1 {
            0
        } else if let Some(stride) = pattern.even_rows {
            stride
        } else {
            let inner = *layout.rows.last()?;
            if region.row % inner + region.rows > inner {
                return None;
            }
            *pattern.rows.last()?
        };
        let first = pattern.offset
            + position(&layout.rows, &pattern.rows, region.row)
            + position(&layout.columns, &pattern.columns, region.column);
        Some(View {
            data: data.wrapping_offset(first * width as isize),
            row_stride: row_stride * width as isize,
        })
    }

    /// Calls `each` for the runs of an access pattern that cover the region: with the position of the first element,
    /// the stride, the target pointer and the count.
    fn fill(
        &self,
        pattern: &AccessPattern,
        planned_inst: &PlannedInst,
        region: &Region,
        each: &dyn Fn(isize, isize, *mut u8, usize),
    ) {
        let layout = &self.plan.layout;
        let slot = self.memory.wrapping_add(planned_inst.slot);
        if pattern.kind.rows && !pattern.kind.columns {
            runs(&layout.rows, &pattern.rows, region.row, region.rows, |before, at, stride, count| {
                each(pattern.offset + at, stride, slot.wrapping_add(before * planned_inst.width), count);
            });
            return;
        }
        let (rows, columns) = extent(pattern.kind, region);
        for row in 0..rows {
            let first = pattern.offset
                + if pattern.kind.rows { position(&layout.rows, &pattern.rows, region.row + row) } else { 0 };
            let start = if pattern.kind.columns { region.column } else { 0 };
            let target = slot.wrapping_add(row * columns * planned_inst.width);
            runs(&layout.columns, &pattern.columns, start, columns, |before, at, stride, count| {
                each(first + at, stride, target.wrapping_add(before * planned_inst.width), count);
            });
        }
    }

    /// Writes the outputs of a region.
    ///
    /// # Safety
    ///
    /// As [`TileEvaluator::evaluate`].
    pub(super) unsafe fn store(&self, region: &Region) {
        for (at, store) in self.plan.stores.iter().enumerate() {
            if at < 64 && self.stored >> at & 1 == 1 {
                continue;
            }
            let planned_inst = &self.plan.planned[store.value];
            let bytes = if store.narrow.is_some() { 2 } else { planned_inst.width };
            let from = self.operand(store.value, VariesWith { rows: true, columns: true });
            let write = |row: usize, before: usize, to: StridedRun<*mut u8>, count: usize| {
                let data = from.data.wrapping_offset(from.row_stride * row as isize);
                let from = match from.one_column {
                    true => StridedRun { data, stride: 0 },
                    false => StridedRun { data: data.wrapping_add(before * planned_inst.width), stride: 1 },
                };
                // SAFETY: guaranteed by the caller.
                unsafe { put(store, planned_inst.width, from, to, count) }
            };
            match store.target {
                StoreTarget::Tile => {
                    let (origin_row, origin_column) = self.buffers.tile_origin;
                    let stride = self.buffers.tile_stride * bytes;
                    let first = (region.row - origin_row) * stride + (region.column - origin_column) * bytes;
                    for row in 0..region.rows {
                        let data = self.buffers.tile.wrapping_add(first + row * stride);
                        write(row, 0, StridedRun { data, stride: 1 }, region.columns);
                    }
                }
                StoreTarget::Memory { output, pattern } => {
                    let (pattern, layout) = (&self.plan.layout.patterns[pattern], &self.plan.layout);
                    let data = self.buffers.outputs[output];
                    let address = |at: isize| data.wrapping_offset((pattern.offset + at) * bytes as isize);
                    // Values that do not vary with rows, or columns, are stored with the first.
                    let rows = if pattern.kind.rows { region.rows } else { usize::from(region.row == 0) };
                    for row in 0..rows {
                        let first = position(&layout.rows, &pattern.rows, region.row + row);
                        if !pattern.kind.columns {
                            if region.column == 0 {
                                write(row, 0, StridedRun { data: address(first), stride: 1 }, 1);
                            }
                            continue;
                        }
                        runs(
                            &layout.columns,
                            &pattern.columns,
                            region.column,
                            region.columns,
                            |before, at, stride, count| {
                                write(row, before, StridedRun { data: address(first + at), stride }, count);
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
unsafe fn put(
    store: &Store,
    width: usize,
    from: StridedRun<*const u8>,
    to: StridedRun<*mut u8>,
    count: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match store.narrow {
            Some(narrow) => transfer::narrow(narrow, from, to, count),
            None => transfer::copy(width, from, to, count),
        }
    }
}

/// The rows and columns of a loop over values that vary so; a per-row value is a row itself.
fn extent(kind: VariesWith, region: &Region) -> (usize, usize) {
    match (kind.rows, kind.columns) {
        (true, true) => (region.rows, region.columns),
        (true, false) => (1, region.rows),
        (false, true) => (1, region.columns),
        (false, false) => (1, 1),
    }
}

/// Broadcasts an operand of one column.
///
/// # Safety
///
/// The operand can be read and the target has space.
unsafe fn spread(
    operand: &LoopOperand,
    target: *mut u8,
    width: usize,
    rows: usize,
    columns: usize,
) -> LoopOperand {
    let row_stride = (columns * width) as isize;
    for row in 0..rows as isize {
        let from = StridedRun { data: operand.data.wrapping_offset(operand.row_stride * row), stride: 0 };
        let to = StridedRun { data: target.wrapping_offset(row_stride * row), stride: 1 };
        // SAFETY: guaranteed by the caller.
        unsafe { transfer::copy(width, from, to, columns) };
    }
    LoopOperand { data: target, row_stride, one_column: false }
}
