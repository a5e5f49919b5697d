//! The code of a program: a loop over rows, in it one loop over columns for each phase.

use std::collections::HashMap;

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::JitError;
use super::assembler::{Assembler, Label, Lanes, Source};
use super::emit::{
    self, Accumulators, CHUNK, COLUMN, FRAME, FoldKind, LANES, LEFT, PAIRED_STREAMS, STREAMS, Way,
};
use super::frame;
use super::lower::{Lowered, Phase, Place};
use super::op::{Body, Op, Value};
use super::registers::{PartOf, Registers, part};

/// Rows that are left, columns of a row, and what is needed for a moment.
const ROWS: Register = Register::RSI;
const COLUMNS: Register = Register::RDX;
const MOMENT: Register = Register::RCX;

/// Registers that belong to the caller.
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
        let place = MemoryOperand::with_base_displ(FRAME, 8 * at as i64);
        code.add(Instruction::with2(Code::Mov_r64_rm64, register, place)?);
    }
    let ways: Vec<Ready<'_>> =
        lowered.phases.iter().map(|phase| Ready::new(lowered, phase, streaming)).collect::<Result<_>>()?;
    // What nothing else overwrites is loaded once for all rows.
    let alone = ways.len() == 1;
    if alone {
        ways[0].load_pinned(code, |op| matches!(op, Op::Constant(_)))?;
    }
    rows(code, lowered, &ways, alone)?;
    for register in SAVED.into_iter().rev() {
        code.add(Instruction::with1(Code::Pop_r64, register)?);
    }
    if streaming {
        // What passes by the caches is otherwise not sure to be seen by whom this thread tells that it is there.
        code.add(Instruction::with(Code::Sfence));
    }
    code.add(Instruction::with(Code::VEX_Vzeroupper));
    code.add(Instruction::with(Code::Retnq));
    Ok(assembler.finish()?)
}

/// The loop over the rows.
fn rows(code: &mut Assembler, lowered: &Lowered, phases: &[Ready<'_>], constants_loaded: bool) -> Result<()> {
    let (next_row, done) = (code.label(), code.label());
    code.place(next_row);
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
    code.place(done);
    Ok(())
}

/// A phase with its registers chosen.
struct Ready<'a> {
    lowered: &'a Lowered,
    phase: &'a Phase,
    folds: Vec<Accumulators>,
    pinned: HashMap<Value, Register>,
    /// Registers for everything else.
    free: Registers,
    /// How many vectors are computed at a time.
    group: usize,
    streaming: bool,
}

impl<'a> Ready<'a> {
    fn new(lowered: &'a Lowered, phase: &'a Phase, streaming: bool) -> Result<Self> {
        let mut free = Registers::all();
        let mut folds = Vec::new();
        for fold in &phase.folds {
            let mut vectors = [Register::None; CHUNK];
            for vector in &mut vectors {
                *vector = free.vector()?;
            }
            let unordered = if fold.kind == FoldKind::Sum { None } else { Some(free.mask()?) };
            folds.push(Accumulators { kind: fold.kind, vectors, unordered });
        }
        let mut ready = Self { lowered, phase, folds, pinned: HashMap::new(), free, group: 1, streaming };
        let columns = &phase.columns;
        let needed = columns.needed();
        // A mask that is the same for all columns is made once; most registers are left for others.
        let of_row =
            (0..columns.ops.len()).filter(|&at| needed[at] && is_of_row(columns, at)).take(MASKS_OF_ROW);
        for value in of_row.map(|at| at as Value).collect::<Vec<_>>() {
            let register = ready.free.mask()?;
            ready.pinned.insert(value, register);
        }
        // As many at a time as there are registers for.
        let spare = [CHUNK, CHUNK / 2, 1].into_iter().find_map(|group| {
            let mut registers = ready.free.clone();
            let way = ready.way(&ready.pinned, false);
            let tried = emit::body(&mut Assembler::default(), &mut registers, way, CHUNK, group);
            tried.ok().map(|()| (group, registers.spare()))
        });
        let (group, spare) = spare.ok_or(JitError::Registers)?;
        ready.group = group;
        for value in most_used(&phase.columns).into_iter().take(spare) {
            let register = ready.free.vector()?;
            ready.pinned.insert(value, register);
        }
        Ok(ready)
    }

    fn way<'b>(&'b self, pinned: &'b HashMap<Value, Register>, masked: bool) -> Way<'b> {
        let (body, streaming) = (&self.phase.columns, self.streaming);
        Way { body, pinned, folds: &self.folds, masked, paired: false, streaming }
    }

