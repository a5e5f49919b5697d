//! Why loops are not compiled.

use thiserror::Error;

/// Why a fused loop is not compiled.
#[derive(Debug, Error)]
pub(crate) enum JitError {
    /// An unsupported instruction, type or access.
    #[error("an unsupported instruction, type or access")]
    Unsupported,
    /// There are not enough registers.
    #[error("not enough registers")]
    OutOfRegisters,
    /// An instruction could not be encoded.
    #[error(transparent)]
    Encoding(#[from] iced_x86::IcedError),
    /// Code pages cannot be mapped.
    #[error(transparent)]
    Memory(#[from] std::io::Error),
}
