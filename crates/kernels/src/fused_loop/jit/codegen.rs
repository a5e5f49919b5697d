//! Code generation: a loop over rows, with one loop over columns for each phase.

use std::collections::HashMap;

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::abi::{LANES, STREAMS};
use super::assembler::{Assembler, Label, Lanes, Source};
use super::emit::{
    self, Accumulators, CHUNK, COLUMN, EmitContext, FRAME, PAIRED_STREAMS, ReduceKind, TAIL_MASK,
};
use super::error::JitError;
use super::frame;
use super::op::{Body, Op, Value};
use super::phases::{Lowered, Phase, StreamLocation};
use super::registers::{RegisterAllocator, SubRegister, sub_register};

/// Remaining rows, columns of a row, and a temporary.
const ROWS: Register = Register::RSI;
const COLUMNS: Register = Register::RDX;
const TEMP: Register = Register::RCX;

/// Callee-saved registers.
const SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

type Result<T> = std::result::Result<T, JitError>;

/// The bytes of the code, and where in them it begins.
pub(super) fn compile(lowered: &Lowered, streaming: bool) -> Result<(Vec<u8>, usize)> {
    let mut assembler = Assembler::default();
    let code = &mut assembler;
    for register in SAVED {
        code.add(Instruction::with1(Code::Push_r64, register)?);
    }
    let streams = lowered.streams.len();
    for (at, &register) in STREAMS[..streams].iter().enumerate() {
        let location = MemoryOperand::with_base_displ(FRAME, 8 * at as i64);
        code.add(Instruction::with2(Code::Mov_r64_rm64, register, location)?);
    }
    let ways: Vec<PhaseEmitter<'_>> = lowered
        .phases
        .iter()
        .map(|phase| PhaseEmitter::new(lowered, phase, streaming))
        .collect::<Result<_>>()?;
    // With a single phase, constants are loaded once for all rows.
    let alone = ways.len() == 1;
    if alone {
        ways[0].load_pinned(code, |op| matches!(op, Op::Constant(_)))?;
    }
    rows(code, lowered, &ways, alone)?;
    for register in SAVED.into_iter().rev() {
        code.add(Instruction::with1(Code::Pop_r64, register)?);
    }
    if streaming {
        // Orders non-temporal stores before the completion is signalled.
        code.add(Instruction::with(Code::Sfence));
    }
    code.add(Instruction::with(Code::VEX_Vzeroupper));
    code.add(Instruction::with(Code::Retnq));
    Ok(assembler.finish()?)
}

/// The loop over the rows.
fn rows(
    code: &mut Assembler,
    lowered: &Lowered,
    phases: &[PhaseEmitter<'_>],
    constants_loaded: bool,
) -> Result<()> {
    let (next_row, done) = (code.label(), code.label());
    code.bind(next_row);
    if let [only] = phases
        && only.pairs()
    {
        only.pair(code, next_row, done)?;
    }
    for phase in phases {
        phase.emit(code, constants_loaded)?;
    }
    for (at, &register) in STREAMS[..lowered.streams.len()].iter().enumerate() {
        let stride = MemoryOperand::with_base_displ(FRAME, (frame::STRIDES + 8 * at) as i64);
        code.add(Instruction::with2(Code::Add_r64_rm64, register, stride)?);
    }
    code.add(Instruction::with1(Code::Dec_rm64, ROWS)?);
    code.jump(Code::Jne_rel32_64, next_row);
    code.bind(done);
    Ok(())
}

/// A phase with its registers chosen.
struct PhaseEmitter<'a> {
    lowered: &'a Lowered,
    phase: &'a Phase,
    reductions: Vec<Accumulators>,
    pinned: HashMap<Value, Register>,
    /// Registers for everything else.
    free: RegisterAllocator,
    /// How many vectors are computed at a time.
    group: usize,
    streaming: bool,
}

