//! Models that come from standard input and from pipes.

use std::io::Write as _;
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::warpt::{Finished, Warpt, finished};

const LINEAR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/linear.pt2");

const DOUBLE: &str = "func.func @main(%x: tensor<2x3xf32> {warpforge.name = \"x\"}) -> tensor<2x3xf32> {
  %0 = stablehlo.add %x, %x : tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}
";

/// Runs with these bytes on standard input.
fn fed(warpt: &Warpt, arguments: &[&str], bytes: &[u8]) -> Finished {
    let mut command = warpt.command(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut input, bytes) = (child.stdin.take().unwrap(), bytes.to_vec());
    let writer = std::thread::spawn(move || drop(input.write_all(&bytes)));
    let done = finished(child.wait_with_output().unwrap());
    writer.join().unwrap();
    done
}

#[test]
fn standard_input_and_pipes_lose_no_bytes() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("model.mlir"), DOUBLE).unwrap();
    assert_eq!(warpt.run(&["opt", "model.mlir", "--emit", "bytecode", "-o", "model.mlir.bc"]).code, 0);
    let expected = warpt.run(&["opt", "model.mlir"]).stdout;
    mknodat(CWD, warpt.path("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    for file in ["model.mlir", "model.mlir.bc"] {
        let bytes = std::fs::read(warpt.path(file)).unwrap();
        for name in ["-", "/dev/stdin"] {
            let done = fed(&warpt, &["opt", name], &bytes);
            assert_eq!((done.code, done.stdout.as_str()), (0, expected.as_str()), "{file}: {}", done.stderr);
            let done = fed(&warpt, &["run", name, "--seed", "1", "--json"], &bytes);
            assert_eq!(done.code, 0, "{file}: {}", done.stderr);
            assert_eq!(fed(&warpt, &["check", name], &bytes).code, 0, "{file}");
        }
        let path = warpt.path("pipe");
        let writer = std::thread::spawn(move || std::fs::write(path, bytes).unwrap());
        let done = warpt.run(&["opt", "pipe"]);
        assert_eq!((done.code, done.stdout.as_str()), (0, expected.as_str()), "{file}: {}", done.stderr);
        writer.join().unwrap();
    }
    let done = fed(&warpt, &["run", "-", "-", "--seed", "1"], DOUBLE.as_bytes());
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    assert!(done.stderr.contains("give `-` once"), "{}", done.stderr);
    let done = fed(&warpt, &["check", "-"], b"func.func @main(");
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("<stdin>:1:"), "{}", done.stderr);
}

#[test]
fn what_must_be_mapped_says_so() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("model.mlir"), DOUBLE).unwrap();
    let archive = std::fs::read(LINEAR).unwrap();
    for arguments in [
        &["run", "-", "--seed", "1"][..],
        &["run", "/dev/stdin", "--seed", "1"],
        &["check", "-"],
        &["import", "-", "-o", "out.mlir"],
        &["import", "/dev/stdin", "-o", "out.mlir"],
        &["run", "model.mlir", "--inputs", "/dev/stdin"],
        &["run", "model.mlir", "--inputs", "-"],
    ] {
        let done = fed(&warpt, arguments, &archive);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains("cannot be read from a pipe: save it first"), "{}", done.stderr);
    }
    let done = fed(&warpt, &["run", "-", "--seed", "1"], &archive);
    assert!(done.stderr.contains("<stdin>: a PyTorch archive cannot be read"), "{}", done.stderr);
}

/// As behind `2>&1 | head`: what nobody reads any more is no error, and the exit code stays what it was.
#[test]
fn a_closed_standard_error_changes_no_exit_code() {
    let warpt = Warpt::new();
    for (arguments, code) in
        [(&["run", "nowhere.mlir"][..], 2), (&["check", LINEAR], 0), (&["benchmark", "history"], 0)]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = warpt.command(arguments).stdout(Stdio::null()).stderr(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}

/// As behind `| head -1`.
#[test]
fn a_trace_that_nobody_reads_to_its_end_is_no_failure() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("model.mlir"), DOUBLE).unwrap();
    let arguments = ["run", "model.mlir", "--seed", "1", "--trace", "-", "--trace-tensors", "t.safetensors"];
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let done = finished(warpt.command(&arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap());
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(warpt.path("t.safetensors").is_file());
}
