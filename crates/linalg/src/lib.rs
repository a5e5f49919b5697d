//! Dense linear systems `A x = b` on the engine's GEMM.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`Matrix`] | square row-major matrices in aligned memory |
//! | [`Problem`] | matrices and right-hand sides made from a seed, row by row, and HPL's scaled residual |
//! | [`Factorizer`], [`Lu`] | blocked right-looking LU with partial pivoting; solves |
//! | [`refine()`] | GMRES-based iterative refinement with low-precision factors |
//!
//! The factorization goes panel by panel. A panel is factored by recursion on its columns; 16 columns at the bottom are
//! factored in a copy that lies column by column. Row swaps, the triangular solve for the block row of U and the update of
//! the trailing matrix follow. All but the 16-column kernels runs on the micro-kernels of GEMMs. The pieces of work depend
//! on the sizes alone, so a result is the same bit for bit whatever the number of threads.

mod error;
mod gmres;
mod lu;
mod matrix;
mod panel;
mod problem;
mod product;
mod real;
mod refine;
mod solve;
mod triangular;
mod update;
mod vector;
mod view;

#[cfg(test)]
mod tests;

pub use error::LinalgError;
pub use lu::{Factorizer, Lu};
pub use matrix::Matrix;
pub use problem::{Kind, Problem, Residual};
pub use real::{Precision, Real};
pub use refine::{Refined, refine};
