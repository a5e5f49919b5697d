//! A program made ready to run: what varies with what, which loop each step is, where its value lies in scratch memory.

use warpforge_tensor::{ElementType, Scalar};

use crate::isa::Isa;

use super::compute;
use super::domain::{Access, Domain, Input, Output, Sink, Source};
use super::error::ProgramError;
use super::fold::{self, FoldLoop};
#[cfg(target_arch = "x86_64")]
use super::jit::Code;
use super::lane::{Lane, Narrow, for_lane};
use super::layout::{Kind, Layout};
use super::loops::Kernel;
use super::slots::Slots;
use super::step::{Register, Step};

/// Elements that a register holds of a tile: few enough that a handful of registers stay in the first-level cache.
const TILE: usize = 1024;

/// Columns from which on the rows of folds are not held whole but gone through once for each fold that needs another.
const LONG: usize = 64 * 1024;

/// A step made ready.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// Bytes of one element as it is held.
    pub(super) width: usize,
    /// Where the value lies in scratch memory, unless it is read in place.
    pub(super) slot: usize,
    /// Whether the value is computed once for the tiles of many rows.
    pub(super) once: bool,
    /// The store that the step can do itself.
    pub(super) direct: Option<usize>,
    pub(super) action: Action,
}

/// What a step does.
#[derive(Debug)]
pub(super) enum Action {
    /// Reads an input by the walk of this number.
    Load { input: usize, walk: usize, narrow: Option<Narrow> },
    /// Reads the tile.
    Tile { narrow: Option<Narrow> },
    /// Holds the bytes of one element.
    Constant([u8; 8]),
    /// Numbers the positions by the walk of this number.
    Iota { walk: usize, lane: Lane, narrow: Option<Narrow> },
    /// Applies a loop to earlier values, and then perhaps one that rounds.
    Compute { kernel: Kernel, operands: Vec<usize>, rounding: Option<Kernel> },
    /// Folds the rows of an earlier value.
    Fold { fold: FoldLoop, operand: usize },
}

/// A value that is written out.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) value: usize,
    pub(super) narrow: Option<Narrow>,
    pub(super) target: Target,
}

/// Where a value is written.
#[derive(Debug)]
pub(super) enum Target {
    /// To an output by the walk of this number.
    Memory { output: usize, walk: usize },
    /// To the tile.
    Tile,
}

/// A program made ready to run over one layout.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) layout: Layout,
    pub(super) nodes: Vec<Node>,
    pub(super) stores: Vec<Store>,
    /// Elements of a tile.
    pub(super) capacity: usize,
    /// Whether all columns of a row must be in one tile.
    pub(super) whole_rows: bool,
    /// Where values are spread or not yet rounded.
    pub(super) spare: [usize; 4],
    /// Bytes of scratch memory.
    pub(super) scratch: usize,
    /// Machine code that does all of it.
    #[cfg(target_arch = "x86_64")]
    pub(super) code: Option<Code>,
}

impl Plan {
    /// A plan for a program that has been checked; `apart` keeps rows and columns as the domain has them.
    pub(super) fn new(
        isa: Isa,
        domain: &Domain,
        inputs: &[Input],
        steps: &[Step],
        outputs: &[Output],
        types: &[ElementType],
        apart: bool,
    ) -> Result<Self, ProgramError> {
        let mut accesses = Vec::new();
        let mut walk_of = |access: &Access| {
            accesses.push(access.clone());
            accesses.len() - 1
        };
        let mut actions = Vec::with_capacity(steps.len());
        for (at, (step, &element)) in steps.iter().zip(types).enumerate() {
            actions.push(action(isa, at, step, element, types, inputs, &mut walk_of)?);
        }
        let stores: Vec<Store> = outputs
            .iter()
            .enumerate()
            .map(|(output, Output { value, sink })| Store {
                value: value.0,
                narrow: Narrow::of(types[value.0]),
                target: match sink {
                    Sink::Memory(access) => Target::Memory { output, walk: walk_of(access) },
                    Sink::Tile => Target::Tile,
                },
            })
            .collect();
        let layout = Layout::new(&domain.rows, &domain.columns, &accesses, apart)?;
        let mut kinds: Vec<Kind> = Vec::with_capacity(steps.len());
        for action in &actions {
            kinds.push(match action {
                Action::Load { walk, .. } | Action::Iota { walk, .. } => layout.walks[*walk].kind,
                Action::Tile { .. } => Kind { rows: true, columns: true },
                Action::Constant(_) => Kind::default(),
                Action::Compute { operands, .. } => {
                    operands.iter().fold(Kind::default(), |kind, &operand| kind.join(kinds[operand]))
                }
                Action::Fold { .. } => Kind { rows: true, columns: false },
            });
        }
        for (output, store) in stores.iter().enumerate() {
            if let Target::Memory { walk, .. } = store.target {
                let (value, place) = (kinds[store.value], layout.walks[walk].kind);
                // A dimension of one position does not tell anything apart.
                let told = Kind {
                    rows: place.rows || layout.row_count <= 1,
                    columns: place.columns || layout.column_count <= 1,
                };
                if !value.fits(told) {
                    return Err(ProgramError::Overlap { output });
                }
            }
        }
        let whole_rows = actions.iter().any(|action| matches!(action, Action::Fold { .. }));
        let held = if whole_rows && layout.column_count <= LONG { layout.column_count } else { 0 };
        let capacity = TILE.max(held);
        let widths: Vec<usize> =
            types.iter().map(|&element| Lane::of(element).map_or(8, Lane::width)).collect();
        let mut slots = Slots::new(capacity);
        let spare = [(); 4].map(|()| slots.own(8));
        let once: Vec<bool> = kinds.iter().map(|kind| !kind.rows && layout.row_count > 1).collect();
        let placed = slots.place(steps, outputs, &widths, &once);
        let nodes = actions
            .into_iter()
            .enumerate()
            .map(|(at, action)| {
                let direct = match action {
                    Action::Compute { .. } => stores.iter().position(|store| {
                        store.value == at && !once[at] && takes_directly(store, kinds[at], &layout)
                    }),
                    _ => None,
                };
                Node { kind: kinds[at], width: widths[at], slot: placed[at], once: once[at], direct, action }
            })
            .collect();
        Ok(Self {
            layout,
            nodes,
            stores,
            capacity,
            whole_rows,
            spare,
            scratch: slots.bytes(),
            #[cfg(target_arch = "x86_64")]
            code: None,
        })
    }