impl<'a> PhaseEmitter<'a> {
    fn new(lowered: &'a Lowered, phase: &'a Phase, streaming: bool) -> Result<Self> {
        let mut free = RegisterAllocator::all();
        let mut reductions = Vec::new();
        for reduction in &phase.reductions {
            let mut vectors = [Register::None; CHUNK];
            for vector in &mut vectors {
                *vector = free.vector()?;
            }
            let unordered = if reduction.kind == ReduceKind::Sum { None } else { Some(free.mask()?) };
            reductions.push(Accumulators { kind: reduction.kind, vectors, unordered });
        }
        let mut emitter =
            Self { lowered, phase, reductions, pinned: HashMap::new(), free, group: 1, streaming };
        let columns = &phase.columns;
        let needed = columns.needed();
        // A mask that does not vary with columns is computed once per row, for few of them, to keep registers free.
        let of_row =
            (0..columns.ops.len()).filter(|&at| needed[at] && is_row_mask(columns, at)).take(MAX_ROW_MASKS);
        for value in of_row.map(|at| at as Value).collect::<Vec<_>>() {
            let register = emitter.free.mask()?;
            emitter.pinned.insert(value, register);
        }
        // The largest group that fits into the registers.
        let spare = [CHUNK, CHUNK / 2, 1].into_iter().find_map(|group| {
            let mut registers = emitter.free.clone();
            let context = emitter.context(&emitter.pinned, false);
            let tried = emit::body(&mut Assembler::default(), &mut registers, context, CHUNK, group);
            tried.ok().map(|()| (group, registers.spare()))
        });
        let (group, spare) = spare.ok_or(JitError::OutOfRegisters)?;
        emitter.group = group;
        for value in most_used(&phase.columns).into_iter().take(spare) {
            let register = emitter.free.vector()?;
            emitter.pinned.insert(value, register);
        }
        Ok(emitter)
    }

    fn context<'b>(&'b self, pinned: &'b HashMap<Value, Register>, masked: bool) -> EmitContext<'b> {
        let (body, streaming) = (&self.phase.columns, self.streaming);
        EmitContext { body, pinned, reductions: &self.reductions, masked, paired: false, streaming }
    }

    /// Whether rows of half a chunk, as blocks of AMX GEMMs have them, can be computed in pairs: they need nothing per
    /// row but pointers.
    fn pairs(&self) -> bool {
        let Phase { scalars, columns, reductions, after, .. } = self.phase;
        let streams = &self.lowered.streams;
        let of_row = |op: &Op| matches!(op, Op::First(_) | Op::Scalar(_));
        let mut pinned = self.pinned.keys().map(|&value| columns.op(value));
        streams.iter().any(|stream| stream.location == StreamLocation::Tile)
            && streams.len() <= PAIRED_STREAMS
            && scalars.effects.is_empty()
            && after.effects.is_empty()
            && reductions.is_empty()
            && !columns.ops.iter().any(of_row)
            && pinned.all(|op| matches!(op, Op::Constant(_)))
    }

    /// Computes two rows at a time if they have half a chunk of columns: a single row has too few vectors to hide
    /// latencies.
    fn pair(&self, code: &mut Assembler, next: Label, done: Label) -> Result<()> {
        let alone = code.label();
        code.add(Instruction::with2(Code::Cmp_rm64_imm8, COLUMNS, (CHUNK / 2 * LANES) as i32)?);
        code.jump(Code::Jne_rel32_64, alone);
        code.add(Instruction::with2(Code::Cmp_rm64_imm8, ROWS, 2)?);
        code.jump(Code::Jb_rel32_64, alone);
        let rows = || (0..self.lowered.streams.len()).map(|at| (at, STREAMS[at], emit::next_row(at)));
        let stride = |at: usize| MemoryOperand::with_base_displ(FRAME, (frame::STRIDES + 8 * at) as i64);
        let after = |code: &mut Assembler, at: usize, to: Register, from: Register| -> Result<()> {
            code.add(Instruction::with2(Code::Mov_r64_rm64, to, from)?);
            code.add(Instruction::with2(Code::Add_r64_rm64, to, stride(at))?);
            Ok(())
        };
        for (at, row, next) in rows() {
            after(code, at, next, row)?;
        }
        for &at in &self.phase.prefetched_in_pairs {
            code.add(Instruction::with2(Code::Mov_r64_rm64, TEMP, stride(at))?);
            let bytes = CHUNK / 2 * LANES * self.lowered.streams[at].width;
            for row in [STREAMS[at], emit::next_row(at)] {
                prefetch(code, row, (TEMP, PREFETCH_PAIRS * 2), bytes)?;
            }
        }
        code.add(Instruction::with2(Code::Xor_r32_rm32, Register::EAX, Register::EAX)?);
        let context = EmitContext { paired: true, ..self.context(&self.pinned, false) };
        emit::body(code, &mut self.free.clone(), context, CHUNK, self.group)?;
        for (at, row, next) in rows() {
            after(code, at, row, next)?;
        }
        code.add(Instruction::with2(Code::Sub_rm64_imm8, ROWS, 2)?);
        code.jump(Code::Jne_rel32_64, next);
        code.jump(Code::Jmp_rel32_64, done);
        code.bind(alone);
        Ok(())
    }

