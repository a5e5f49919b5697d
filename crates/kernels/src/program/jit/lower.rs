//! A program as phases: what is computed of a row before its columns, for each column, and after them.
//!
//! A fold over the columns divides a program: what needs its result comes a phase later. Values that a later phase needs are
//! computed anew where that costs no more than keeping them, else they are kept in a row of memory.

use warpforge_tensor::ElementType;

use crate::fold::Fold;
use crate::math::Lanes;

use super::super::plan::{Action, Plan, Target};
use super::super::step::{BinaryOp, Step, UnaryOp};
use super::JitError;
use super::apply::{Typed, apply, divisor, format};
use super::emit::{FoldKind, STREAMS};
use super::frame::MOST_SCALARS;
use super::op::{Body, Divisor, Effect, Format, Op};
use super::trace::{Traced, TracedMask, push, record, with_body};

/// What computing a value anew may cost, in operations.
const CHEAP: usize = 3;

/// Where the elements of a stream are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Input {
        input: usize,
        walk: usize,
    },
    Output {
        output: usize,
        walk: usize,
    },
    Tile,
    /// A row of memory between phases, by its number.
    Row(usize),
    /// A block of memory, by its number, with the elements of an input whose rows are neighbours in memory.
    TurnedInput {
        input: usize,
        walk: usize,
        block: usize,
    },
    /// A block of memory with the elements of an output whose rows are neighbours in memory.
    TurnedOutput {
        output: usize,
        walk: usize,
        block: usize,
    },
}

/// Elements that the code reads or writes one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stream {
    pub(super) place: Place,
    /// Bytes of an element.
    pub(super) width: usize,
}

/// A fold and the number of the frame that its result is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folded {
    pub(super) kind: FoldKind,
    pub(super) slot: usize,
}

/// What is computed between two folds.
#[derive(Debug, Default)]
pub(super) struct Phase {
    /// Numbers of the row.
    pub(super) scalars: Body,
    pub(super) columns: Body,
    pub(super) folds: Vec<Folded>,
    /// Numbers of the row that are written out.
    pub(super) after: Body,
    /// Streams whose next row is brought nearer meanwhile.
    pub(super) ahead: Vec<usize>,
    /// Streams whose rows to come are brought nearer where rows are computed in pairs.
    pub(super) ahead_of_pairs: Vec<usize>,
}

/// A program in phases.
#[derive(Debug, Default)]
pub(super) struct Lowered {
    pub(super) streams: Vec<Stream>,
    pub(super) phases: Vec<Phase>,
    /// Rows of memory between phases.
    pub(super) rows: usize,
    /// Blocks of memory for what is turned.
    pub(super) blocks: usize,
}

type Result<T> = std::result::Result<T, JitError>;

/// A plan's steps as phases.
pub(super) fn lower(plan: &Plan, steps: &[Step], types: &[ElementType]) -> Result<Lowered> {
    let mut lowering = Lowering::new(plan, steps, types)?;
    let last = lowering.pass.iter().copied().max().unwrap_or(0);
    let mut needs: Vec<Vec<bool>> = Vec::new();
    for phase in (0..=last).rev() {
        needs.push(lowering.needed(phase, last)?);
    }
    needs.reverse();
    for (phase, needed) in needs.iter().enumerate() {
        let made = lowering.phase(phase, last, needed)?;
        lowering.lowered.phases.push(made);
    }
    lowering.bring_nearer();
    let fits = lowering.lowered.streams.len() <= STREAMS.len() && lowering.slots <= MOST_SCALARS;
    if fits { Ok(lowering.lowered) } else { Err(JitError::Registers) }
}

struct Lowering<'a> {
    plan: &'a Plan,
    steps: &'a [Step],
    types: &'a [ElementType],
    /// Which values differ from column to column.
    varies: Vec<bool>,
    /// The first phase that can compute a value.
    pass: Vec<usize>,
    /// What it costs to compute a value.
    cost: Vec<usize>,
    /// The stream that keeps a value between phases.
    kept: Vec<Option<usize>>,
    /// The number of the frame that a value is.
    slot: Vec<Option<usize>>,
    slots: usize,
    /// The numbers of the frame that it takes to divide by a value.
    divisors: Vec<Option<usize>>,
    lowered: Lowered,
}

