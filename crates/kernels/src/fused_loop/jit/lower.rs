//! Lowering of a fused loop to phases: per-row scalars before the columns, operations for each column, and stores after
//! them.
//!
//! A reduction over the columns ends a phase: operations that need its result are in the next one. Values that a later
//! phase needs are recomputed if that is cheap, else kept in a row buffer.

use warpforge_tensor::ElementType;

use crate::math::Lanes;
use crate::reduce::ReduceOp;

use super::super::inst::Inst;
use super::super::loop_plan::{Action, LoopPlan, StoreTarget};
use super::abi::STREAMS;
use super::emit::ReduceKind;
use super::error::JitError;
use super::frame::MAX_SCALARS;
use super::op::{Body, Divisor, Effect, Format, Op};
use super::phases::{Lowered, Phase, ReducedOutput, Stream, StreamLocation};
use super::trace::{Traced, TracedMask, push, record, with_body};
use super::translate::{TracedValue, divisor, format, translate};
use warpforge_tensor::elementwise::Function;

/// Maximum cost of a recomputed value, in operations.
const CHEAP: usize = 3;

type Result<T> = std::result::Result<T, JitError>;

/// A plan's steps as phases.
pub(super) fn lower(plan: &LoopPlan, insts: &[Inst], types: &[ElementType]) -> Result<Lowered> {
    let mut lowering = Lowering::new(plan, insts, types)?;
    let last = lowering.pass.iter().copied().max().unwrap_or(0);
    let mut needs: Vec<Vec<bool>> = Vec::new();
    for phase in (0..=last).rev() {
        needs.push(lowering.needed(phase, last)?);
    }
    needs.reverse();
    for (phase, needed) in needs.iter().enumerate() {
        let with_options = lowering.phase(phase, last, needed)?;
        lowering.lowered.phases.push(with_options);
    }
    lowering.prefetch();
    let fits = lowering.lowered.streams.len() <= STREAMS.len() && lowering.slots <= MAX_SCALARS;
    if fits { Ok(lowering.lowered) } else { Err(JitError::OutOfRegisters) }
}

struct Lowering<'a> {
    plan: &'a LoopPlan,
    insts: &'a [Inst],
    types: &'a [ElementType],
    /// Which values differ from column to column.
    varies: Vec<bool>,
    /// The first phase that can compute a value.
    pass: Vec<usize>,
    /// What it costs to compute a value.
    cost: Vec<usize>,
    /// The stream that keeps a value between phases.
    kept: Vec<Option<usize>>,
    /// The scalar of the frame that a value is.
    slot: Vec<Option<usize>>,
    slots: usize,
    /// The scalars of the frame that it takes to divide by a value.
    divisors: Vec<Option<usize>>,
    lowered: Lowered,
}

