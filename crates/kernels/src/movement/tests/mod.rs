//! Movements against loops that go through every index.

mod copy;
mod gather;
mod pad;
