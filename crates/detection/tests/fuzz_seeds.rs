//! Replays the inputs that fuzzing has kept: each was a seed or a finding once.

// It is a library for the fuzz targets, and only here a module that nothing else can see.
#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/detection.rs"]
mod fuzz;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn image() {
    replay("fuzz/seeds/image", fuzz::image);
}

#[test]
fn annotations() {
    replay("fuzz/seeds/annotations", fuzz::annotations);
}
