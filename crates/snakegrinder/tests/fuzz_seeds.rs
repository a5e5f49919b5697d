//! Replays the inputs that fuzzing has kept: each was a seed or a finding once.

// It is a library for the fuzz targets, and only here a module that nothing else can see.
#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/lib.rs"]
mod fuzz;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn text() {
    replay("fuzz/seeds/text", fuzz::text);
    replay("fuzz/seeds/evaluator", fuzz::text);
    replay("crates/snakeburger/tests/data", fuzz::text);
}

#[test]
fn bytecode() {
    replay("fuzz/seeds/bytecode", fuzz::bytecode);
    replay("crates/snakeburger/tests/data", fuzz::bytecode);
}

#[test]
fn evaluator() {
    replay("fuzz/seeds/evaluator", fuzz::evaluator);
}

#[test]
fn archive() {
    replay("fuzz/seeds/archive", fuzz::archive);
}

#[test]
fn graph() {
    replay("fuzz/seeds/graph", fuzz::graph);
}
