//! Conventions of compiled loops: the vector width, and the registers of streams.

use iced_x86::Register;

/// Lanes of a vector.
pub(super) const LANES: usize = 16;

/// The pointers of the streams.
pub(super) const STREAMS: [Register; 10] = [
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::RBX,
    Register::RBP,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];
