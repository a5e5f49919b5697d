//! `warpt golden run` by several ranks over TCP.

use std::net::TcpListener;
use std::process::{Child, Stdio};

use serde_json::json;

use crate::ranks::{after_steps, agree, arguments, ended, kill, ranks_of, shared_golden};
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

/// Four ranks as a launcher starts them.
fn launched(warpt: &Warpt, out: &str) -> Vec<Child> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let flags = ["--save-every", "3", "--tier", "correctness"];
    (0..4)
        .map(|rank| {
            let mut command = warpt.command(&arguments(out, &flags));
            command.env("RANK", rank.to_string()).env("WORLD_SIZE", "4");
            command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", &port);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect()
}

#[test]
fn a_rank_that_is_killed_is_an_error_on_all_others_and_the_run_goes_on_later() {
    let warpt = Warpt::new();
    shared_golden(&warpt);
    for (rank, child) in launched(&warpt, "whole").into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout.is_empty(), rank != 0, "the first rank speaks for all");
    }
    // Killed after its first checkpoint, unless the others were faster.
    let mut stopped = false;
    for attempt in 0..5 {
        let out = format!("killed{attempt}");
        let mut ranks = launched(&warpt, &out);
        after_steps(&warpt, &out, 4, &mut ranks[0]);
        kill(ranks[2].id());
        let mut killed = ranks.remove(2);
        killed.wait().unwrap();
        let outputs: Vec<_> = ranks.into_iter().map(ended).collect();
        if outputs.iter().any(|output| output.status.success()) {
            continue;
        }
        stopped = true;
        for output in outputs {
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("rank 2 is gone"), "{said}");
        }
        for child in launched(&warpt, &out) {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        for file in ["checkpoint.safetensors", "losses.json", "metrics.json"] {
            let read = |folder: &str| std::fs::read(warpt.path(folder).join(file)).unwrap();
            assert!(read("whole") == read(&out), "{file} is that of a run that was not killed");
        }
        break;
    }
    assert!(stopped, "no run was slow enough to be killed");
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
