//! Lowering as a whole.
