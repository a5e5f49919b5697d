//! Loops over elements of Rust's own types, for what most programs spend their time on.
//!
//! Every operation has a general evaluator that goes through [`Scalar`](warpforge_tensor::Scalar) and takes any type.
//! The loops here compute the same for common types and common cases, hundreds of times faster, and give `None` for
//! everything else. [`Options::general_only`](crate::Options::general_only) turns them off, which is how the tests
//! compare the two.

pub(crate) mod convert;
mod dispatch;
pub(crate) mod elementwise;
pub(crate) mod lanes;
pub(crate) mod matmul;
mod number;
pub(crate) mod reduce;
pub(crate) mod reduction_op;
pub(crate) mod scatter;
mod sum;
mod threads;
pub(crate) mod window;

pub(crate) use dispatch::{for_floats, for_ints, for_numbers, for_types};
pub(crate) use threads::Threads;
