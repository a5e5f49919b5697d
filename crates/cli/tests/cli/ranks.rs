//! A golden run that several ranks can share: `tests/data/rings.golden` with the graph of a quarter of its batch.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
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
