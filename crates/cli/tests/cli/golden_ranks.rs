//! `warpt golden run` by several ranks over TCP.

use serde_json::json;

use crate::ranks::{agree, arguments, killed_rank_ends_all, ranks_of, shared_golden};
use crate::warpt::Warpt;

#[test]
fn one_two_and_four_ranks_train_the_same_weights() {
    let warpt = Warpt::new();
    shared_golden(&warpt);
    for ranks in ["1", "2", "4"] {
        let done = warpt.run(&arguments(ranks, &["--ranks", ranks, "--json"]));
        assert_eq!(done.code, 0, "{ranks}: {}", done.stderr);
        agree(&warpt, "golden", ranks);
        agree(&warpt, "1", ranks);
    }
    assert_eq!(ranks_of(&warpt, "1"), json!({"count": 1, "engine": null}));
    assert_eq!(ranks_of(&warpt, "4"), json!({"count": 4, "engine": "tcp"}));
}

#[test]
fn an_injected_error_of_all_ranks_is_found() {
    let warpt = Warpt::new();
    shared_golden(&warpt);
    let done = warpt.run(&arguments("off", &["--ranks", "2", "--inject", "gelu@7=1e-2"]));
    assert_eq!(done.code, 0, "{}", done.stderr);
    let done =
        warpt.run(&["validate", "--golden", "golden", "--candidate", "off", "--fail-on-mismatch", "--json"]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(done.stdout.contains("step_000008"), "{}", done.stdout);
}

#[test]
fn a_rank_that_is_killed_is_an_error_on_all_others_and_the_run_goes_on_later() {
    killed_rank_ends_all(&[]);
}

#[test]
fn engines_of_gpus_are_refused_where_ranks_have_none() {
    let warpt = Warpt::new();
    shared_golden(&warpt);
    for (engine, ranks) in [("nccl", "1"), ("rccl", "2")] {
        let done = warpt.run(&arguments("candidate", &["--ranks", ranks, "--collectives", engine]));
        assert_eq!(done.code, 3, "{}", done.stderr);
        assert!(done.stderr.contains(&format!("{engine}: rank 0 is not on a GPU")), "{}", done.stderr);
    }
}

#[test]
fn ranks_that_do_not_fit_are_refused() {
    let warpt = Warpt::new();
    shared_golden(&warpt);
    let refused = |flags: &[&str], variables: &[(&str, &str)]| {
        let mut command = warpt.command(&arguments("candidate", flags));
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        said
    };
    let said = refused(&["--ranks", "3"], &[]);
    assert!(said.contains("recorded with --ranks 4") && said.contains("record it with --ranks 3"), "{said}");
    let said = refused(&[], &[("RANK", "0"), ("WORLD_SIZE", "2")]);
    assert!(said.contains("MASTER_ADDR"), "{said}");
    let world = [("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "1")];
    let said = refused(&["--collectives", "mpi"], &world);
    assert!(said.contains("mpi: only ranks that `mpirun` started have it"), "{said}");
    let said = refused(&[], &[("WARPFORGE_COLLECTIVES", "gloo")]);
    assert!(said.contains("expected `tcp`, `mpi`, `ucc`, `nccl` or `rccl`"), "{said}");
    let said = refused(&["--ranks", "4"], &world);
    assert!(said.contains("--ranks 4, but the launcher started 2 ranks"), "{said}");
    let done = warpt.run(&[
        "golden",
        "record",
        crate::ranks::EXAMPLE,
        "--ranks",
        "3",
        "--out",
        "x",
        "--python",
        "/nowhere",
    ]);
    assert!(
        done.code == 2 && done.stderr.contains("a batch of 16 examples has no 3 equal parts"),
        "{}",
        done.stderr
    );
}
