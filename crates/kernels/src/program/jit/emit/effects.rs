//! Instructions that write values out and fold them.

use iced_x86::{Code, MemoryOperand, Register};

use super::super::JitError;
use super::super::assembler::{Lanes, Source};
use super::super::op::{Effect, Format};
use super::super::registers::{PartOf, part};
use super::{Accumulators, FoldKind, Group, LANES, LEFT, Result, STREAMS, scalar};

/// The numbers, two in each, of the upper halves of a vector's lanes; what comes after them is not used.
const UPPER_HALVES: [u32; LANES] = {
    let mut places = [0; LANES];
    let mut lane = 0;
    while lane < LANES as u32 {
        places[lane as usize / 2] |= (2 * lane + 1) << (lane % 2 * 16);
        lane += 1;
    }
    places
};

impl Group<'_> {
    /// Does for one vector what is to be done with a value.
    pub(super) fn effect(&mut self, effect: &Effect, vector: usize) -> Result<()> {
        let lanes = if self.way.masked { Lanes::Merged(LEFT) } else { Lanes::All };
        if self.way.body.op(effect.value()).is_mask() {
            return self.store_mask(effect, vector, lanes);
        }
        let (from, loaded) = self.register(effect.value(), vector)?;
        let assembler = &mut *self.assembler;
        match *effect {
            Effect::Store { stream, format, kept, .. } => {
                let to = self.place(stream, format, vector);
                let past_caches = self.way.streaming && !self.way.masked && !kept;
                self.store(to, format, from, lanes, past_caches)?;
            }
            Effect::Keep { slot, .. } => {
                let code = Code::EVEX_Vmovss_m32_k1_xmm;
                assembler.store(code, scalar(slot, false), part(from, PartOf::Quarter), Lanes::All)?;
            }
            Effect::StoreFirst { stream, .. } => {
                let to = MemoryOperand::with_base(STREAMS[stream]);
                let code = Code::EVEX_Vmovss_m32_k1_xmm;
                assembler.store(code, to, part(from, PartOf::Quarter), Lanes::All)?;
            }
            Effect::Fold { fold, .. } => {
                let Accumulators { kind, vectors, unordered } = &self.way.folds[fold];
                let to = vectors[self.first + vector];
                if *kind == FoldKind::Sum {
                    assembler.two(Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er, to, to, from, lanes)?;
                } else {
                    let code = Code::EVEX_Vrangeps_zmm_k1z_zmm_zmmm512b32_imm8_sae;
                    assembler.two_with(code, to, to, from, kind.choice(), lanes)?;
                }
                // One comparison tells of two vectors.
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
        past_caches: bool,
    ) -> Result<()> {
        let assembler = &mut *self.assembler;
        match format {
            Format::F32 if past_caches => {
                assembler.store(Code::EVEX_Vmovntps_m512_zmm, to, from, lanes)?;
            }
            Format::F32 => assembler.store(Code::EVEX_Vmovups_zmmm512_k1z_zmm, to, from, lanes)?,
            Format::F16 | Format::Bf16 => {
                let temporary = self.registers.vector()?;
                let half = part(temporary, PartOf::Half);
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
                // The narrowed numbers are moved as they are.
                assembler.store(Code::EVEX_Vmovdqu16_ymmm256_k1z_ymm, to, half, lanes)?;
                self.registers.free(temporary);
            }
            Format::Bool => return Err(JitError::Unsupported),
        }
        Ok(())
    }

    /// A mask written as bytes.
    fn store_mask(&mut self, effect: &Effect, vector: usize, lanes: Lanes) -> Result<()> {
        let Effect::Store { stream, format: Format::Bool, value, .. } = *effect else {
            return Err(JitError::Unsupported);
        };
        let mask = self.mask(value, vector)?;
        let to = self.place(stream, Format::Bool, vector);
        let temporary = self.registers.vector()?;
        let one = Source::Memory(self.assembler.constant(1, false));
        let code = Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32;
        self.assembler.one(code, temporary, one, Lanes::Zeroed(mask))?;
        self.assembler.store(Code::EVEX_Vpmovdb_xmmm128_k1z_zmm, to, temporary, lanes)?;
        self.registers.free(temporary);
        Ok(())
    }
}
