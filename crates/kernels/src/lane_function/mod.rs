//! Functions of scalars that an operation is given, such as the body of a reduction: applied to many lanes at a time.

// Buffers are pointers, because the threads of a pool share them.
#![allow(unsafe_code)]

mod error;
mod function;
#[cfg(test)]
mod tests;
mod variadic_reduce;

pub use error::LaneFunctionError;
pub use function::LaneFunction;
pub(crate) use function::LaneLoop;
pub use variadic_reduce::VariadicReduce;
