//! Comparisons and selects.

use iced_x86::{Code, Register};

use super::super::assembler::{Lanes, Source};
use super::super::error::JitError;
use super::super::op::{Logic, Op, Predicate, Value};
use super::{Result, VectorGroup};

impl VectorGroup<'_> {
    /// A mask in a new register.
    pub(super) fn compare(
        &mut self,
        predicate: Predicate,
        a: Value,
        b: Value,
        vector: usize,
    ) -> Result<Register> {
        let (mut a, mut b, mut predicate) = (a, b, predicate);
        if predicate != Predicate::NotLess && matches!(self.source(a, vector), Source::Memory(_)) {
            (a, b) = (b, a);
            predicate = match predicate {
                Predicate::Less => Predicate::Greater,
                Predicate::Greater => Predicate::Less,
                Predicate::LessOrEqual => Predicate::GreaterOrEqual,
                Predicate::GreaterOrEqual => Predicate::LessOrEqual,
                other => other,
            };
        }
        let by = super::predicate(predicate);
        let (from, loaded) = self.register(a, vector)?;
        let other = self.source(b, vector);
        let mask = self.registers.mask()?;
        let code = Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;
        self.assembler.two_with(code, mask, from, other, by, Lanes::All)?;
        if loaded {
            self.registers.free(from);
        }
        Ok(mask)
    }

    /// The register of a mask.
    pub(super) fn mask(&self, value: Value, vector: usize) -> Result<Register> {
        let pinned = self.context.pinned.get(&value).copied();
        self.held[value as usize][vector].or(pinned).ok_or(JitError::Unsupported)
    }

    /// A mask made of two.
    pub(super) fn logic(
        &mut self,
        at: usize,
        logic: Logic,
        a: Value,
        b: Value,
        vector: usize,
    ) -> Result<Register> {
        let (left, right) = (self.mask(a, vector)?, self.mask(b, vector)?);
        self.release(at, vector);
        let to = self.registers.mask()?;
        let code = match logic {
            Logic::And => Code::VEX_Kandw_kr_kr_kr,
            Logic::Or => Code::VEX_Korw_kr_kr_kr,
            Logic::Xor => Code::VEX_Kxorw_kr_kr_kr,
        };
        self.assembler.two(code, to, left, right, Lanes::All)?;
        Ok(to)
    }

    /// The register of a mask: its own or, with `true`, a temporary that the caller frees.
    fn chosen(&mut self, mask: Value, vector: usize) -> Result<(Register, bool)> {
        match *self.context.body.op(mask) {
            Op::Compare(predicate, a, b)
                if self.uses.deferred[mask as usize] && !self.context.pinned.contains_key(&mask) =>
            {
                Ok((self.compare(predicate, a, b, vector)?, true))
            }
            _ => Ok((self.mask(mask, vector)?, false)),
        }
    }

    /// A vector scaled by powers of two where a mask is set, and zero elsewhere.
    pub(super) fn scale_where(
        &mut self,
        at: usize,
        mask: Value,
        x: Value,
        exponent: Value,
        vector: usize,
    ) -> Result<Register> {
        let (chosen, own) = self.chosen(mask, vector)?;
        let from = self.register(x, vector)?;
        let exponent = self.source(exponent, vector);
        let to = self.result_of(at, from, vector)?;
        let code = Code::EVEX_Vscalefps_zmm_k1z_zmm_zmmm512b32_er;
        self.assembler.two(code, to, from.0, exponent, Lanes::Zeroed(chosen))?;
        if own {
            self.registers.free(chosen);
        }
        Ok(to)
    }

    /// A select by a mask.
    pub(super) fn select(
        &mut self,
        at: usize,
        mask: Value,
        yes: Value,
        no: Value,
        vector: usize,
    ) -> Result<Register> {
        let (chosen, own) = self.chosen(mask, vector)?;
        let to = match (self.source(yes, vector), self.source(no, vector)) {
            // Zero masking needs no zero operand.
            (Source::Register(from), Source::Memory(_)) if *self.context.body.op(no) == Op::Constant(0) => {
                let to = self.result(at, vector)?;
                self.assembler.one(Code::EVEX_Vmovaps_zmm_k1z_zmmm512, to, from, Lanes::Zeroed(chosen))?;
                to
            }
            (from, _) => {
                let other = self.register(no, vector)?;
                let to = self.result_of(at, other, vector)?;
                let code = Code::EVEX_Vblendmps_zmm_k1z_zmm_zmmm512b32;
                self.assembler.two(code, to, other.0, from, Lanes::Merged(chosen))?;
                to
            }
        };
        if own {
            self.registers.free(chosen);
        }
        Ok(to)
    }
}
