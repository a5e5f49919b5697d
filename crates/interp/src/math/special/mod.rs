//! Special functions of CHLO.

mod bessel;
mod erf;
mod gamma;
mod next_after;

pub use bessel::{bessel_i0e, bessel_i1e};
pub use erf::{erf, erf_inv, erfc};
pub use gamma::{digamma, lgamma, polygamma, zeta};
pub use next_after::next_after;
