//! Replays the inputs that fuzzing has kept: each was a seed or a finding once.

// It is a module of the fuzz target, and only here one that nothing else can see.
#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/plan.rs"]
mod fuzz;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn plan() {
    for folder in ["fuzz/seeds/evaluator", "fuzz/seeds/text", "crates/fusion/tests/plans"] {
        replay(folder, fuzz::plan);
    }
}
