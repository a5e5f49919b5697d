//! Elementary functions.

pub(crate) mod scalar;
