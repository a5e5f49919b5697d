//! Movements against loops that go through every index.

mod copy;
mod dynamic;
mod gather;
mod pad;
mod scatter;
mod sort;
