//! Instructions for the operations of a body, for some vectors at a time.

mod arithmetic;
mod effects;
mod masks;

use std::collections::HashMap;

use iced_x86::{Code, MemoryOperand, Register};

use super::abi::{LANES, STREAMS};
use super::assembler::{Assembler, Lanes, Source};
use super::error::JitError;
use super::op::{Body, Effect, Format, Op, Predicate, Value};
use super::registers::RegisterAllocator;

/// Vectors of a chunk: one iteration of a column loop.
pub(super) const CHUNK: usize = 4;

/// The index of the first column of an iteration.
pub(super) const COLUMN: Register = Register::RAX;

/// The pointer to the frame.
pub(super) const FRAME: Register = Register::RDI;

/// The mask of the columns of the last vector.
pub(super) const TAIL_MASK: Register = Register::K7;

/// Streams with a register for each of two rows.
pub(super) const PAIRED_STREAMS: usize = STREAMS.len() / 2;

/// The pointer of the next row of a stream, where rows are computed in pairs.
pub(super) fn next_row(stream: usize) -> Register {
    STREAMS[PAIRED_STREAMS + stream]
}

/// The lower bound of the safe range of divisions, as bits.
pub(super) const SAFE_MIN_BITS: u32 = 0x2180_0000;

/// The accumulators of a reduction.
#[derive(Debug, Clone)]
pub(super) struct Accumulators {
    pub(super) kind: ReduceKind,
    pub(super) vectors: [Register; CHUNK],
    /// The mask of NaN, where the reduction itself drops it.
    pub(super) unordered: Option<Register>,
}

/// A reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReduceKind {
    Sum,
    Maximum,
    Minimum,
}

impl ReduceKind {
    /// The immediate of `vrangeps`: by value, zeros by sign.
    pub(super) fn choice(self) -> u8 {
        if self == Self::Maximum { 0b0101 } else { 0b0100 }
    }
}

/// The context of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct EmitContext<'a> {
    pub(super) body: &'a Body,
    /// Uniform values that are kept in registers.
    pub(super) pinned: &'a HashMap<Value, Register>,
    pub(super) reductions: &'a [Accumulators],
    /// Whether only the lanes in [`TAIL_MASK`] are columns.
    pub(super) masked: bool,
    /// Whether the second half of a chunk's vectors are the first columns of the next row: see [`next_row`].
    pub(super) paired: bool,
    /// Whether to use non-temporal stores.
    pub(super) streaming: bool,
}

/// What is known of the uses of a body's values.
struct Uses {
    needed: Vec<bool>,
    /// The operation that uses a value last; as many as there are operations if an effect does.
    last: Vec<usize>,
    /// Values that are computed where they are used.
    deferred: Vec<bool>,
    /// Values that are only written to memory as bf16.
    narrowed: Vec<bool>,
}

impl Uses {
    fn new(context: &EmitContext<'_>) -> Self {
        let Body { ops, effects, .. } = context.body;
        let needed = context.body.needed();
        let mut counts = vec![0usize; ops.len()];
        let mut chosen_by = vec![false; ops.len()];
        for (op, _) in ops.iter().zip(&needed).filter(|(_, needed)| **needed) {
            op.operands().for_each(|operand| counts[operand as usize] += 1);
            if let Op::Select(mask, ..) | Op::ScaleWhere(mask, ..) = op {
                chosen_by[*mask as usize] = true;
            }
        }
        let mut narrowed: Vec<bool> = counts.iter().map(|&count| count == 0).collect();
        for effect in effects {
            let narrow = matches!(effect, Effect::Store { format: Format::Bf16, .. });
            narrowed[effect.value() as usize] &= narrow;
        }
        // Effects need their value in a register.
        effects.iter().for_each(|effect| counts[effect.value() as usize] += 2);
        let deferred: Vec<bool> = ops
            .iter()
            .enumerate()
            .map(|(at, op)| match op {
                Op::Constant(_) | Op::Scalar(_) | Op::First(_) => true,
                Op::Load(_, Format::F32) => counts[at] == 1 && !context.masked,
                Op::Compare(..) => {
                    counts[at] == 1 && chosen_by[at] || context.pinned.contains_key(&(at as Value))
                }
                _ => false,
            })
            .collect();
        let mut last: Vec<usize> = vec![0; ops.len()];
        for (at, op) in ops.iter().enumerate().filter(|&(at, _)| needed[at] && !deferred[at]) {
            for operand in op.operands() {
                last[operand as usize] = at;
                if deferred[operand as usize] {
                    ops[operand as usize].operands().for_each(|below| last[below as usize] = at);
                }
            }
        }
        effects.iter().for_each(|effect| last[effect.value() as usize] = ops.len());
        Self { needed, last, deferred, narrowed }
    }
}