    /// The same with machine code, where there can be some for these instructions.
    pub(super) fn compiled(self, isa: Isa, steps: &[Step], types: &[ElementType]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512 {
            return Self { code: Code::new(&self, steps, types).ok(), ..self };
        }
        let _ = (isa, steps, types);
        self
    }

    /// Whether results can be written to these buffers past the caches.
    pub(super) fn can_stream(&self, outputs: &[*mut u8]) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.code.as_ref().is_some_and(|code| code.can_stream(self, outputs));
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = outputs;
            false
        }
    }

    /// Whether rows are too long to be held whole though there are folds over them.
    pub(super) fn long_rows(&self) -> bool {
        self.whole_rows && self.layout.column_count > self.capacity
    }
}

/// Whether a loop can write where a value goes: to memory, element by element as it is held.
fn takes_directly(store: &Store, kind: Kind, layout: &Layout) -> bool {
    let Target::Memory { walk, .. } = store.target else { return false };
    let walk = &layout.walks[walk];
    store.narrow.is_none() && kind.columns && walk.kind == kind && walk.dense_columns
}

/// What a step does, or why it cannot.
fn action(
    isa: Isa,
    at: usize,
    step: &Step,
    element: ElementType,
    types: &[ElementType],
    inputs: &[Input],
    walk_of: &mut impl FnMut(&Access) -> usize,
) -> Result<Action, ProgramError> {
    let lane_of = |element| {
        Lane::of(element).ok_or_else(|| ProgramError::Unsupported {
            step: at,
            operation: "computation".to_owned(),
            element,
        })
    };
    let lane = lane_of(element)?;
    let narrow = Narrow::of(element);
    let unsupported = |operation: &dyn std::fmt::Debug, register: Register| ProgramError::Unsupported {
        step: at,
        operation: format!("{operation:?}"),
        element: types[register.0],
    };
    let rounded = |kernel| Action::Compute {
        kernel,
        operands: step.operands().map(|register| register.0).collect(),
        rounding: narrow.map(|narrow| compute::rounding(isa, narrow)),
    };
    let exact = |kernel| Action::Compute {
        kernel,
        operands: step.operands().map(|register| register.0).collect(),
        rounding: None,
    };
    Ok(match step {
        Step::Load(input) => match &inputs[*input].source {
            Source::Memory(access) => Action::Load { input: *input, walk: walk_of(access), narrow },
            Source::Tile => Action::Tile { narrow },
        },
        Step::Constant(_, value) => Action::Constant(bytes_of(*value, element, lane)),
        Step::Iota { offset, rows, columns, .. } => {
            let strides = |factors: &[i64]| factors.iter().map(|&factor| factor as isize).collect();
            let access = Access { offset: *offset as isize, rows: strides(rows), columns: strides(columns) };
            Action::Iota { walk: walk_of(&access), lane, narrow }
        }
        Step::Unary(op, a) => {
            rounded(compute::unary(isa, *op, lane_of(types[a.0])?).ok_or_else(|| unsupported(op, *a))?)
        }
        Step::Binary(op, a, _) => {
            rounded(compute::binary(isa, *op, lane).ok_or_else(|| unsupported(op, *a))?)
        }
        Step::Compare(direction, order, a, _) => {
            exact(compute::compare(isa, *direction, *order, lane_of(types[a.0])?))
        }
        Step::Select(..) => exact(compute::select(isa, lane.width())),
        Step::Convert(a, _) => {
            let from = lane_of(types[a.0])?;
            match narrow {
                Some(_) => rounded(compute::convert_to_odd(isa, from)),
                None => exact(compute::convert(isa, from, lane)),
            }
        }
        Step::Reduce(fold, a) => Action::Fold {
            fold: fold::fold(isa, *fold, lane, narrow).ok_or_else(|| unsupported(fold, *a))?,
            operand: a.0,
        },
    })
}

/// The bytes of a constant as it is held.
fn bytes_of(value: Scalar, element: ElementType, lane: Lane) -> [u8; 8] {
    let value = value.rounded_to(element);
    let mut bytes = [0; 8];
    match lane {
        Lane::F32 => bytes[..4].copy_from_slice(&(value.to_f64() as f32).to_ne_bytes()),
        Lane::F64 => bytes.copy_from_slice(&value.to_f64().to_ne_bytes()),
        _ => for_lane!(lane, T => {
            bytes[..size_of::<T>()].copy_from_slice(&(value.to_i128() as T).to_ne_bytes());
        }),
    }
    bytes
}
