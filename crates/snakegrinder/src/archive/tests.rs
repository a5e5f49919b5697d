//! Archives that are not as they must be.