    /// Whether rows of half a chunk's columns, as the blocks of products by tiles have them, can be computed in pairs: they
    /// need nothing of their own but where they are.
    fn pairs(&self) -> bool {
        let Phase { scalars, columns, folds, after, .. } = self.phase;
        let streams = &self.lowered.streams;
        let of_row = |op: &Op| matches!(op, Op::First(_) | Op::Scalar(_));
        let mut pinned = self.pinned.keys().map(|&value| columns.op(value));
        streams.iter().any(|stream| stream.place == Place::Tile)
            && streams.len() <= PAIRED_STREAMS
            && scalars.effects.is_empty()
            && after.effects.is_empty()
            && folds.is_empty()
            && !columns.ops.iter().any(of_row)
            && pinned.all(|op| matches!(op, Op::Constant(_)))
    }

    /// Two rows at a time while there are so many, if they have half a chunk's columns: one row alone has too few vectors to
    /// compute something else while an operation takes its time.
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
        for &at in &self.phase.ahead_of_pairs {
            code.add(Instruction::with2(Code::Mov_r64_rm64, MOMENT, stride(at))?);
            let bytes = CHUNK / 2 * LANES * self.lowered.streams[at].width;
            for row in [STREAMS[at], emit::next_row(at)] {
                bring_nearer(code, row, (MOMENT, PAIRS_AHEAD * 2), bytes)?;
            }
        }
        code.add(Instruction::with2(Code::Xor_r32_rm32, Register::EAX, Register::EAX)?);
        let way = Way { paired: true, ..self.way(&self.pinned, false) };
        emit::body(code, &mut self.free.clone(), way, CHUNK, self.group)?;
        for (at, row, next) in rows() {
            after(code, at, row, next)?;
        }
        code.add(Instruction::with2(Code::Sub_rm64_imm8, ROWS, 2)?);
        code.jump(Code::Jne_rel32_64, next);
        code.jump(Code::Jmp_rel32_64, done);
        code.place(alone);
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
        // The numbers of the row use no register that constants stay in.
        single(code, &mut self.free.clone(), &self.phase.scalars)?;
        if !self.phase.columns.effects.is_empty() {
            self.columns(code, constants_loaded)?;
        }
        single(code, &mut self.free.clone(), &self.phase.after)
    }

    /// Asks for the columns of a turn in a stream's next row.
    fn next_row_nearer(&self, code: &mut Assembler, stream: usize) -> Result<()> {
        let stride = MemoryOperand::with_base_displ(FRAME, (frame::STRIDES + 8 * stream) as i64);
        code.add(Instruction::with2(Code::Mov_r64_rm64, MOMENT, stride)?);
        code.add(Instruction::with2(Code::Add_r64_rm64, MOMENT, STREAMS[stream])?);
        let width = self.lowered.streams[stream].width;
        bring_nearer(code, MOMENT, (COLUMN, width as u32), CHUNK * LANES * width)
    }

    /// The loop over the columns.
    fn columns(&self, code: &mut Assembler, constants_loaded: bool) -> Result<()> {
        self.load_pinned(code, |op| !(constants_loaded && matches!(op, Op::Constant(_))))?;
        for fold in &self.folds {
            start(code, fold)?;
        }
        let (chunks, next, rest, last, done) =
            (code.label(), (CHUNK * LANES) as i64, code.label(), code.label(), code.label());
        code.add(Instruction::with2(Code::Xor_r32_rm32, Register::EAX, Register::EAX)?);
        let beyond = |code: &mut Assembler| -> Result<()> {
            let after = MemoryOperand::with_base_displ(COLUMN, next);
            code.add(Instruction::with2(Code::Lea_r64_m, MOMENT, after)?);
            code.add(Instruction::with2(Code::Cmp_r64_rm64, MOMENT, COLUMNS)?);
            Ok(())
        };
        beyond(code)?;
        code.jump(Code::Ja_rel32_64, rest);
        code.place(chunks);
        for &stream in &self.phase.ahead {
            self.next_row_nearer(code, stream)?;
        }
        emit::body(code, &mut self.free.clone(), self.way(&self.pinned, false), CHUNK, self.group)?;
        code.add(Instruction::with2(Code::Add_rm64_imm8, COLUMN, next as i32)?);
        beyond(code)?;
        code.jump(Code::Jbe_rel32_64, chunks);
        code.place(rest);
        code.add(Instruction::with2(Code::Cmp_r64_rm64, COLUMN, COLUMNS)?);
        code.jump(Code::Jae_rel32_64, done);
        code.place(last);
        // As many ones as columns are left, or all.
        code.add(Instruction::with2(Code::Mov_r64_rm64, MOMENT, COLUMNS)?);
        code.add(Instruction::with2(Code::Sub_r64_rm64, MOMENT, COLUMN)?);
        let ones = code.constant(u32::MAX, false);
        code.add(Instruction::with3(Code::VEX_Bzhi_r32_rm32_r32, Register::ECX, ones, Register::ECX)?);
        code.add(Instruction::with2(Code::VEX_Kmovw_kr_r32, LEFT, Register::ECX)?);
        emit::body(code, &mut self.free.clone(), self.way(&self.pinned, true), 1, 1)?;
        code.add(Instruction::with2(Code::Add_rm64_imm8, COLUMN, LANES as i32)?);
        code.add(Instruction::with2(Code::Cmp_r64_rm64, COLUMN, COLUMNS)?);
        code.jump(Code::Jb_rel32_64, last);
        code.place(done);
        for (fold, of) in self.folds.iter().zip(&self.phase.folds) {
            finish(code, &mut self.free.clone(), fold, of.slot)?;
        }
        Ok(())
    }
}

