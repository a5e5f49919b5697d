//! The files that commands write: plain ones whole or not at all, behind links too; pipes and devices as they are; `-`.

use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use crate::warpt::{Finished, QUICK, Warpt, finished};

/// `relu(x [[1, 2, 3], [4, 5, 6]]ᵀ + [0.5, -0.5])` for 1 to 64 rows.
const LINEAR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/linear.pt2");

const DOUBLE: &str = "func.func @main(%x: tensor<2x3xf32> {warpforge.name = \"x\"}) -> tensor<2x3xf32> {
  %0 = stablehlo.add %x, %x : tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}
";

/// A home with a model, a run that `validate` takes, and a record that `compare` takes.
fn home() -> Warpt {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("model.mlir"), DOUBLE).unwrap();
    let saved = warpt.run(&["run", "model.mlir", "--seed", "1", "--save", "saved"]);
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    let record = warpt.run(&[&QUICK[..], &["--rounds", "1", "--export-file", "record.json"]].concat());
    assert_eq!(record.code, 0, "{}", record.stderr);
    warpt
}

/// Every option that names a file to write, with the name `OUT`.
fn commands() -> Vec<Vec<&'static str>> {
    let run = ["run", "model.mlir", "--seed", "1"];
    let quick = [&QUICK[..], &["--rounds", "1", "--no-history"]].concat();
    vec![
        vec!["opt", "model.mlir", "-o", "OUT"],
        vec!["import", LINEAR, "-o", "OUT"],
        vec!["import", LINEAR, "-o", "module.mlir", "--weights", "OUT"],
        [&run[..], &["--outputs", "OUT"]].concat(),
        [&run[..], &["--profile", "OUT"]].concat(),
        [&run[..], &["--trace", "OUT"]].concat(),
        [&run[..], &["--trace-tensors", "OUT"]].concat(),
        vec!["opt", "model.mlir", "--emit", "fusion", "-o", "OUT"],
        [&run[..], &["--repeat", "2", "--export-file", "OUT"]].concat(),
        [&["stress", "cpu", "--test", "hashing"][..], &["--duration", "0.01", "--export", "OUT"]].concat(),
        vec!["list", "--export-file", "OUT"],
        vec!["benchmark", "compare", "record.json", "record.json", "--output", "OUT"],
        vec!["validate", "--golden", "saved", "--candidate", "saved", "--junit", "OUT"],
        [&quick[..], &["--export-file", "OUT"]].concat(),
        [&quick[..], &["--monitor-output", "OUT"]].concat(),
    ]
}

fn aimed(command: &[&'static str], target: &str) -> Vec<String> {
    command.iter().map(|part| if *part == "OUT" { target } else { part }.to_owned()).collect()
}

fn run(warpt: &Warpt, arguments: &[String]) -> Finished {
    warpt.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

#[test]
fn a_pipe_is_written_to_and_a_link_is_followed() {
    let warpt = home();
    let (pipe, link, real) = (warpt.path("pipe"), warpt.path("link"), warpt.path("data/real"));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    symlink("data/real", &link).unwrap();
    for command in commands() {
        let path = pipe.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            std::fs::File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        });
        let done = run(&warpt, &aimed(&command, "pipe"));
        assert_eq!(done.code, 0, "{command:?}: {}", done.stderr);
        assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "{command:?}");
        assert!(!reader.join().unwrap().is_empty(), "{command:?}");

        let _ = std::fs::remove_file(&real);
        for _ in 0..2 {
            let done = run(&warpt, &aimed(&command, "link"));
            assert_eq!(done.code, 0, "{command:?}: {}", done.stderr);
            assert!(is_link(&link) && std::fs::metadata(&real).unwrap().len() > 0, "{command:?}");
        }
    }
}

