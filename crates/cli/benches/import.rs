//! `warpt import` as a user starts it: how long it takes to write a model's text, with the weights inside or in a file of
//! their own, and how much memory it needs beside the mapped archive.
//!
//! `cargo bench -p warpt --bench import -- MODEL.pt2 …`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const REPEATS: usize = 5;
/// How often the memory of the program is looked at.
const LOOK: Duration = Duration::from_millis(1);

fn main() -> Outcome {
    // Cargo adds `--bench`.
    let models: Vec<PathBuf> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).map(PathBuf::from).collect();
    if models.is_empty() {
        println!("nothing measured: name an archive, `cargo bench -p warpt --bench import -- MODEL.pt2`");
    }
    for model in models {
        for with_weights in [true, false] {
            measure(&model, with_weights)?;
        }
    }
    Ok(())
}

fn measure(model: &Path, with_weights: bool) -> Outcome {
    // Beside the model: what is written is as large, and a folder for temporary files may be in memory.
    let folder = tempfile::tempdir_in(model.parent().unwrap_or(Path::new(".")))?;
    let mut times = Vec::new();
    let mut peak = None;
    for _ in 0..REPEATS {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpt"));
        command.arg("import").arg(model).arg("-o").arg(folder.path().join("model.mlir"));
        if with_weights {
            command.arg("--weights").arg(folder.path().join("weights.safetensors"));
        }
        let start = Instant::now();
        let mut child = command.stdout(Stdio::null()).spawn()?;
        let status = loop {
            peak = peak.max(own_bytes(&child));
            if let Some(status) = child.try_wait()? {
                break status;
            }
            std::thread::sleep(LOOK);
        };
        times.push(start.elapsed().as_secs_f64());
        if !status.success() {
            return Err(format!("{} ended with {status}", model.display()).into());
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    let (least, median, most) = (times[0], times[REPEATS / 2], times[REPEATS - 1]);
    let peak = peak.map_or("unknown".to_owned(), |bytes| format!("{:.0} MB", bytes as f64 / 1e6));
    let form = if with_weights { "with --weights" } else { "weights in the text" };
    println!(
        "{}, {form}: median {median:.2} s of {REPEATS} ({least:.2} to {most:.2}), memory beside mapped files {peak}",
        model.display()
    );
    Ok(())
}

/// The memory that a process has of its own, mapped files left aside; where the system tells.
fn own_bytes(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}