/// A group of vectors whose operations are interleaved.
pub(super) struct VectorGroup<'a> {
    context: EmitContext<'a>,
    uses: Uses,
    assembler: &'a mut Assembler,
    registers: &'a mut RegisterAllocator,
    /// The register of each value, for each vector of the group.
    held: Vec<[Option<Register>; CHUNK]>,
    /// The first vector of the group, and how many there are.
    first: usize,
    count: usize,
}

type Result<T> = std::result::Result<T, JitError>;

/// Emits a body for that many vectors, in groups.
pub(super) fn body(
    assembler: &mut Assembler,
    registers: &mut RegisterAllocator,
    context: EmitContext<'_>,
    vectors: usize,
    group: usize,
) -> Result<()> {
    for first in (0..vectors).step_by(group) {
        let uses = Uses::new(&context);
        let held = vec![[None; CHUNK]; context.body.ops.len()];
        let count = group.min(vectors - first);
        let (assembler, registers) = (&mut *assembler, &mut *registers);
        VectorGroup { context, uses, assembler, registers, held, first, count }.emit()?;
    }
    Ok(())
}

impl VectorGroup<'_> {
    fn emit(&mut self) -> Result<()> {
        let count = self.count;
        for at in 0..self.context.body.ops.len() {
            if !self.uses.needed[at] || self.uses.deferred[at] {
                continue;
            }
            for vector in 0..count {
                let register = self.op(at, vector)?;
                self.held[at][vector] = Some(register);
            }
        }
        for effect in &self.context.body.effects {
            for vector in 0..count {
                self.effect(effect, vector)?;
            }
        }
        // Values stay live across effects, since several may share one.
        for held in &mut self.held {
            held.iter_mut().filter_map(Option::take).for_each(|register| self.registers.free(register));
        }
        Ok(())
    }

    /// The registers of values that the operation uses last become free.
    fn release(&mut self, at: usize, vector: usize) {
        let ops = &self.context.body.ops;
        for operand in ops[at].operands() {
            let below = self.uses.deferred[operand as usize].then(|| ops[operand as usize].operands());
            for value in std::iter::once(operand).chain(below.into_iter().flatten()) {
                if self.uses.last[value as usize] == at
                    && let Some(register) = self.held[value as usize][vector].take()
                {
                    self.registers.free(register);
                }
            }
        }
    }

    /// A register for a result, possibly that of an operand that is dead.
    fn result(&mut self, at: usize, vector: usize) -> Result<Register> {
        self.release(at, vector);
        self.registers.vector()
    }

    /// The same for an operand from [`VectorGroup::register`]: a temporary is reused for the result.
    fn result_of(&mut self, at: usize, (from, loaded): (Register, bool), vector: usize) -> Result<Register> {
        if !loaded {
            return self.result(at, vector);
        }
        self.release(at, vector);
        Ok(from)
    }

    /// The address of the elements of a stream.
    fn address(&self, stream: usize, format: Format, vector: usize) -> MemoryOperand {
        let bytes = format.bytes();
        let (row, vector) = match self.first + vector {
            of_next if self.context.paired && of_next >= CHUNK / 2 => (next_row(stream), of_next - CHUNK / 2),
            vector => (STREAMS[stream], vector),
        };
        let displacement = (vector * LANES * bytes) as i64;
        MemoryOperand::new(row, COLUMN, bytes as u32, displacement, 1, false, Register::None)
    }

    /// A value as an operand.
    fn source(&mut self, value: Value, vector: usize) -> Source {
        if let Some(register) = self.held[value as usize][vector] {
            return register.into();
        }
        if let Some(&register) = self.context.pinned.get(&value) {
            return register.into();
        }
        Source::Memory(match *self.context.body.op(value) {
            Op::Load(stream, format) => self.address(stream, format, vector),
            op => uniform(self.assembler, op, true),
        })
    }

    /// A value in a register: its own or, with `true`, a temporary that the caller frees.
    fn register(&mut self, value: Value, vector: usize) -> Result<(Register, bool)> {
        match self.source(value, vector) {
            Source::Register(register) => Ok((register, false)),
            Source::Memory(_) => {
                let register = self.registers.vector()?;
                self.load(register, value, vector)?;
                Ok((register, true))
            }
        }
    }

    /// Brings a value that is in memory into a register.
    fn load(&mut self, to: Register, value: Value, vector: usize) -> Result<()> {
        match (self.source(value, vector), *self.context.body.op(value)) {
            (Source::Memory(from), Op::Load(..)) => {
                self.assembler.one(
                    Code::EVEX_Vmovups_zmm_k1z_zmmm512,
                    to,
                    Source::Memory(from),
                    Lanes::All,
                )?;
            }
            (Source::Memory(_), op) => {
                let from = uniform(self.assembler, op, false);
                let code = Code::EVEX_Vbroadcastss_zmm_k1z_xmmm32;
                self.assembler.one(code, to, Source::Memory(from), Lanes::All)?;
            }
            (Source::Register(from), _) => {
                self.assembler.one(Code::EVEX_Vmovaps_zmm_k1z_zmmm512, to, from, Lanes::All)?;
            }
        }
        Ok(())
    }

    /// Emits an operation for one vector; returns the register of its value.
    fn op(&mut self, at: usize, vector: usize) -> Result<Register> {
        match self.context.body.ops[at] {
            Op::Constant(_) | Op::Scalar(_) | Op::First(_) => {
                let to = self.registers.vector()?;
                self.load(to, at as Value, vector)?;
                Ok(to)
            }
            Op::Load(stream, format) => self.stream(stream, format, vector),
            Op::Unary(op, x) => self.unary(at, op, x, vector),
            Op::Binary(op, a, b) => self.binary(at, op, a, b, vector),
            Op::MulAdd(a, b, c) => self.mul_add(at, false, [a, b, c], vector),
            Op::NegMulAdd(a, b, c) => self.mul_add(at, true, [a, b, c], vector),
            Op::OrMasked(a, b, c) => self.or_masked(at, [a, b, c], vector),
            Op::ThroughBf16(x) => self.round_to_bf16(at, x, vector),
            Op::Lookup(table, x) => self.lookup(at, &table, x, vector),
            Op::Compare(predicate, a, b) => {
                let mask = self.compare(predicate, a, b, vector)?;
                self.release(at, vector);
                Ok(mask)
            }
            Op::Logic(logic, a, b) => self.logic(at, logic, a, b, vector),
            Op::Not(a) => {
                let from = self.mask(a, vector)?;
                self.release(at, vector);
                let to = self.registers.mask()?;
                self.assembler.one(Code::VEX_Knotw_kr_kr, to, from, Lanes::All)?;
                Ok(to)
            }
            Op::Select(mask, yes, no) => self.select(at, mask, yes, no, vector),
            Op::ScaleWhere(mask, x, exponent) => self.scale_where(at, mask, x, exponent, vector),
            Op::Quotient(x, divisor) => self.quotient(at, x, divisor, vector),
        }
    }

    /// The elements of a stream.
    fn stream(&mut self, stream: usize, format: Format, vector: usize) -> Result<Register> {
        let from = Source::Memory(self.address(stream, format, vector));
        let lanes = if self.context.masked { Lanes::Zeroed(TAIL_MASK) } else { Lanes::All };
        let to = self.registers.vector()?;
        let code = match format {
            Format::F32 | Format::I32 => Code::EVEX_Vmovups_zmm_k1z_zmmm512,
            Format::F16 => Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae,
            Format::Bf16 => Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256,
            Format::Bool | Format::U8 => Code::EVEX_Vpmovzxbd_zmm_k1z_xmmm128,
            Format::I8 => Code::EVEX_Vpmovsxbd_zmm_k1z_xmmm128,
        };
        self.assembler.one(code, to, from, lanes)?;
        match format {
            Format::F32 | Format::F16 | Format::I32 => {}
            Format::I8 | Format::U8 => {
                let from = Source::Register(to);
                self.assembler.one(Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er, to, from, Lanes::All)?;
            }
            Format::Bf16 => self.assembler.one_with(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, to, to, 16)?,
            Format::Bool => {
                let mask = self.registers.mask()?;
                self.assembler.two(Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32, mask, to, to, Lanes::All)?;
                self.registers.free(to);
                return Ok(mask);
            }
        }
        Ok(to)
    }

    /// Reuses the register of a value that is dead after this operation.
    fn take_over(&mut self, at: usize, value: Value, vector: usize) -> Option<Register> {
        let held = &mut self.held[value as usize][vector];
        if self.uses.last[value as usize] == at { held.take() } else { None }
    }
}