#[test]
fn a_full_device_is_an_error_and_stays_what_it_is() {
    let warpt = home();
    // A link, so that a program that replaces its target does no harm.
    symlink("/dev/full", warpt.path("full")).unwrap();
    for command in commands() {
        let done = run(&warpt, &aimed(&command, "full"));
        assert_eq!(done.code, 3, "{command:?}: {}", done.stderr);
        assert!(done.stderr.contains("cannot write full: No space left"), "{command:?}: {}", done.stderr);
        assert!(is_link(&warpt.path("full")), "{command:?}");
        assert!(!warpt.path("module.mlir").exists(), "{command:?}");
    }
}

#[test]
fn a_disk_without_space_leaves_nothing() {
    let warpt = home();
    let before = warpt.files();
    let commands = commands().into_iter().filter(|command| command[0] != "benchmark");
    for mut command in commands.chain([vec!["run", "model.mlir", "--seed", "1", "--save", "OUT"]]) {
        for part in &mut command {
            *part = if *part == "OUT" { "new" } else { part };
        }
        let program = warpt.command(&[]).get_program().to_owned();
        let mut shell = Command::new("sh");
        shell.current_dir(warpt.path("")).arg("-c").arg("trap '' XFSZ; ulimit -f 0; exec \"$@\"").arg("sh");
        let done = finished(shell.arg(program).args(&command).output().unwrap());
        assert_eq!(done.code, 3, "{command:?}: {}", done.stderr);
        assert!(done.stderr.contains("too large"), "{command:?}: {}", done.stderr);
        assert_eq!(done.stderr.matches("new").count(), 1, "{command:?}: {}", done.stderr);
        assert!(!warpt.path("new").exists(), "{command:?}");
        assert_eq!(warpt.files(), before, "{command:?}");
    }
}

#[test]
fn a_dash_is_standard_output() {
    let warpt = home();
    for command in commands() {
        let done = Command::new(warpt.command(&[]).get_program())
            .current_dir(warpt.path(""))
            .args(aimed(&command, "-"))
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(0), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
        assert!(!warpt.path("-").exists() && !done.stdout.is_empty(), "{command:?}");
        if command.contains(&"--profile") || command.contains(&"--export-file") {
            let whole = serde_json::from_slice::<serde_json::Value>(&done.stdout);
            assert!(whole.is_ok(), "{command:?}: {}", String::from_utf8_lossy(&done.stdout));
        }
    }
    let both = warpt.run(&["run", "model.mlir", "--seed", "1", "--outputs", "-", "--profile", "-"]);
    assert_eq!((both.code, both.stdout.as_str()), (2, ""));
    assert!(both.stderr.contains("only one of --profile, --outputs"), "{}", both.stderr);
    assert_eq!(warpt.run(&["run", "model.mlir", "--seed", "1", "--profile", "-", "--json"]).code, 2);
}

/// Whether these tests, and so the program, were started with Ctrl-C ignored, as jobs in the background are.
fn ignores_interrupts() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(mask, 16).unwrap() & (1 << (Signal::INT.as_raw() - 1)) != 0
}

#[test]
fn an_interrupted_import_leaves_nothing() {
    let signals = if ignores_interrupts() { vec![Signal::TERM] } else { vec![Signal::INT, Signal::TERM] };
    for signal in signals {
        let warpt = Warpt::new();
        let pipe = warpt.path("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let mut command = warpt.command(&["import", LINEAR, "-o", "pipe", "--weights", "w.safetensors"]);
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        // Once the weights are open, the module waits for a reader.
        let files = format!("/proc/{}/fd", child.id());
        let home = std::fs::canonicalize(warpt.path("")).unwrap();
        let is_in_home = |file: std::io::Result<std::fs::DirEntry>| {
            file.and_then(|file| std::fs::read_link(file.path())).is_ok_and(|path| path.starts_with(&home))
        };
        let are_open = || std::fs::read_dir(&files).is_ok_and(|mut files| files.any(is_in_home));
        while !are_open() {
            assert!(child.try_wait().unwrap().is_none(), "it did not wait for a reader");
            std::thread::yield_now();
        }
        kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
        let status = child.wait().unwrap();
        assert!(!status.success());
        let entries = std::fs::read_dir(warpt.path("")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["cache", "config", "data", "pipe"]);
    }
}