/// Asks for so many bytes from a place on, which is some times an index after another.
fn bring_nearer(code: &mut Assembler, from: Register, index: (Register, u32), bytes: usize) -> Result<()> {
    const LINE: usize = 64;
    for at in (0..bytes).step_by(LINE) {
        let line = MemoryOperand::with_base_index_scale_displ_size(from, index.0, index.1, at as i64, 1);
        code.add(Instruction::with1(Code::Prefetcht0_m8, line)?);
    }
    Ok(())
}

/// How many pairs of rows before they are computed they are asked for.
const PAIRS_AHEAD: u32 = 2;

/// Most masks of the row that are kept in registers.
const MASKS_OF_ROW: usize = 1;

/// Whether an operation gives a mask that is the same for all columns.
fn is_of_row(body: &Body, at: usize) -> bool {
    let uniform = |value: Value| body.op(value).is_uniform();
    matches!(body.ops[at], Op::Compare(_, a, b) if uniform(a) && uniform(b))
}

/// Numbers of the row: computed in all lanes of one vector.
fn single(code: &mut Assembler, registers: &mut Registers, body: &Body) -> Result<()> {
    let pinned = HashMap::new();
    let way = Way { body, pinned: &pinned, folds: &[], masked: false, paired: false, streaming: false };
    emit::body(code, registers, way, 1, 1)
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

/// Accumulators before the first column.
fn start(code: &mut Assembler, fold: &Accumulators) -> Result<()> {
    for &vector in &fold.vectors {
        let identity = match fold.kind {
            FoldKind::Sum => 0f32,
            FoldKind::Maximum => f32::NEG_INFINITY,
            FoldKind::Minimum => f32::INFINITY,
        };
        let from = Source::Memory(code.constant(identity.to_bits(), false));
        code.one(Code::EVEX_Vbroadcastss_zmm_k1z_xmmm32, vector, from, Lanes::All)?;
    }
    if let Some(unordered) = fold.unordered {
        code.two(Code::VEX_Kxorw_kr_kr_kr, unordered, unordered, unordered, Lanes::All)?;
    }
    Ok(())
}

/// Accumulators folded into one number, which goes into the frame: halves onto halves, as the loops compiled beforehand do.
fn finish(code: &mut Assembler, registers: &mut Registers, fold: &Accumulators, slot: usize) -> Result<()> {
    let [a, b, c, d] = fold.vectors;
    let sum = fold.kind == FoldKind::Sum;
    let choice = fold.kind.choice();
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
    let half = |register| part(register, PartOf::Half);
    let quarter = |register| part(register, PartOf::Quarter);
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
    let place = emit::scalar(slot, false);
    code.store(Code::EVEX_Vmovss_m32_k1_xmm, place, quarter(a), Lanes::All)?;
    if let Some(unordered) = fold.unordered {
        let ordered = code.label();
        code.one(Code::VEX_Kortestw_kr_kr, unordered, unordered, Lanes::All)?;
        code.jump(Code::Je_rel32_64, ordered);
        code.add(Instruction::with2(Code::Mov_rm32_imm32, place, f32::NAN.to_bits() as i32)?);
        code.place(ordered);
    }
    Ok(())
}