/// A scalar of the frame.
pub(super) fn scalar(slot: usize, broadcast: bool) -> MemoryOperand {
    let at = (super::frame::SCALARS + slot * 4) as i64;
    MemoryOperand::with_base_displ_bcst_seg(FRAME, at, broadcast, Register::None)
}

/// The immediate of a comparison.
pub(super) fn predicate(predicate: Predicate) -> u8 {
    match predicate {
        Predicate::Equal => 0x00,
        Predicate::Unordered => 0x03,
        Predicate::Differs => 0x04,
        Predicate::Less => 0x11,
        Predicate::NotLess => 0x15,
        Predicate::LessOrEqual => 0x12,
        Predicate::GreaterOrEqual => 0x1d,
        Predicate::Greater => 0x1e,
    }
}

/// The memory operand of a uniform value.
pub(super) fn uniform(assembler: &mut Assembler, op: Op, broadcast: bool) -> MemoryOperand {
    match op {
        Op::Scalar(slot) => scalar(slot, broadcast),
        Op::First(stream) => {
            MemoryOperand::with_base_displ_bcst_seg(STREAMS[stream], 0, broadcast, Register::None)
        }
        Op::Constant(bits) => assembler.constant(bits, broadcast),
        // Other values are held in registers when they are used.
        _ => assembler.constant(0, broadcast),
    }
}
