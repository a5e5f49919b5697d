//! Tensors on the host: what their elements are, how they are laid out, how they compare and how they are filed.
//!
//! An [`ElementType`] says what one element is, a [`Shape`] how many there are, a [`Tensor`] holds them, and a
//! [`Scalar`] is one of them on its own. [`compare`] judges one tensor by another, [`summary`] describes one,
//! [`quantize`] has blockwise quantization, [`layout`] reads and writes MLIR's dense and packed bytes, [`io`] the `safetensors` and `npy` files,
//! and [`memory`] tells what the machine can spare for them.

mod blob;
mod buffer;
pub mod compare;
pub mod element;
pub mod elementwise;
mod error;
pub mod io;
pub mod layout;
pub mod memory;
mod native;
pub mod quantize;
mod scalar;
mod shape;
mod strided;
pub mod summary;
mod tensor;

pub use blob::Blob;
pub use element::{ElementType, FloatFormat, FloatType, IntType, QuantizedType};
pub use error::Error;
pub use native::Native;
pub use scalar::Scalar;
pub use shape::{Indices, Shape};
pub use tensor::Tensor;