impl<'a> Lowering<'a> {
    fn new(plan: &'a LoopPlan, insts: &'a [Inst], types: &'a [ElementType]) -> Result<Self> {
        let count = insts.len();
        let mut this = Self {
            plan,
            insts,
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
        for (at, inst) in insts.iter().enumerate() {
            let operands: Vec<usize> = inst.operands().map(|operand| operand.0).collect();
            let varies = match &plan.planned[at].action {
                Action::Load { pattern, .. } => match plan.layout.patterns[*pattern].columns.last() {
                    Some(0) => false,
                    Some(1) => true,
                    _ if can_transpose(plan, *pattern, types[at]) => true,
                    _ => return Err(JitError::Unsupported),
                },
                Action::Tile { .. } => true,
                Action::Constant(_) | Action::Reduce { .. } => false,
                Action::Iota { .. } => return Err(JitError::Unsupported),
                Action::Compute { .. } => operands.iter().any(|&operand| this.varies[operand]),
            };
            let before = operands.iter().map(|&operand| this.pass[operand]).max().unwrap_or(0);
            this.pass.push(before + usize::from(matches!(inst, Inst::Reduce(..))));
            let below: usize = operands.iter().map(|&operand| this.cost[operand]).sum();
            this.cost.push(if varies { below.saturating_add(cost(inst)) } else { 0 });
            this.varies.push(varies);
            if let Inst::Reduce(..) = inst {
                this.slot[at] = Some(this.number());
            }
        }
        Ok(this)
    }

    /// The type of the first operand of an instruction, or its own.
    fn first_type(&self, at: usize) -> ElementType {
        self.insts[at].operands().next().map_or(self.types[at], |operand| self.types[operand.0])
    }

    /// A scalar of the frame.
    fn number(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    fn new_stream(&mut self, location: StreamLocation, format: Format) -> usize {
        let stream = Stream { location, width: format.bytes() };
        let known = self.lowered.streams.iter().position(|known| *known == stream);
        known.unwrap_or_else(|| {
            self.lowered.streams.push(stream);
            self.lowered.streams.len() - 1
        })
    }

    /// The column values that a phase computes or reads. Expensive values of earlier phases are kept from the first
    /// phase that computes them.
    fn needed(&mut self, phase: usize, last: usize) -> Result<Vec<bool>> {
        let mut needed = vec![false; self.insts.len()];
        for (at, inst) in self.insts.iter().enumerate() {
            if let Inst::Reduce(_, operand) = inst
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
        for at in (0..self.insts.len()).rev() {
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
                self.kept[at] = Some(self.new_stream(StreamLocation::Row(row), Format::F32));
            }
            if early && self.kept[at].is_some() {
                continue;
            }
            for operand in self.insts[at].operands().filter(|operand| self.varies[operand.0]) {
                needed[operand.0] = true;
            }
        }
        Ok(needed)
    }

    /// Of several phases, the longest prefetches the next row. Rows of blocks are too short for the hardware
    /// prefetcher.
    fn prefetch(&mut self) {
        let Lowered { streams, phases, .. } = &mut self.lowered;
        let varies = |stream: &Stream| match stream.location {
            StreamLocation::Input { pattern, .. } => {
                let pattern = &self.plan.layout.patterns[pattern];
                pattern.kind.rows && pattern.columns.last() == Some(&1)
            }
            _ => false,
        };
        let varying = (0..streams.len()).filter(|&at| varies(&streams[at])).collect();
        match phases.as_mut_slice() {
            [only] => only.prefetched_in_pairs = varying,
            several => {
                if let Some(longest) = several.iter_mut().max_by_key(|phase| phase.columns.ops.len()) {
                    longest.prefetched = varying;
                }
            }
        }
    }

    fn phase(&mut self, phase: usize, last: usize, needed: &[bool]) -> Result<Phase> {
        let scalars = recorded(|| self.scalars(phase))?;
        let mut reductions = Vec::new();
        let columns = recorded(|| self.columns(phase, last, needed, &mut reductions))?;
        let after = if phase == last { recorded(|| self.after())? } else { Body::default() };
        Ok(Phase { scalars, columns, reductions, after, ..Phase::default() })
    }

    /// The per-row scalars of a phase.
    fn scalars(&mut self, phase: usize) -> Result<()> {
        let mut values: Vec<Option<TracedValue>> = vec![None; self.insts.len()];
        for at in 0..self.insts.len() {
            if self.varies[at] || self.pass[at] != phase {
                continue;
            }
            let computed = matches!(self.plan.planned[at].action, Action::Compute { .. });
            if computed {
                let operands: Vec<TracedValue> = self.operands(at, &values)?;
                let with_options =
                    translate(&self.insts[at], self.types[at], self.first_type(at), &operands, None)?;
                let kept = match with_options {
                    TracedValue::Vector(with_options) => with_options,
                    // A boolean is kept as a number.
                    TracedValue::Mask(mask) => Traced::select(mask, Traced::splat(1.0), Traced::splat(0.0)),
                };
                let slot = self.number();
                self.slot[at] = Some(slot);
                with_body(|body| body.effects.push(Effect::StoreScalar { slot, value: kept.0 }));
                values[at] = Some(with_options);
            }
            let divides = self.insts.iter().enumerate().any(|(by, inst)| {
                matches!(inst, Inst::Binary(Function::Divide, _, number) if number.0 == at && self.varies[by])
            });
            if divides && !matches!(self.insts[at], Inst::Constant(..)) {
                let number = match values[at] {
                    Some(value) => value,
                    None => self.uniform(at)?,
                };
                let Divisor { number: _, reciprocal, range, zero } = divisor(number.vector()?);
                self.divisors[at] = Some(self.slots);
                for value in [reciprocal, range, zero] {
                    let keep = Effect::StoreScalar { slot: self.number(), value };
                    with_body(|body| body.effects.push(keep));
                }
            }
        }
        Ok(())
    }

    /// A value that is the same for all columns and known before the phase.
    fn uniform(&mut self, at: usize) -> Result<TracedValue> {
        let format = format(self.types[at])?;
        if let Some(slot) = self.slot[at] {
            let number = push(Op::Scalar(slot));
            return Ok(match format {
                Format::Bool => TracedValue::Mask(number.differs(Traced::splat(0.0))),
                _ => TracedValue::Vector(number),
            });
        }
        match (&self.plan.planned[at].action, format) {
            (Action::Load { input, pattern, .. }, Format::F32) => {
                let stream =
                    self.new_stream(StreamLocation::Input { input: *input, pattern: *pattern }, Format::F32);
                Ok(TracedValue::Vector(push(Op::First(stream))))
            }
            (Action::Constant(bytes), format) if format.is_float() => {
                let [a, b, c, d, ..] = *bytes;
                Ok(TracedValue::Vector(push(Op::Constant(u32::from_ne_bytes([a, b, c, d])))))
            }
            _ => Err(JitError::Unsupported),
        }
    }

    fn operands(&mut self, at: usize, values: &[Option<TracedValue>]) -> Result<Vec<TracedValue>> {
        let operands: Vec<usize> = self.insts[at].operands().map(|operand| operand.0).collect();
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
    fn columns(
        &mut self,
        phase: usize,
        last: usize,
        needed: &[bool],
        reductions: &mut Vec<ReducedOutput>,
    ) -> Result<()> {
        let mut values: Vec<Option<TracedValue>> = vec![None; self.insts.len()];
        for at in (0..self.insts.len()).filter(|&at| needed[at]) {
            let kept = self.kept[at].filter(|_| self.pass[at] < phase);
            let value = match (kept, &self.plan.planned[at].action) {
                (Some(stream), _) => TracedValue::Vector(push(Op::Load(stream, Format::F32))),
                (None, Action::Load { input, pattern, .. }) => {
                    let location = self.input(*input, *pattern);
                    self.load(at, location)?
                }
                (None, Action::Tile { .. }) => self.load(at, StreamLocation::Tile)?,
                _ => {
                    let operands = self.operands(at, &values)?;
                    let divisor = self.divisor(at, &operands);
                    translate(&self.insts[at], self.types[at], self.first_type(at), &operands, divisor)?
                }
            };
            values[at] = Some(value);
            if let Some(stream) = self.kept[at].filter(|_| self.pass[at] == phase) {
                let effect = Effect::Store { stream, format: Format::F32, value: value.value(), kept: true };
                with_body(|body| body.effects.push(effect));
            }
        }
        for (at, inst) in self.insts.iter().enumerate() {
            let Inst::Reduce(reduction, operand) = inst else { continue };
            if self.pass[at] != phase + 1 {
                continue;
            }
            let kind = match (reduction, self.types[at]) {
                (ReduceOp::Sum, ElementType::F32) => ReduceKind::Sum,
                (ReduceOp::Maximum, ElementType::F32 | ElementType::F16 | ElementType::BF16) => {
                    ReduceKind::Maximum
                }
                (ReduceOp::Minimum, ElementType::F32 | ElementType::F16 | ElementType::BF16) => {
                    ReduceKind::Minimum
                }
                _ => return Err(JitError::Unsupported),
            };
            let slot = self.slot[at].ok_or(JitError::Unsupported)?;
            reductions.push(ReducedOutput { kind, slot });
            let value = values[operand.0].ok_or(JitError::Unsupported)?.vector()?.0;
            let effect = Effect::Reduce { reduction: reductions.len() - 1, value };
            with_body(|body| body.effects.push(effect));
        }
        if phase == last {
            self.stores(&values)?;
        }
        Ok(())
    }

    /// Where the elements of an input with columns are read.
    fn input(&mut self, input: usize, pattern: usize) -> StreamLocation {
        if self.plan.layout.patterns[pattern].columns.last() == Some(&1) {
            return StreamLocation::Input { input, pattern };
        }
        let mut places = self.lowered.streams.iter().map(|stream| stream.location);
        let same = |location: &StreamLocation| matches!(location, StreamLocation::TransposedInput { input: i, pattern: w, .. } if (*i, *w) == (input, pattern));
        places.find(same).unwrap_or_else(|| {
            self.lowered.blocks += 1;
            StreamLocation::TransposedInput { input, pattern, block: self.lowered.blocks - 1 }
        })
    }

    fn load(&mut self, at: usize, location: StreamLocation) -> Result<TracedValue> {
        let format = format(self.types[at])?;
        let stream = self.new_stream(location, format);
        let loaded = push(Op::Load(stream, format));
        Ok(if format == Format::Bool {
            TracedValue::Mask(TracedMask(loaded.0))
        } else {
            TracedValue::Vector(loaded)
        })
    }

    /// The constants of a division by a value that does not vary with columns.
    fn divisor(&mut self, at: usize, operands: &[TracedValue]) -> Option<Divisor> {
        let Inst::Binary(Function::Divide, _, number) = self.insts[at] else { return None };
        let first = self.divisors[number.0]?;
        let [reciprocal, range, zero] = [0, 1, 2].map(|more| push(Op::Scalar(first + more)).0);
        Some(Divisor { number: operands.get(1)?.value(), reciprocal, range, zero })
    }

    /// The outputs that have columns are written.
    fn stores(&mut self, values: &[Option<TracedValue>]) -> Result<()> {
        let plan = self.plan;
        for store in &plan.stores {
            let format = format(self.types[store.value])?;
            let location = match store.target {
                StoreTarget::Tile => StreamLocation::Tile,
                StoreTarget::Memory { output, pattern } => {
                    let pattern_of = &plan.layout.patterns[pattern];
                    if !pattern_of.kind.rows && plan.layout.row_count > 1 {
                        return Err(JitError::Unsupported);
                    }
                    match pattern_of.columns.last() {
                        Some(1) => StreamLocation::Output { output, pattern },
                        Some(0) if !self.varies[store.value] && plan.layout.columns.len() == 1 => continue,
                        _ if can_transpose(plan, pattern, self.types[store.value]) => {
                            self.lowered.blocks += 1;
                            StreamLocation::TransposedOutput {
                                output,
                                pattern,
                                block: self.lowered.blocks - 1,
                            }
                        }
                        _ => return Err(JitError::Unsupported),
                    }
                }
            };
            let value = match values[store.value] {
                Some(value) => value,
                None => self.uniform(store.value)?,
            };
            let stream = self.new_stream(location, format);
            let effect = Effect::Store { stream, format, value: value.value(), kept: false };
            with_body(|body| body.effects.push(effect));
        }
        Ok(())
    }

    /// The outputs that have a value for each row alone are written.
    fn after(&mut self) -> Result<()> {
        let plan = self.plan;
        for store in &plan.stores {
            let StoreTarget::Memory { output, pattern } = store.target else { continue };
            if plan.layout.patterns[pattern].columns.last() != Some(&0) {
                continue;
            }
            if self.types[store.value] != ElementType::F32 {
                return Err(JitError::Unsupported);
            }
            let value = self.uniform(store.value)?.vector()?.0;
            let stream = self.new_stream(StreamLocation::Output { output, pattern }, Format::F32);
            with_body(|body| body.effects.push(Effect::StoreFirst { stream, value }));
        }
        Ok(())
    }
}

/// Whether the rows of an access are contiguous in memory, so that blocks can be transposed.
fn can_transpose(plan: &LoopPlan, pattern: usize, element: ElementType) -> bool {
    let pattern = &plan.layout.patterns[pattern];
    let columns = pattern.columns.last().is_some_and(|&stride| stride > 1);
    element == ElementType::F32
        && plan.layout.columns.len() == 1
        && columns
        && pattern.rows.last() == Some(&1)
}

/// What a function records, unless it fails.
fn recorded(f: impl FnOnce() -> Result<()>) -> Result<Body> {
    let (body, outcome) = record(f).ok_or(JitError::Unsupported)?;
    outcome.map(|()| body)
}

/// About how many operations a step is.
fn cost(inst: &Inst) -> usize {
    match inst {
        Inst::Unary(Function::Abs | Function::Negate | Function::Not, _) => 1,
        Inst::Unary(..) => 20,
        Inst::Binary(Function::Divide, ..) => 8,
        _ => 1,
    }
}
