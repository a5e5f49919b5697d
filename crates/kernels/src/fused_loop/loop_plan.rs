//! Plans of fused loops: what each value varies with, its loop, and its slot in scratch memory.

use warpforge_tensor::{ElementType, Scalar};

use crate::isa::Isa;

use super::domain::{Access, Domain, Input, Output, Sink, Source};
use super::error::FusedLoopError;
use super::inst::{Inst, Register};
use super::lane_type::{LaneType, NarrowFloat, for_lane};
use super::layout::{IterationLayout, VariesWith};
use super::loop_select;
use super::loops::LoopKernel;
use super::reduce::{self, ReduceLoop};
use super::scratch_slots::SlotAllocator;

/// Elements of a tile: few enough that a handful of registers stay in the L1 cache.
const TILE: usize = 1024;

/// Columns from which on rows of reductions are not held in one tile, but read once per dependent reduction.
const LONG_ROW: usize = 64 * 1024;

/// A planned instruction.
#[derive(Debug)]
pub(super) struct PlannedInst {
    pub(super) kind: VariesWith,
    /// Bytes of a lane.
    pub(super) width: usize,
    /// Offset of the value in scratch memory, unless it is read in place.
    pub(super) slot: usize,
    /// Whether the value is hoisted out of the loop over rows.
    pub(super) once: bool,
    /// The store that the loop writes directly.
    pub(super) direct: Option<usize>,
    pub(super) action: Action,
}

/// The action of an instruction.
#[derive(Debug)]
pub(super) enum Action {
    /// Reads an input by the walk of this number.
    Load { input: usize, pattern: usize, narrow: Option<NarrowFloat> },
    /// Reads the tile.
    Tile { narrow: Option<NarrowFloat> },
    /// A constant.
    Constant([u8; 8]),
    /// An iota over an access pattern.
    Iota { pattern: usize, lane: LaneType, narrow: Option<NarrowFloat> },
    /// Applies a loop to earlier values, and a rounding loop for narrow floats.
    Compute { kernel: LoopKernel, operands: Vec<usize>, rounding: Option<LoopKernel> },
    /// Reduces the rows of an earlier value.
    Reduce { reduction: ReduceLoop, operand: usize },
}

/// A store.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) value: usize,
    pub(super) narrow: Option<NarrowFloat>,
    pub(super) target: StoreTarget,
}

/// Where a value is written.
#[derive(Debug)]
pub(super) enum StoreTarget {
    /// To an output by the walk of this number.
    Memory { output: usize, pattern: usize },
    /// To the tile.
    Tile,
}

/// A fused loop planned for one layout.
#[derive(Debug)]
pub(super) struct LoopPlan {
    pub(super) layout: IterationLayout,
    pub(super) planned: Vec<PlannedInst>,
    pub(super) stores: Vec<Store>,
    /// Elements of a tile.
    pub(super) capacity: usize,
    /// Whether a tile must hold all columns of a row.
    pub(super) whole_rows: bool,
    /// Offsets of buffers for broadcast and unrounded values.
    pub(super) spare: [usize; 4],
    /// Bytes of scratch memory.
    pub(super) scratch: usize,
}

impl LoopPlan {
    /// Plans a validated loop; `apart` keeps the rows and columns of the domain.
    pub(super) fn new(
        isa: Isa,
        domain: &Domain,
        inputs: &[Input],
        insts: &[Inst],
        outputs: &[Output],
        types: &[ElementType],
        apart: bool,
    ) -> Result<Self, FusedLoopError> {
        let mut accesses = Vec::new();
        let mut pattern_of = |access: &Access| {
            accesses.push(access.clone());
            accesses.len() - 1
        };
        let mut actions = Vec::with_capacity(insts.len());
        for (at, (inst, &element)) in insts.iter().zip(types).enumerate() {
            actions.push(action(isa, at, inst, element, types, inputs, &mut pattern_of)?);
        }
        let stores: Vec<Store> = outputs
            .iter()
            .enumerate()
            .map(|(output, Output { value, sink })| Store {
                value: value.0,
                narrow: NarrowFloat::of(types[value.0]),
                target: match sink {
                    Sink::Memory(access) => StoreTarget::Memory { output, pattern: pattern_of(access) },
                    Sink::Tile => StoreTarget::Tile,
                },
            })
            .collect();
        let layout = IterationLayout::new(&domain.rows, &domain.columns, &accesses, apart)?;
        let mut kinds: Vec<VariesWith> = Vec::with_capacity(insts.len());
        for action in &actions {
            kinds.push(match action {
                Action::Load { pattern, .. } | Action::Iota { pattern, .. } => layout.patterns[*pattern].kind,
                Action::Tile { .. } => VariesWith { rows: true, columns: true },
                Action::Constant(_) => VariesWith::default(),
                Action::Compute { operands, .. } => {
                    operands.iter().fold(VariesWith::default(), |kind, &operand| kind.join(kinds[operand]))
                }
                Action::Reduce { .. } => VariesWith { rows: true, columns: false },
            });
        }
        for (output, store) in stores.iter().enumerate() {
            if let StoreTarget::Memory { pattern, .. } = store.target {
                let (value, place) = (kinds[store.value], layout.patterns[pattern].kind);
                // A dimension of size one does not distinguish elements.
                let told = VariesWith {
                    rows: place.rows || layout.row_count <= 1,
                    columns: place.columns || layout.column_count <= 1,
                };
                if !value.fits(told) {
                    return Err(FusedLoopError::Overlap { output });
                }
            }
        }
        let whole_rows = actions.iter().any(|action| matches!(action, Action::Reduce { .. }));
        let held = if whole_rows && layout.column_count <= LONG_ROW { layout.column_count } else { 0 };
        let capacity = TILE.max(held);
        let widths: Vec<usize> =
            types.iter().map(|&element| LaneType::of(element).map_or(8, LaneType::width)).collect();
        let mut slots = SlotAllocator::new(capacity);
        let spare = [(); 4].map(|()| slots.own(8));
        let once: Vec<bool> = kinds.iter().map(|kind| !kind.rows && layout.row_count > 1).collect();
        let placed = slots.place(insts, outputs, &widths, &once);
        let planned = actions
            .into_iter()
            .enumerate()
            .map(|(at, action)| {
                let direct = match action {
                    Action::Compute { .. } => stores.iter().position(|store| {
                        store.value == at && !once[at] && takes_directly(store, kinds[at], &layout)
                    }),
                    _ => None,
                };
                PlannedInst {
                    kind: kinds[at],
                    width: widths[at],
                    slot: placed[at],
                    once: once[at],
                    direct,
                    action,
                }
            })
            .collect();
        Ok(Self { layout, planned, stores, capacity, whole_rows, spare, scratch: slots.bytes() })
    }