impl<'a> Lowering<'a> {
    fn new(plan: &'a Plan, steps: &'a [Step], types: &'a [ElementType]) -> Result<Self> {
        let count = steps.len();
        let mut this = Self {
            plan,
            steps,
            types,
            varies: Vec::with_capacity(count),
            pass: Vec::with_capacity(count),
            cost: Vec::with_capacity(count),
            kept: vec![None; count],
            slot: vec![None; count],
            slots: 0,
            divisors: vec![None; count],
            lowered: Lowered::default(),
        };
        for (at, step) in steps.iter().enumerate() {
            let operands: Vec<usize> = step.operands().map(|operand| operand.0).collect();
            let varies = match &plan.nodes[at].action {
                Action::Load { walk, .. } => match plan.layout.walks[*walk].columns.last() {
                    Some(0) => false,
                    Some(1) => true,
                    _ if can_turn(plan, *walk, types[at]) => true,
                    _ => return Err(JitError::Unsupported),
                },
                Action::Tile { .. } => true,
                Action::Constant(_) | Action::Fold { .. } => false,
                Action::Iota { .. } => return Err(JitError::Unsupported),
                Action::Compute { .. } => operands.iter().any(|&operand| this.varies[operand]),
            };
            let before = operands.iter().map(|&operand| this.pass[operand]).max().unwrap_or(0);
            this.pass.push(before + usize::from(matches!(step, Step::Reduce(..))));
            let below: usize = operands.iter().map(|&operand| this.cost[operand]).sum();
            this.cost.push(if varies { below.saturating_add(cost(step)) } else { 0 });
            this.varies.push(varies);
            if let Step::Reduce(..) = step {
                this.slot[at] = Some(this.number());
            }
        }
        Ok(this)
    }