    /// Loads the uniform values that are kept in registers.
    fn load_pinned(&self, code: &mut Assembler, wanted: impl Fn(&Op) -> bool) -> Result<()> {
        for (&value, &register) in &self.pinned {
            let op = *self.phase.columns.op(value);
            if !wanted(&op) {
                continue;
            }
            if let Op::Compare(predicate, a, b) = op {
                let temporary = self.free.clone().vector()?;
                let [a, b] = [a, b].map(|operand| *self.phase.columns.op(operand));
                let from = Source::Memory(emit::uniform(code, a, false));
                code.one(Code::EVEX_Vbroadcastss_zmm_k1z_xmmm32, temporary, from, Lanes::All)?;
                let other = Source::Memory(emit::uniform(code, b, true));
                let by = emit::predicate(predicate);
                let compare = Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;
                code.two_with(compare, register, temporary, other, by, Lanes::All)?;
            } else {
                let from = Source::Memory(emit::uniform(code, op, false));
                code.one(Code::EVEX_Vbroadcastss_zmm_k1z_xmmm32, register, from, Lanes::All)?;
            }
        }
        Ok(())
    }

    fn emit(&self, code: &mut Assembler, constants_loaded: bool) -> Result<()> {
        // Per-row scalars use no pinned registers.
        single(code, &mut self.free.clone(), &self.phase.scalars)?;
        if !self.phase.columns.effects.is_empty() {
            self.columns(code, constants_loaded)?;
        }
        single(code, &mut self.free.clone(), &self.phase.after)
    }

    /// Prefetches the columns of an iteration in the next row of a stream.
    fn prefetch_next_row(&self, code: &mut Assembler, stream: usize) -> Result<()> {
        let stride = MemoryOperand::with_base_displ(FRAME, (frame::STRIDES + 8 * stream) as i64);
        code.add(Instruction::with2(Code::Mov_r64_rm64, TEMP, stride)?);
        code.add(Instruction::with2(Code::Add_r64_rm64, TEMP, STREAMS[stream])?);
        let width = self.lowered.streams[stream].width;
        prefetch(code, TEMP, (COLUMN, width as u32), CHUNK * LANES * width)
    }

    /// Half a chunk, if that many columns are left: rows of blocks of AMX GEMMs are no longer, and masked vectors are computed one by one.
    fn half_chunk(&self, code: &mut Assembler) -> Result<()> {
        const HALF: usize = CHUNK / 2;
        let shorter = code.label();
        compare_end(code, (HALF * LANES) as i64)?;
        code.jump(Code::Ja_rel32_64, shorter);
        let context = self.context(&self.pinned, false);
        emit::body(code, &mut self.free.clone(), context, HALF, self.group.min(HALF))?;
        code.add(Instruction::with2(Code::Add_rm64_imm8, COLUMN, (HALF * LANES) as i32)?);
        code.bind(shorter);
        Ok(())
    }

