//! Register allocation.

use iced_x86::Register;

use super::error::JitError;

/// Registers with 32-bit lanes.
pub(super) const VECTORS: [Register; 32] = [
    Register::ZMM0,
    Register::ZMM1,
    Register::ZMM2,
    Register::ZMM3,
    Register::ZMM4,
    Register::ZMM5,
    Register::ZMM6,
    Register::ZMM7,
    Register::ZMM8,
    Register::ZMM9,
    Register::ZMM10,
    Register::ZMM11,
    Register::ZMM12,
    Register::ZMM13,
    Register::ZMM14,
    Register::ZMM15,
    Register::ZMM16,
    Register::ZMM17,
    Register::ZMM18,
    Register::ZMM19,
    Register::ZMM20,
    Register::ZMM21,
    Register::ZMM22,
    Register::ZMM23,
    Register::ZMM24,
    Register::ZMM25,
    Register::ZMM26,
    Register::ZMM27,
    Register::ZMM28,
    Register::ZMM29,
    Register::ZMM30,
    Register::ZMM31,
];

/// Mask registers: k0 cannot be used as a write mask, k7 is the tail mask.
const MASKS: [Register; 6] =
    [Register::K1, Register::K2, Register::K3, Register::K4, Register::K5, Register::K6];

/// The free registers.
#[derive(Debug, Clone)]
pub(super) struct RegisterAllocator {
    vectors: Vec<Register>,
    masks: Vec<Register>,
    /// The minimum of free vector registers so far.
    least: usize,
}

impl RegisterAllocator {
    /// All of them.
    pub(super) fn all() -> Self {
        let (mut vectors, mut masks) = (VECTORS.to_vec(), MASKS.to_vec());
        vectors.reverse();
        masks.reverse();
        Self { least: vectors.len(), vectors, masks }
    }

    /// Vector registers that were always free.
    pub(super) fn spare(&self) -> usize {
        self.least
    }

    /// A vector register.
    pub(super) fn vector(&mut self) -> Result<Register, JitError> {
        let register = self.vectors.pop().ok_or(JitError::OutOfRegisters)?;
        self.least = self.least.min(self.vectors.len());
        Ok(register)
    }

    /// A mask register.
    pub(super) fn mask(&mut self) -> Result<Register, JitError> {
        self.masks.pop().ok_or(JitError::OutOfRegisters)
    }

    /// Gives a register back.
    pub(super) fn free(&mut self, register: Register) {
        if register.is_k() { self.masks.push(register) } else { self.vectors.push(register) }
    }
}

/// The lower half, or quarter, of a vector register.
pub(super) fn sub_register(register: Register, of: SubRegister) -> Register {
    let number = register as u32 - Register::ZMM0 as u32;
    let first = match of {
        SubRegister::Ymm => Register::YMM0,
        SubRegister::Xmm => Register::XMM0,
    };
    first + number
}

/// Which part of a register.
#[derive(Debug, Clone, Copy)]
pub(super) enum SubRegister {
    Ymm,
    Xmm,
}