    /// A number of the frame.
    fn number(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    fn new_stream(&mut self, place: Place, format: Format) -> usize {
        let stream = Stream { place, width: format.bytes() };
        let known = self.lowered.streams.iter().position(|known| *known == stream);
        known.unwrap_or_else(|| {
            self.lowered.streams.push(stream);
            self.lowered.streams.len() - 1
        })
    }

    /// Which values that differ from column to column a phase computes or reads. What it cannot compute cheaply is kept from
    /// the phase that could first.
    fn needed(&mut self, phase: usize, last: usize) -> Result<Vec<bool>> {
        let mut needed = vec![false; self.steps.len()];
        for (at, step) in self.steps.iter().enumerate() {
            if let Step::Reduce(_, operand) = step
                && self.pass[at] == phase + 1
            {
                if !self.varies[operand.0] {
                    return Err(JitError::Unsupported);
                }
                needed[operand.0] = true;
            }
            needed[at] |= self.kept[at].is_some() && self.pass[at] == phase;
        }
        if phase == last {
            self.plan.stores.iter().for_each(|store| needed[store.value] = self.varies[store.value]);
        }
        for at in (0..self.steps.len()).rev() {
            if !needed[at] {
                continue;
            }
            let early = self.pass[at] < phase;
            if early && self.cost[at] > CHEAP && self.kept[at].is_none() {
                if self.types[at] != ElementType::F32 {
                    return Err(JitError::Unsupported);
                }
                let row = self.lowered.rows;
                self.lowered.rows += 1;
                self.kept[at] = Some(self.new_stream(Place::Row(row), Format::F32));
            }
            if early && self.kept[at].is_some() {
                continue;
            }
            for operand in self.steps[at].operands().filter(|operand| self.varies[operand.0]) {
                needed[operand.0] = true;
            }
        }
        Ok(needed)
    }

    /// While a row is gone through several times, the phase that computes most has time to bring the next row nearer. Rows
    /// of blocks are too short for the processor to see what comes next.
    fn bring_nearer(&mut self) {
        let Lowered { streams, phases, .. } = &mut self.lowered;
        let varies = |stream: &Stream| match stream.place {
            Place::Input { walk, .. } => {
                let walk = &self.plan.layout.walks[walk];
                walk.kind.rows && walk.columns.last() == Some(&1)
            }
            _ => false,
        };
        let varying = (0..streams.len()).filter(|&at| varies(&streams[at])).collect();
        match phases.as_mut_slice() {
            [only] => only.ahead_of_pairs = varying,
            several => {
                if let Some(longest) = several.iter_mut().max_by_key(|phase| phase.columns.ops.len()) {
                    longest.ahead = varying;
                }
            }
        }
    }

    fn phase(&mut self, phase: usize, last: usize, needed: &[bool]) -> Result<Phase> {
        let scalars = recorded(|| self.scalars(phase))?;
        let mut folds = Vec::new();
        let columns = recorded(|| self.columns(phase, last, needed, &mut folds))?;
        let after = if phase == last { recorded(|| self.after())? } else { Body::default() };
        Ok(Phase { scalars, columns, folds, after, ..Phase::default() })
    }

    /// The numbers of the row that a phase is the first to know.
    fn scalars(&mut self, phase: usize) -> Result<()> {
        let mut values: Vec<Option<Typed>> = vec![None; self.steps.len()];
        for at in 0..self.steps.len() {
            if self.varies[at] || self.pass[at] != phase {
                continue;
            }
            let computed = matches!(self.plan.nodes[at].action, Action::Compute { .. });
            if computed {
                let operands: Vec<Typed> = self.operands(at, &values)?;
                let made = apply(&self.steps[at], self.types[at], &operands, None)?;
                let kept = match made {
                    Typed::Vector(made) => made,
                    // A truth value is kept as a number.
                    Typed::Mask(mask) => Traced::select(mask, Traced::splat(1.0), Traced::splat(0.0)),
                };
                let slot = self.number();
                self.slot[at] = Some(slot);
                with_body(|body| body.effects.push(Effect::Keep { slot, value: kept.0 }));
                values[at] = Some(made);
            }
            let divides = self.steps.iter().enumerate().any(|(by, step)| {
                matches!(step, Step::Binary(BinaryOp::Divide, _, number) if number.0 == at && self.varies[by])
            });
            if divides && !matches!(self.steps[at], Step::Constant(..)) {
                let number = match values[at] {
                    Some(value) => value,
                    None => self.uniform(at)?,
                };
                let Divisor { number: _, reciprocal, range, zero } = divisor(number.vector()?);
                self.divisors[at] = Some(self.slots);
                for value in [reciprocal, range, zero] {
                    let keep = Effect::Keep { slot: self.number(), value };
                    with_body(|body| body.effects.push(keep));
                }
            }
        }
        Ok(())
    }

    /// A value that is the same for all columns and known before the phase.
    fn uniform(&mut self, at: usize) -> Result<Typed> {
        let format = format(self.types[at])?;
        if let Some(slot) = self.slot[at] {
            let number = push(Op::Scalar(slot));
            return Ok(match format {
                Format::Bool => Typed::Mask(number.differs(Traced::splat(0.0))),
                _ => Typed::Vector(number),
            });
        }
        match (&self.plan.nodes[at].action, format) {
            (Action::Load { input, walk, .. }, Format::F32) => {
                let stream = self.new_stream(Place::Input { input: *input, walk: *walk }, Format::F32);
                Ok(Typed::Vector(push(Op::First(stream))))
            }
            (Action::Constant(bytes), format) if format != Format::Bool => {
                let [a, b, c, d, ..] = *bytes;
                Ok(Typed::Vector(push(Op::Constant(u32::from_ne_bytes([a, b, c, d])))))
            }
            _ => Err(JitError::Unsupported),
        }
    }

    fn operands(&mut self, at: usize, values: &[Option<Typed>]) -> Result<Vec<Typed>> {
        let operands: Vec<usize> = self.steps[at].operands().map(|operand| operand.0).collect();
        operands
            .into_iter()
            .map(|operand| match values[operand] {
                Some(value) => Ok(value),
                None if self.varies[operand] => Err(JitError::Unsupported),
                None => self.uniform(operand),
            })
            .collect()
    }

    /// What is computed for each column.
    fn columns(&mut self, phase: usize, last: usize, needed: &[bool], folds: &mut Vec<Folded>) -> Result<()> {
        let mut values: Vec<Option<Typed>> = vec![None; self.steps.len()];
        for at in (0..self.steps.len()).filter(|&at| needed[at]) {
            let kept = self.kept[at].filter(|_| self.pass[at] < phase);
            let value = match (kept, &self.plan.nodes[at].action) {
                (Some(stream), _) => Typed::Vector(push(Op::Load(stream, Format::F32))),
                (None, Action::Load { input, walk, .. }) => {
                    let place = self.input(*input, *walk);
                    self.load(at, place)?
                }
                (None, Action::Tile { .. }) => self.load(at, Place::Tile)?,
                _ => {
                    let operands = self.operands(at, &values)?;
                    let divisor = self.divisor(at, &operands);
                    apply(&self.steps[at], self.types[at], &operands, divisor)?
                }
            };
            values[at] = Some(value);
            if let Some(stream) = self.kept[at].filter(|_| self.pass[at] == phase) {
                let effect = Effect::Store { stream, format: Format::F32, value: value.value(), kept: true };
                with_body(|body| body.effects.push(effect));
            }
        }
        for (at, step) in self.steps.iter().enumerate() {
            let Step::Reduce(fold, operand) = step else { continue };
            if self.pass[at] != phase + 1 {
                continue;
            }
            let kind = match (fold, self.types[at]) {
                (Fold::Sum, ElementType::F32) => FoldKind::Sum,
                (Fold::Maximum, ElementType::F32 | ElementType::F16 | ElementType::BF16) => FoldKind::Maximum,
                (Fold::Minimum, ElementType::F32 | ElementType::F16 | ElementType::BF16) => FoldKind::Minimum,
                _ => return Err(JitError::Unsupported),
            };
            let slot = self.slot[at].ok_or(JitError::Unsupported)?;
            folds.push(Folded { kind, slot });
            let value = values[operand.0].ok_or(JitError::Unsupported)?.vector()?.0;
            let effect = Effect::Fold { fold: folds.len() - 1, value };
            with_body(|body| body.effects.push(effect));
        }
        if phase == last {
            self.stores(&values)?;
        }
        Ok(())
    }

    /// Where the elements of an input with columns are read.
    fn input(&mut self, input: usize, walk: usize) -> Place {
        if self.plan.layout.walks[walk].columns.last() == Some(&1) {
            return Place::Input { input, walk };
        }
        let mut places = self.lowered.streams.iter().map(|stream| stream.place);
        let same = |place: &Place| matches!(place, Place::TurnedInput { input: i, walk: w, .. } if (*i, *w) == (input, walk));
        places.find(same).unwrap_or_else(|| {
            self.lowered.blocks += 1;
            Place::TurnedInput { input, walk, block: self.lowered.blocks - 1 }
        })
    }

    fn load(&mut self, at: usize, place: Place) -> Result<Typed> {
        let format = format(self.types[at])?;
        let stream = self.new_stream(place, format);
        let loaded = push(Op::Load(stream, format));
        Ok(if format == Format::Bool { Typed::Mask(TracedMask(loaded.0)) } else { Typed::Vector(loaded) })
    }

    /// What it takes to divide by a step's second operand, where that is the same for all columns.
    fn divisor(&mut self, at: usize, operands: &[Typed]) -> Option<Divisor> {
        let Step::Binary(BinaryOp::Divide, _, number) = self.steps[at] else { return None };
        let first = self.divisors[number.0]?;
        let [reciprocal, range, zero] = [0, 1, 2].map(|more| push(Op::Scalar(first + more)).0);
        Some(Divisor { number: operands.get(1)?.value(), reciprocal, range, zero })
    }

    /// The outputs that have columns are written.
    fn stores(&mut self, values: &[Option<Typed>]) -> Result<()> {
        let plan = self.plan;
        for store in &plan.stores {
            let format = format(self.types[store.value])?;
            let place = match store.target {
                Target::Tile => Place::Tile,
                Target::Memory { output, walk } => {
                    let walk_of = &plan.layout.walks[walk];
                    if !walk_of.kind.rows && plan.layout.row_count > 1 {
                        return Err(JitError::Unsupported);
                    }
                    match walk_of.columns.last() {
                        Some(1) => Place::Output { output, walk },
                        Some(0) if !self.varies[store.value] && plan.layout.columns.len() == 1 => continue,
                        _ if can_turn(plan, walk, self.types[store.value]) => {
                            self.lowered.blocks += 1;
                            Place::TurnedOutput { output, walk, block: self.lowered.blocks - 1 }
                        }
                        _ => return Err(JitError::Unsupported),
                    }
                }
            };
            let value = match values[store.value] {
                Some(value) => value,
                None => self.uniform(store.value)?,
            };
            let stream = self.new_stream(place, format);
            let effect = Effect::Store { stream, format, value: value.value(), kept: false };
            with_body(|body| body.effects.push(effect));
        }
        Ok(())
    }

    /// The outputs that have a value for each row alone are written.
    fn after(&mut self) -> Result<()> {
        let plan = self.plan;
        for store in &plan.stores {
            let Target::Memory { output, walk } = store.target else { continue };
            if plan.layout.walks[walk].columns.last() != Some(&0) {
                continue;
            }
            if self.types[store.value] != ElementType::F32 {
                return Err(JitError::Unsupported);
            }
            let value = self.uniform(store.value)?.vector()?.0;
            let stream = self.new_stream(Place::Output { output, walk }, Format::F32);
            with_body(|body| body.effects.push(Effect::StoreFirst { stream, value }));
        }
        Ok(())
    }
}

/// Whether neighbouring rows of a walk are neighbours in memory, so that squares of elements can be turned.
fn can_turn(plan: &Plan, walk: usize, element: ElementType) -> bool {
    let walk = &plan.layout.walks[walk];
    let columns = walk.columns.last().is_some_and(|&stride| stride > 1);
    element == ElementType::F32 && plan.layout.columns.len() == 1 && columns && walk.rows.last() == Some(&1)
}

/// What a function records, unless it fails.
fn recorded(f: impl FnOnce() -> Result<()>) -> Result<Body> {
    let (body, outcome) = record(f).ok_or(JitError::Unsupported)?;
    outcome.map(|()| body)
}

/// About how many operations a step is.
fn cost(step: &Step) -> usize {
    match step {
        Step::Unary(UnaryOp::Abs | UnaryOp::Negate | UnaryOp::Not, _) => 1,
        Step::Unary(..) => 20,
        Step::Binary(BinaryOp::Divide, ..) => 8,
        _ => 1,
    }
}