    /// Whether reductions span rows too long for a tile.
    pub(super) fn has_long_rows(&self) -> bool {
        self.whole_rows && self.layout.column_count > self.capacity
    }
}

/// Whether a loop can store directly to memory: dense, and without a conversion.
fn takes_directly(store: &Store, kind: VariesWith, layout: &IterationLayout) -> bool {
    let StoreTarget::Memory { pattern, .. } = store.target else { return false };
    let pattern = &layout.patterns[pattern];
    store.narrow.is_none() && kind.columns && pattern.kind == kind && pattern.dense_columns
}

/// The action of an instruction.
fn action(
    isa: Isa,
    at: usize,
    inst: &Inst,
    element: ElementType,
    types: &[ElementType],
    inputs: &[Input],
    pattern_of: &mut impl FnMut(&Access) -> usize,
) -> Result<Action, FusedLoopError> {
    let lane_of = |element| {
        LaneType::of(element).ok_or_else(|| FusedLoopError::Unsupported {
            inst: at,
            operation: "computation".to_owned(),
            element,
        })
    };
    let lane = lane_of(element)?;
    let narrow = NarrowFloat::of(element);
    let unsupported = |operation: &dyn std::fmt::Debug, register: Register| FusedLoopError::Unsupported {
        inst: at,
        operation: format!("{operation:?}"),
        element: types[register.0],
    };
    let rounded = |kernel| Action::Compute {
        kernel,
        operands: inst.operands().map(|register| register.0).collect(),
        rounding: narrow.map(|narrow| loop_select::rounding(isa, narrow)),
    };
    let exact = |kernel| Action::Compute {
        kernel,
        operands: inst.operands().map(|register| register.0).collect(),
        rounding: None,
    };
    Ok(match inst {
        Inst::Load(input) => match &inputs[*input].source {
            Source::Memory(access) => Action::Load { input: *input, pattern: pattern_of(access), narrow },
            Source::Tile => Action::Tile { narrow },
        },
        Inst::Constant(_, value) => Action::Constant(bytes_of(*value, element, lane)),
        Inst::Iota { offset, rows, columns, .. } => {
            let strides = |factors: &[i64]| factors.iter().map(|&factor| factor as isize).collect();
            let access = Access { offset: *offset as isize, rows: strides(rows), columns: strides(columns) };
            Action::Iota { pattern: pattern_of(&access), lane, narrow }
        }
        Inst::Unary(op, a) => {
            rounded(loop_select::unary(isa, *op, lane_of(types[a.0])?).ok_or_else(|| unsupported(op, *a))?)
        }
        Inst::Binary(op, a, _) => {
            rounded(loop_select::binary(isa, *op, lane).ok_or_else(|| unsupported(op, *a))?)
        }
        Inst::Compare(direction, order, a, _) => {
            exact(loop_select::compare(isa, *direction, *order, lane_of(types[a.0])?))
        }
        Inst::Select(..) => exact(loop_select::select(isa, lane.width())),
        Inst::Convert(a, _) => {
            let from = lane_of(types[a.0])?;
            match narrow {
                Some(_) => rounded(loop_select::convert_to_odd(isa, from)),
                None => exact(loop_select::convert(isa, from, lane)),
            }
        }
        Inst::Reduce(reduction, a) => Action::Reduce {
            reduction: reduce::reduce_loop(isa, *reduction, lane, narrow)
                .ok_or_else(|| unsupported(reduction, *a))?,
            operand: a.0,
        },
    })
}

/// The bytes of a constant in a lane.
fn bytes_of(value: Scalar, element: ElementType, lane: LaneType) -> [u8; 8] {
    let value = value.rounded_to(element);
    let mut bytes = [0; 8];
    match lane {
        LaneType::F32 => bytes[..4].copy_from_slice(&(value.to_f64() as f32).to_ne_bytes()),
        LaneType::F64 => bytes.copy_from_slice(&value.to_f64().to_ne_bytes()),
        _ => for_lane!(lane, T => {
            bytes[..size_of::<T>()].copy_from_slice(&(value.to_i128() as T).to_ne_bytes());
        }),
    }
    bytes
}
