//! Scalar functions, accurate to the last place or close to it.
//!
//! Everything takes and gives binary64. A narrower type is computed here and rounded once, which leaves its error at
//! half a unit in the last place and a little; `docs/accuracy.md` has the measured errors of binary64 itself.

pub mod complex;
pub mod real;
pub mod special;
mod wide;
