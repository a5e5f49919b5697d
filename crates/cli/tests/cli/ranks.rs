//! A golden run that several ranks can share: `tests/data/rings.golden` with the graph of a quarter of its batch.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::warpt::{Warpt, copy};

pub(crate) const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/golden/rings.toml");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/rings.golden");
const PART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/rings.rank.pt2");
const PART_SHA256: &str = "8eba1ad8cda502f341ce72a93851692b13bb6f4f2e1203b9a36243c6a97d6403";

/// The golden run of four ranks, in the home folder.
pub(crate) fn shared_golden(warpt: &Warpt) -> PathBuf {
    let to = warpt.path("golden");
    copy(Path::new(GOLDEN), &to);
    let bytes = std::fs::read(PART).unwrap();
    std::fs::write(to.join("rank.pt2"), &bytes).unwrap();
    let path = to.join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    manifest["benchmark"]["plan"]["training"]["ranks"] = json!(4);
    manifest["files"]["rank.pt2"] = json!({"sha256": PART_SHA256, "bytes": bytes.len(), "compared": false});
    std::fs::write(path, manifest.to_string()).unwrap();
    to
}

/// The arguments of a second pass on the shared golden run.
pub(crate) fn arguments<'a>(out: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    [&["golden", "run", EXAMPLE, "--compare-golden", "golden", "--out", out], flags].concat()
}

/// Whether two runs agree in every class, by `warpt validate`.
#[track_caller]
pub(crate) fn agree(warpt: &Warpt, golden: &str, candidate: &str) {
    let done = warpt.run(&["validate", "--golden", golden, "--candidate", candidate, "--fail-on-mismatch"]);
    assert_eq!(done.code, 0, "{golden} and {candidate}: {}{}", done.stdout, done.stderr);
}

/// Which ranks made a run, as its manifest says.
pub(crate) fn ranks_of(warpt: &Warpt, out: &str) -> Value {
    let text = std::fs::read_to_string(warpt.path(out).join("manifest.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["benchmark"]["ranks"].clone()
}

/// Waits until so many steps are written, or the process ends.
pub(crate) fn after_steps(warpt: &Warpt, out: &str, steps: usize, child: &mut Child) {
    let progress = warpt.path(out).join("progress.jsonl");
    let written = || std::fs::read_to_string(&progress).unwrap_or_default().lines().count();
    while written() < steps && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
}

/// Kills a process as nothing can prepare for.
pub(crate) fn kill(process: u32) {
    Command::new("kill").args(["-9", &process.to_string()]).status().unwrap();
}

/// Waits for a process, not longer than the time within which a loss must be known.
pub(crate) fn ended(mut child: Child) -> Output {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(10) {
            child.kill().unwrap();
            panic!("it did not end within 10 s");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

/// Four ranks as a launcher starts them.
fn launched(warpt: &Warpt, out: &str, flags: &[&str]) -> Vec<Child> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let flags = [&["--save-every", "3", "--tier", "correctness"], flags].concat();
    (0..4)
        .map(|rank| {
            let mut command = warpt.command(&arguments(out, &flags));
            command.env("RANK", rank.to_string()).env("WORLD_SIZE", "4");
            command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", &port);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect()
}

/// Kills one of four ranks in the middle of a run: the others end with an error that names it, and the same command goes on to the
/// result of a run that was not killed.
pub(crate) fn killed_rank_ends_all(flags: &[&str]) {
    let warpt = Warpt::new();
    shared_golden(&warpt);
    for (rank, child) in launched(&warpt, "whole", flags).into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout.is_empty(), rank != 0, "the first rank speaks for all");
    }
    // Killed after its first checkpoint, unless the others were faster.
    for attempt in 0..5 {
        let out = format!("killed{attempt}");
        let mut ranks = launched(&warpt, &out, flags);
        after_steps(&warpt, &out, 4, &mut ranks[0]);
        kill(ranks[2].id());
        let mut killed = ranks.remove(2);
        killed.wait().unwrap();
        let outputs: Vec<_> = ranks.into_iter().map(ended).collect();
        if outputs.iter().any(|output| output.status.success()) {
            continue;
        }
        for output in outputs {
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("rank 2 is gone"), "{said}");
        }
        for child in launched(&warpt, &out, flags) {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        for file in ["checkpoint.safetensors", "losses.json", "metrics.json"] {
            let read = |folder: &str| std::fs::read(warpt.path(folder).join(file)).unwrap();
            assert!(read("whole") == read(&out), "{file} is that of a run that was not killed");
        }
        return;
    }
    panic!("no run was slow enough to be killed");
}
