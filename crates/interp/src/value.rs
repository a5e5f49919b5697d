//! What a value of a program is while it runs.

use warpforge_tensor::Tensor;

use crate::error::{Result, invalid};

/// The value of an operand or a result.
#[derive(Debug, Clone)]
pub enum Value {
    /// A tensor; of a quantized tensor the stored integers.
    Tensor(Tensor),
    /// A token.
    Token,
    /// A tuple, or the pending results of an asynchronous operation.
    Tuple(Vec<Value>),
}

impl Value {
    /// The tensor that the value is.
    ///
    /// # Errors
    ///
    /// When it is something else.
    pub fn as_tensor(&self) -> Result<&Tensor> {
        match self {
            Self::Tensor(tensor) => Ok(tensor),
            Self::Token => Err(invalid("expected a tensor, found a token")),
            Self::Tuple(_) => Err(invalid("expected a tensor, found a tuple")),
        }
    }
}

impl Value {
    /// Bytes of memory that the value takes or shares with others; what lies in a file or in the module takes none.
    pub(crate) fn byte_count(&self) -> usize {
        match self {
            Self::Tensor(tensor) => tensor.memory_bytes(),
            Self::Token => 0,
            Self::Tuple(values) => values.iter().map(Self::byte_count).sum(),
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Self::Tensor(tensor)
    }
}