    /// The loop over the columns.
    fn columns(&self, code: &mut Assembler, constants_loaded: bool) -> Result<()> {
        self.load_pinned(code, |op| !(constants_loaded && matches!(op, Op::Constant(_))))?;
        for reduction in &self.reductions {
            start(code, reduction)?;
        }
        let (chunks, next, rest, last, done) =
            (code.label(), (CHUNK * LANES) as i64, code.label(), code.label(), code.label());
        code.add(Instruction::with2(Code::Xor_r32_rm32, Register::EAX, Register::EAX)?);
        compare_end(code, next)?;
        code.jump(Code::Ja_rel32_64, rest);
        code.bind(chunks);
        for &stream in &self.phase.prefetched {
            self.prefetch_next_row(code, stream)?;
        }
        emit::body(code, &mut self.free.clone(), self.context(&self.pinned, false), CHUNK, self.group)?;
        code.add(Instruction::with2(Code::Add_rm64_imm8, COLUMN, next as i32)?);
        compare_end(code, next)?;
        code.jump(Code::Jbe_rel32_64, chunks);
        code.bind(rest);
        if self.reductions.iter().all(|reduction| reduction.kind != ReduceKind::Sum) {
            self.half_chunk(code)?;
        }
        code.add(Instruction::with2(Code::Cmp_r64_rm64, COLUMN, COLUMNS)?);
        code.jump(Code::Jae_rel32_64, done);
        code.bind(last);
        // The mask of the remaining columns.
        code.add(Instruction::with2(Code::Mov_r64_rm64, TEMP, COLUMNS)?);
        code.add(Instruction::with2(Code::Sub_r64_rm64, TEMP, COLUMN)?);
        let ones = code.constant(u32::MAX, false);
        code.add(Instruction::with3(Code::VEX_Bzhi_r32_rm32_r32, Register::ECX, ones, Register::ECX)?);
        code.add(Instruction::with2(Code::VEX_Kmovw_kr_r32, TAIL_MASK, Register::ECX)?);
        emit::body(code, &mut self.free.clone(), self.context(&self.pinned, true), 1, 1)?;
        code.add(Instruction::with2(Code::Add_rm64_imm8, COLUMN, LANES as i32)?);
        code.add(Instruction::with2(Code::Cmp_r64_rm64, COLUMN, COLUMNS)?);
        code.jump(Code::Jb_rel32_64, last);
        code.bind(done);
        for (reduction, of) in self.reductions.iter().zip(&self.phase.reductions) {
            finish(code, &mut self.free.clone(), reduction, of.slot)?;
        }
        Ok(())
    }
}

/// Compares the column behind so many others with the end.
fn compare_end(code: &mut Assembler, columns: i64) -> Result<()> {
    let after = MemoryOperand::with_base_displ(COLUMN, columns);
    code.add(Instruction::with2(Code::Lea_r64_m, TEMP, after)?);
    code.add(Instruction::with2(Code::Cmp_r64_rm64, TEMP, COLUMNS)?);
    Ok(())
}

/// Prefetches `bytes` bytes at a base plus a scaled index.
fn prefetch(code: &mut Assembler, from: Register, index: (Register, u32), bytes: usize) -> Result<()> {
    const LINE: usize = 64;
    for at in (0..bytes).step_by(LINE) {
        let line = MemoryOperand::with_base_index_scale_displ_size(from, index.0, index.1, at as i64, 1);
        code.add(Instruction::with1(Code::Prefetcht0_m8, line)?);
    }
    Ok(())
}

/// Prefetch distance, in pairs of rows.
const PREFETCH_PAIRS: u32 = 2;

/// Maximum per-row masks in registers.
const MAX_ROW_MASKS: usize = 1;

/// Whether an operation is a mask that does not vary with columns.
fn is_row_mask(body: &Body, at: usize) -> bool {
    let uniform = |value: Value| body.op(value).is_uniform();
    matches!(body.ops[at], Op::Compare(_, a, b) if uniform(a) && uniform(b))
}

/// Per-row scalars: computed in all lanes of one vector.
fn single(code: &mut Assembler, registers: &mut RegisterAllocator, body: &Body) -> Result<()> {
    let pinned = HashMap::new();
    let context = EmitContext {
        body,
        pinned: &pinned,
        reductions: &[],
        masked: false,
        paired: false,
        streaming: false,
    };
    emit::body(code, registers, context, 1, 1)
}

/// The uniform values that are used most, first.
fn most_used(body: &Body) -> Vec<Value> {
    let needed = body.needed();
    let mut counts: HashMap<Value, usize> = HashMap::new();
    for (op, _) in body.ops.iter().zip(&needed).filter(|(_, needed)| **needed) {
        for operand in op.operands().filter(|&operand| body.op(operand).is_uniform()) {
            *counts.entry(operand).or_default() += 1;
        }
    }
    let mut values: Vec<(Value, usize)> = counts.into_iter().collect();
    values.sort_by_key(|&(value, count)| (std::cmp::Reverse(count), value));
    values.into_iter().map(|(value, _)| value).collect()
}

