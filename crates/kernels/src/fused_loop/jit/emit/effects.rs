//! Instructions that store and reduce values.

use iced_x86::{Code, MemoryOperand, Register};

use super::super::assembler::{Lanes, Source};
use super::super::error::JitError;
use super::super::op::{Effect, Format};
use super::super::registers::{SubRegister, sub_register};
use super::{Accumulators, LANES, ReduceKind, Result, STREAMS, TAIL_MASK, VectorGroup, scalar};

/// Indices, two per lane, of the upper halves of the lanes of a vector; the rest is unused.
const UPPER_HALVES: [u32; LANES] = {
    let mut places = [0; LANES];
    let mut lane = 0;
    while lane < LANES as u32 {
        places[lane as usize / 2] |= (2 * lane + 1) << (lane % 2 * 16);
        lane += 1;
    }
    places
};

impl VectorGroup<'_> {
    /// Emits an effect for one vector.
    pub(super) fn effect(&mut self, effect: &Effect, vector: usize) -> Result<()> {
        let lanes = if self.context.masked { Lanes::Merged(TAIL_MASK) } else { Lanes::All };
        if self.context.body.op(effect.value()).is_mask() {
            return self.store_mask(effect, vector, lanes);
        }
        let (from, loaded) = self.register(effect.value(), vector)?;
        let assembler = &mut *self.assembler;
        match *effect {
            Effect::Store { stream, format, kept, .. } => {
                let to = self.address(stream, format, vector);
                let nontemporal = self.context.streaming && !self.context.masked && !kept;
                self.store(to, format, from, lanes, nontemporal)?;
            }
            Effect::StoreScalar { slot, .. } => {
                let code = Code::EVEX_Vmovss_m32_k1_xmm;
                assembler.store(
                    code,
                    scalar(slot, false),
                    sub_register(from, SubRegister::Xmm),
                    Lanes::All,
                )?;
            }
            Effect::StoreFirst { stream, .. } => {
                let to = MemoryOperand::with_base(STREAMS[stream]);
                let code = Code::EVEX_Vmovss_m32_k1_xmm;
                assembler.store(code, to, sub_register(from, SubRegister::Xmm), Lanes::All)?;
            }
            Effect::Reduce { reduction, .. } => {
                let Accumulators { kind, vectors, unordered } = &self.context.reductions[reduction];
                let to = vectors[self.first + vector];
                if *kind == ReduceKind::Sum {
                    assembler.two(Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er, to, to, from, lanes)?;
                } else {
                    let code = Code::EVEX_Vrangeps_zmm_k1z_zmm_zmmm512b32_imm8_sae;
                    assembler.two_with(code, to, to, from, kind.choice(), lanes)?;
                }
                // One comparison checks two vectors for NaN.
                let pairs = self.count.is_multiple_of(2);
                let partner = match vector {
                    0 => None,
                    _ => self.held[effect.value() as usize][vector - 1],
                };
                if let Some(unordered) = *unordered
                    && !(pairs && vector.is_multiple_of(2))
                {
                    const UNORDERED: u8 = 3;
                    let other = partner.filter(|_| pairs).unwrap_or(from);
                    let mask = self.registers.mask()?;
                    let code = Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;
                    assembler.two_with(code, mask, from, other, UNORDERED, lanes)?;
                    assembler.two(Code::VEX_Korw_kr_kr_kr, unordered, unordered, mask, Lanes::All)?;
                    self.registers.free(mask);
                }
            }
        }
        if loaded {
            self.registers.free(from);
        }
        Ok(())
    }

    fn store(
        &mut self,
        to: MemoryOperand,
        format: Format,
        from: Register,
        lanes: Lanes,
        nontemporal: bool,
    ) -> Result<()> {
        let assembler = &mut *self.assembler;
        match format {
            Format::F32 if nontemporal => {
                assembler.store(Code::EVEX_Vmovntps_m512_zmm, to, from, lanes)?;
            }
            Format::F32 => assembler.store(Code::EVEX_Vmovups_zmmm512_k1z_zmm, to, from, lanes)?,
            Format::F16 | Format::Bf16 => {
                let temporary = self.registers.vector()?;
                let half = sub_register(temporary, SubRegister::Ymm);
                let assembler = &mut *self.assembler;
                if format == Format::F16 {
                    let code = Code::EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae;
                    assembler.one_with(code, half, from, 0)?;
                } else {
                    let places = Source::Memory(assembler.table(&UPPER_HALVES));
                    assembler.one(Code::EVEX_Vmovups_zmm_k1z_zmmm512, temporary, places, Lanes::All)?;
                    let code = Code::EVEX_Vpermw_zmm_k1z_zmm_zmmm512;
                    assembler.two(code, temporary, temporary, from, Lanes::All)?;
                }
                // The narrowed values are stored as bits.
                assembler.store(Code::EVEX_Vmovdqu16_ymmm256_k1z_ymm, to, half, lanes)?;
                self.registers.free(temporary);
            }
            Format::I8 | Format::U8 => {
                let temporary = self.registers.vector()?;
                let assembler = &mut *self.assembler;
                let code = Code::EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er;
                assembler.one(code, temporary, Source::Register(from), Lanes::All)?;
                assembler.store(Code::EVEX_Vpmovdb_xmmm128_k1z_zmm, to, temporary, lanes)?;
                self.registers.free(temporary);
            }
            Format::Bool | Format::I32 => return Err(JitError::Unsupported),
        }
        Ok(())
    }

    /// A mask written as bytes.
    fn store_mask(&mut self, effect: &Effect, vector: usize, lanes: Lanes) -> Result<()> {
        let Effect::Store { stream, format: Format::Bool, value, .. } = *effect else {
            return Err(JitError::Unsupported);
        };
        let mask = self.mask(value, vector)?;
        let to = self.address(stream, Format::Bool, vector);
        let temporary = self.registers.vector()?;
        let one = Source::Memory(self.assembler.constant(1, false));
        let code = Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32;
        self.assembler.one(code, temporary, one, Lanes::Zeroed(mask))?;
        self.assembler.store(Code::EVEX_Vpmovdb_xmmm128_k1z_zmm, to, temporary, lanes)?;
        self.registers.free(temporary);
        Ok(())
    }
}
