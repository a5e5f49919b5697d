//! Instructions that compute.

use iced_x86::{Code, Register};

use super::super::assembler::{Lanes, Source};
use super::super::error::JitError;
use super::super::op::{Binary, Divisor, Predicate, Unary, Value};
use super::super::registers::{SubRegister, sub_register};
use super::{LANES, Result, SAFE_MIN_BITS, VectorGroup};

impl VectorGroup<'_> {
    /// A function of one vector.
    pub(super) fn unary(&mut self, at: usize, op: Unary, x: Value, vector: usize) -> Result<Register> {
        let from = self.source(x, vector);
        let to = self.result(at, vector)?;
        let assembler = &mut *self.assembler;
        match op {
            Unary::Sqrt => assembler.one(Code::EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er, to, from, Lanes::All)?,
            Unary::Reciprocal => {
                assembler.one(Code::EVEX_Vrcp14ps_zmm_k1z_zmmm512b32, to, from, Lanes::All)?;
            }
            Unary::FloatToInt => {
                assembler.one(Code::EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er, to, from, Lanes::All)?;
            }
            Unary::IntToFloat => {
                assembler.one(Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er, to, from, Lanes::All)?;
            }
            Unary::Round(by) => {
                assembler.one_with(Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae, to, from, by)?;
            }
            Unary::ShiftUp(by) => {
                assembler.one_with(Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, to, from, by)?;
            }
            Unary::ShiftDown(by) => {
                assembler.one_with(Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8, to, from, by)?;
            }
            Unary::ThroughF16 => {
                let half = sub_register(to, SubRegister::Ymm);
                let from = match from {
                    Source::Register(from) => from,
                    Source::Memory(_) => {
                        self.load(to, x, vector)?;
                        to
                    }
                };
                let assembler = &mut *self.assembler;
                assembler.one_with(Code::EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae, half, from, 0)?;
                assembler.one(Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae, to, half, Lanes::All)?;
            }
        }
        Ok(to)
    }

    /// Rounds to bf16: adds half a unit minus one bit, and one more if the result would be odd. NaN becomes quiet
    /// instead. If only bf16 stores read the result, its lower bits are not cleared.
    pub(super) fn round_to_bf16(&mut self, at: usize, x: Value, vector: usize) -> Result<Register> {
        let (from, loaded) = self.register(x, vector)?;
        let to = self.registers.vector()?;
        let mask = self.registers.mask()?;
        let assembler = &mut *self.assembler;
        let [last, half, one, quiet, upper] = [0x0001_0000, 0x7fff, 1, 0x0040_0000, 0xffff_0000]
            .map(|bits| Source::Memory(assembler.constant(bits, true)));
        let add = Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32;
        assembler.two(Code::EVEX_Vptestmd_kr_k1_zmm_zmmm512b32, mask, from, last, Lanes::All)?;
        assembler.two(add, to, from, half, Lanes::All)?;
        assembler.two(add, to, to, one, Lanes::Merged(mask))?;
        let (compare, unordered) =
            (Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae, super::predicate(Predicate::Unordered));
        assembler.two_with(compare, mask, from, from, unordered, Lanes::All)?;
        assembler.two(Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, to, from, quiet, Lanes::Merged(mask))?;
        if !self.uses.narrowed[at] {
            self.assembler.two(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, to, to, upper, Lanes::All)?;
        }
        self.registers.free(mask);
        if loaded {
            self.registers.free(from);
        }
        self.release(at, vector);
        Ok(to)
    }

    /// A function of two vectors.
    pub(super) fn binary(
        &mut self,
        at: usize,
        op: Binary,
        a: Value,
        b: Value,
        vector: usize,
    ) -> Result<Register> {
        let (mut a, mut b) = (a, b);
        if op.commutes() && matches!(self.source(a, vector), Source::Memory(_)) {
            (a, b) = (b, a);
        }
        let code = match op {
            Binary::Add => Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er,
            Binary::Sub => Code::EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er,
            Binary::Mul => Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er,
            Binary::Div => Code::EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er,
            Binary::Max => Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae,
            Binary::Min => Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae,
            Binary::And => Code::EVEX_Vandps_zmm_k1z_zmm_zmmm512b32,
            Binary::Or => Code::EVEX_Vorps_zmm_k1z_zmm_zmmm512b32,
            Binary::Xor => Code::EVEX_Vxorps_zmm_k1z_zmm_zmmm512b32,
            Binary::AddBits => Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32,
            Binary::SubBits => Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32,
            Binary::Scale => Code::EVEX_Vscalefps_zmm_k1z_zmm_zmmm512b32_er,
        };
        let from = self.register(a, vector)?;
        let other = self.source(b, vector);
        let to = self.result_of(at, from, vector)?;
        self.assembler.two(code, to, from.0, other, Lanes::All)?;
        Ok(to)
    }

    /// A fused multiply-add. Which operand is overwritten depends on which one is dead; at most one may be in memory.
    pub(super) fn mul_add(
        &mut self,
        at: usize,
        negative: bool,
        values: [Value; 3],
        vector: usize,
    ) -> Result<Register> {
        let [mut a, mut b, c] = values;
        if matches!(self.source(a, vector), Source::Memory(_)) {
            (a, b) = (b, a);
        }
        // Now the first is in memory only if both factors are.
        let (first, loaded) = self.register(a, vector)?;
        let (second, third) = (self.source(b, vector), self.source(c, vector));
        let [by_term, by_factor, by_memory_factor] = if negative {
            [
                Code::EVEX_Vfnmadd231ps_zmm_k1z_zmm_zmmm512b32_er,
                Code::EVEX_Vfnmadd213ps_zmm_k1z_zmm_zmmm512b32_er,
                Code::EVEX_Vfnmadd132ps_zmm_k1z_zmm_zmmm512b32_er,
            ]
        } else {
            [
                Code::EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er,
                Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er,
                Code::EVEX_Vfmadd132ps_zmm_k1z_zmm_zmmm512b32_er,
            ]
        };
        let factor = if loaded { Some(first) } else { None };
        let (to, code, operand, last) = match (second, third) {
            (Source::Memory(_), Source::Memory(_)) => {
                let to = self.registers.vector()?;
                self.load(to, c, vector)?;
                (to, by_term, first, second)
            }
            (Source::Register(_), Source::Memory(_)) => {
                match factor.or_else(|| self.take_over(at, a, vector)) {
                    Some(to) => (to, by_factor, register_of(second)?, third),
                    None => match self.take_over(at, b, vector) {
                        Some(to) => (to, by_factor, first, third),
                        None => {
                            let to = self.registers.vector()?;
                            self.load(to, c, vector)?;
                            (to, by_term, first, second)
                        }
                    },
                }
            }
            (_, Source::Register(term)) => match self.take_over(at, c, vector) {
                Some(to) => {
                    // Where the term is a factor too, its register is still read before it is written.
                    (to, by_term, first, second)
                }
                None => match (factor.or_else(|| self.take_over(at, a, vector)), second) {
                    (Some(to), Source::Memory(_)) => (to, by_memory_factor, term, second),
                    (Some(to), Source::Register(second)) => (to, by_factor, second, third),
                    (None, _) => {
                        let to = self.registers.vector()?;
                        self.load(to, c, vector)?;
                        (to, by_term, first, second)
                    }
                },
            },
        };
        self.assembler.two(code, to, operand, last, Lanes::All)?;
        if let Some(factor) = factor.filter(|&factor| factor != to) {
            self.registers.free(factor);
        }
        self.release(at, vector);
        Ok(to)
    }

    /// The bits of one value, and those set in both of two others.
    pub(super) fn or_masked(&mut self, at: usize, [a, b, c]: [Value; 3], vector: usize) -> Result<Register> {
        let (second, loaded) = self.register(b, vector)?;
        let third = self.source(c, vector);
        let to = match self.take_over(at, a, vector) {
            Some(to) => to,
            None => {
                let to = self.registers.vector()?;
                self.load(to, a, vector)?;
                to
            }
        };
        let code = Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8;
        self.assembler.two_with(code, to, second, third, 0xf8, Lanes::All)?;
        if loaded {
            self.registers.free(second);
        }
        self.release(at, vector);
        Ok(to)
    }

    /// A table lookup.
    pub(super) fn lookup(
        &mut self,
        at: usize,
        table: &[u32; LANES],
        x: Value,
        vector: usize,
    ) -> Result<Register> {
        let positions = self.register(x, vector)?;
        let to = self.result_of(at, positions, vector)?;
        let table = Source::Memory(self.assembler.table(table));
        self.assembler.two(Code::EVEX_Vpermps_zmm_k1z_zmm_zmmm512b32, to, positions.0, table, Lanes::All)?;
        Ok(to)
    }

    /// A division by a scalar. With the correctly rounded reciprocal of a divisor in the safe range, one correction of
    /// the product is the correctly rounded quotient; vectors with elements outside of the range are divided on a cold
    /// path. Zeros are not corrected, which would lose their sign.
    pub(super) fn quotient(
        &mut self,
        at: usize,
        x: Value,
        divisor: Divisor,
        vector: usize,
    ) -> Result<Register> {
        let (from, loaded) = self.register(x, vector)?;
        let [number, reciprocal, range, zero] =
            [divisor.number, divisor.reciprocal, divisor.range, divisor.zero]
                .map(|value| self.source(value, vector));
        let to = self.registers.vector()?;
        let (divided, other) = (self.registers.mask()?, self.registers.mask()?);
        let assembler = &mut *self.assembler;
        let (cold, done) = (assembler.label(), assembler.label());
        let magnitude = Source::Memory(assembler.constant(0x7fff_ffff, true));
        assembler.two(Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, to, from, magnitude, Lanes::All)?;
        const ABOVE: u8 = 6;
        const NOT_BELOW: u8 = 5;
        let code = Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8;
        assembler.two_with(code, divided, to, zero, ABOVE, Lanes::All)?;
        let least = Source::Memory(assembler.constant(SAFE_MIN_BITS, true));
        assembler.two(Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, to, to, least, Lanes::All)?;
        let code = Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8;
        assembler.two_with(code, other, to, range, NOT_BELOW, Lanes::Merged(divided))?;
        assembler.one(Code::VEX_Kortestw_kr_kr, other, other, Lanes::All)?;
        assembler.jump(Code::Jne_rel32_64, cold);
        let product = Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er;
        assembler.two(product, to, from, reciprocal, Lanes::All)?;
        let rest = match loaded {
            true => Some(from),
            false => self.take_over(at, x, vector),
        };
        let rest = match rest {
            Some(rest) => rest,
            None => {
                let rest = self.registers.vector()?;
                self.assembler.one(Code::EVEX_Vmovaps_zmm_k1z_zmmm512, rest, from, Lanes::All)?;
                rest
            }
        };
        let assembler = &mut *self.assembler;
        let code = Code::EVEX_Vfnmadd231ps_zmm_k1z_zmm_zmmm512b32_er;
        assembler.two(code, rest, to, number, Lanes::All)?;
        let code = Code::EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er;
        assembler.two(code, to, rest, reciprocal, Lanes::Merged(divided))?;
        assembler.bind(done);
        assembler.cold_section(|assembler| {
            assembler.bind(cold);
            let code = Code::EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er;
            assembler.two(code, to, from, number, Lanes::All)?;
            assembler.jump(Code::Jmp_rel32_64, done);
            Ok::<(), iced_x86::IcedError>(())
        })?;
        [rest, divided, other].into_iter().for_each(|register| self.registers.free(register));
        self.release(at, vector);
        Ok(to)
    }
}

fn register_of(source: Source) -> Result<Register> {
    match source {
        Source::Register(register) => Ok(register),
        Source::Memory(_) => Err(JitError::Unsupported),
    }
}
