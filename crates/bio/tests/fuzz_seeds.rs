//! Replays the inputs that fuzzing has kept: each was a seed or a finding once.

// It is a library for the fuzz targets, and only here a module that nothing else can see.
#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/sequences.rs"]
mod fuzz;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn sequences() {
    replay("fuzz/seeds/sequences", fuzz::sequences);
}

#[test]
fn alignment() {
    replay("fuzz/seeds/alignment", fuzz::alignment);
}