/// Initializes accumulators.
fn start(code: &mut Assembler, reduction: &Accumulators) -> Result<()> {
    for &vector in &reduction.vectors {
        let identity = match reduction.kind {
            ReduceKind::Sum => 0f32,
            ReduceKind::Maximum => f32::NEG_INFINITY,
            ReduceKind::Minimum => f32::INFINITY,
        };
        let from = Source::Memory(code.constant(identity.to_bits(), false));
        code.one(Code::EVEX_Vbroadcastss_zmm_k1z_xmmm32, vector, from, Lanes::All)?;
    }
    if let Some(unordered) = reduction.unordered {
        code.two(Code::VEX_Kxorw_kr_kr_kr, unordered, unordered, unordered, Lanes::All)?;
    }
    Ok(())
}

/// Reduces accumulators to a scalar of the frame: halves onto halves, as the interpreter does.
fn finish(
    code: &mut Assembler,
    registers: &mut RegisterAllocator,
    reduction: &Accumulators,
    slot: usize,
) -> Result<()> {
    let [a, b, c, d] = reduction.vectors;
    let sum = reduction.kind == ReduceKind::Sum;
    let choice = reduction.kind.choice();
    let whole = |code: &mut Assembler, to: Register, other: Register| -> Result<()> {
        if sum {
            code.two(Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er, to, to, other, Lanes::All)?;
        } else {
            let by = Code::EVEX_Vrangeps_zmm_k1z_zmm_zmmm512b32_imm8_sae;
            code.two_with(by, to, to, other, choice, Lanes::All)?;
        }
        Ok(())
    };
    whole(code, a, c)?;
    whole(code, b, d)?;
    whole(code, a, b)?;
    let other = registers.vector()?;
    let half = |register| sub_register(register, SubRegister::Ymm);
    let quarter = |register| sub_register(register, SubRegister::Xmm);
    code.one_with(Code::EVEX_Vextractf64x4_ymmm256_k1z_zmm_imm8, half(other), a, 1)?;
    if sum {
        code.two(Code::EVEX_Vaddps_ymm_k1z_ymm_ymmm256b32, half(a), half(a), half(other), Lanes::All)?;
    } else {
        let by = Code::EVEX_Vrangeps_ymm_k1z_ymm_ymmm256b32_imm8;
        code.two_with(by, half(a), half(a), half(other), choice, Lanes::All)?;
    }
    let onto_quarter = |code: &mut Assembler| -> Result<()> {
        let (to, other) = (quarter(a), quarter(other));
        if sum {
            code.two(Code::EVEX_Vaddps_xmm_k1z_xmm_xmmm128b32, to, to, other, Lanes::All)?;
        } else {
            let by = Code::EVEX_Vrangeps_xmm_k1z_xmm_xmmm128b32_imm8;
            code.two_with(by, to, to, other, choice, Lanes::All)?;
        }
        Ok(())
    };
    code.one_with(Code::EVEX_Vextractf32x4_xmmm128_k1z_ymm_imm8, quarter(other), half(a), 1)?;
    onto_quarter(code)?;
    // The third and fourth onto the first and second, then the second onto the first.
    for order in [0b01_00_11_10, 0b00_00_00_01] {
        code.one_with(Code::EVEX_Vpermilps_xmm_k1z_xmmm128b32_imm8, quarter(other), quarter(a), order)?;
        onto_quarter(code)?;
    }
    let location = emit::scalar(slot, false);
    code.store(Code::EVEX_Vmovss_m32_k1_xmm, location, quarter(a), Lanes::All)?;
    if let Some(unordered) = reduction.unordered {
        let ordered = code.label();
        code.one(Code::VEX_Kortestw_kr_kr, unordered, unordered, Lanes::All)?;
        code.jump(Code::Je_rel32_64, ordered);
        code.add(Instruction::with2(Code::Mov_rm32_imm32, location, f32::NAN.to_bits() as i32)?);
        code.bind(ordered);
    }
    Ok(())
}
