//! Data movement against loops over every index.

mod copy;
mod dynamic_slice;
mod gather;
mod pad;
mod scatter;
mod sort;
