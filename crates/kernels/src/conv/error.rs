//! Why a convolution cannot be created or run.

use thiserror::Error;

use crate::buffer::AllocationError;
use crate::gemm::GemmError;

/// Why a convolution cannot be created or run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConvError {
    /// The underlying GEMM failed.
    #[error(transparent)]
    Gemm(#[from] GemmError),
    /// A stride or dilation of 0.
    #[error("dimension {dimension}: strides and dilations must be at least 1")]
    Step {
        /// Which spatial dimension.
        dimension: usize,
    },
    /// Sizes that overflow.
    #[error("dimension {dimension}: sizes and padding are too large")]
    TooLarge {
        /// Which spatial dimension.
        dimension: usize,
    },
    /// Groups that do not divide the channels.
    #[error("{groups} groups do not divide {input} input and {output} output channels")]
    Groups {
        /// Groups of channels.
        groups: usize,
        /// Input channels.
        input: usize,
        /// Output channels.
        output: usize,
    },
    /// Strides for another number of dimensions.
    #[error("{found} strides for {wanted} spatial dimensions")]
    Strides {
        /// How many strides were given.
        found: usize,
        /// How many dimensions there are.
        wanted: usize,
    },
    /// Channels that are not contiguous where they have to be.
    #[error("channels are {found} elements apart: copy the input so that they are contiguous")]
    ChannelStride {
        /// From one channel to the next, in elements.
        found: usize,
    },
    /// Weights that were packed for another convolution.
    #[error("the weights were packed for another convolution: pack them for this one")]
    Weights,
}

impl From<AllocationError> for ConvError {
    fn from(error: AllocationError) -> Self {
        Self::Gemm(error.into())
    }
}
