//! `warpt golden run` by several ranks over UCC, where its library is installed.

use libtest_mimic::Trial;
use serde_json::json;

use crate::ranks::{agree, arguments, killed_rank_ends_all, ranks_of, shared_golden};
use crate::trial;
use crate::warpt::Warpt;

/// Why there is nothing to test with.
pub(crate) fn missing() -> Option<String> {
    warpforge_collective::find_ucc().err().map(|error| error.to_string())
}

pub(crate) fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 2] = [
        ("ranks_of_ucc_train_the_same_weights", same_weights),
        ("a_killed_rank_of_ucc_ends_all", || killed_rank_ends_all(&["--collectives", "ucc"])),
    ];
    tests.into_iter().map(|(name, test)| trial(name, test)).collect()
}

fn same_weights() {
    let warpt = Warpt::new();
    shared_golden(&warpt);
    for ranks in ["2", "4"] {
        let done = warpt.run(&arguments(ranks, &["--ranks", ranks, "--collectives", "ucc"]));
        assert_eq!(done.code, 0, "{ranks}: {}", done.stderr);
        agree(&warpt, "golden", ranks);
        let count: u64 = ranks.parse().unwrap();
        assert_eq!(ranks_of(&warpt, ranks), json!({"count": count, "engine": "UCC"}));
    }
}
