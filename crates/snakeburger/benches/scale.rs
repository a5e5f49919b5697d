//! How fast and in how much memory large modules are read: `cargo bench -p warpforge-snakeburger`.
//!
//! Writes three files to a temporary folder, and reads, verifies and prints each in a process of its own, so that the
//! peak of its memory is that of one file.

use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use warpforge_ir::print::Form;
use warpforge_snakeburger::load_file;
use warpforge_snakeburger::text::Options;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Writes a file.
type Writer = fn(&Path) -> Outcome;

/// Size of the files that are mostly constants.
const CONSTANT_BYTES: usize = 500_000_000;
/// Elements of one constant.
const ELEMENTS: usize = 1_000_000;
/// Operations of the file that is mostly operations.
const OPERATIONS: usize = 100_000;

fn main() -> Outcome {
    // Cargo adds `--bench`.
    if let Some(file) = std::env::args().skip(1).find(|argument| !argument.starts_with('-')) {
        return measure(Path::new(&file));
    }
    let folder = tempfile::tempdir()?;
    let cases: [(&str, Writer); 3] =
        [("hexadecimal", write_hexadecimal), ("decimal", write_decimal), ("operations", write_operations)];
    for (name, write) in cases {
        let file = folder.path().join(name).with_extension("mlir");
        write(&file)?;
        println!("{name}, {:.0} MB", std::fs::metadata(&file)?.len() as f64 / 1e6);
        let status = Command::new(std::env::current_exe()?).arg(&file).status()?;
        if !status.success() {
            return Err(format!("{name} ended with {status}").into());
        }
        std::fs::remove_file(&file)?;
    }
    Ok(())
}

/// Reads the file as every command does. The time includes reading it from the disk, or from the system's cache.
fn measure(file: &Path) -> Outcome {
    let bytes = std::fs::metadata(file)?.len() as f64;
    let start = Instant::now();
    let mut loaded = load_file(file, &Options::default())?;
    let parsed = start.elapsed().as_secs_f64();
    let module = loaded.pop().ok_or("the file is empty")?.module.map_err(|found| found.to_string())?;
    let memory = peak_bytes().map_or("unknown".to_owned(), |peak| format!("{:.2}", peak / bytes));
    println!(
        "  parse  {parsed:.3} s, {:.0} MB/s, peak memory / size of the file: {memory}",
        bytes / 1e6 / parsed
    );
    let start = Instant::now();
    let errors = warpforge_ir::verify(&module).len();
    println!("  verify {:.3} s, {errors} errors", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let mut out = Counted(0);
    warpforge_ir::print::printed(&module, Form::Pretty).write_to(&mut out)?;
    println!("  print  {:.3} s, {:.0} MB", start.elapsed().as_secs_f64(), out.0 as f64 / 1e6);
    Ok(())
}

/// Counts what is written to it.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The most memory that this process has had, where the system tells.
fn peak_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<f64>().ok()? * 1024.0)
}

/// Numbers between -1 and 1 that look random enough.
fn values() -> impl Iterator<Item = f32> {
    (0..ELEMENTS as u32).map(|index| index.wrapping_mul(2_654_435_761) as i32 as f32 / 2f32.powi(31))
}

fn write_hexadecimal(file: &Path) -> Outcome {
    let digits = values().flat_map(f32::to_le_bytes).fold(String::from("\"0x"), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    });
    write_constants(file, &(digits + "\""))
}

fn write_decimal(file: &Path) -> Outcome {
    let list: Vec<String> = values().map(|value| format!("{value:.7e}")).collect();
    write_constants(file, &format!("[{}]", list.join(", ")))
}

fn write_constants(file: &Path, literal: &str) -> Outcome {
    let mut out = BufWriter::new(std::fs::File::create(file)?);
    writeln!(out, "func.func @main() -> tensor<{ELEMENTS}xf32> {{")?;
    for index in 0..CONSTANT_BYTES.div_ceil(literal.len()) {
        writeln!(out, "  %{index} = stablehlo.constant dense<{literal}> : tensor<{ELEMENTS}xf32>")?;
    }
    writeln!(out, "  return %0 : tensor<{ELEMENTS}xf32>\n}}")?;
    Ok(out.flush()?)
}

fn write_operations(file: &Path) -> Outcome {
    let mut out = BufWriter::new(std::fs::File::create(file)?);
    let (x, y, z) = ("tensor<8x16xf32>", "tensor<16x8xf32>", "tensor<8x8xf32>");
    writeln!(out, "func.func @main(%arg0: {x}) -> {x} {{\n  %0 = stablehlo.add %arg0, %arg0 : {x}")?;
    let mut last = 0;
    while last + 4 < OPERATIONS {
        let (a, b, c, d) = (last + 1, last + 2, last + 3, last + 4);
        writeln!(out, "  %{a} = stablehlo.transpose %{last}, dims = [1, 0] : ({x}) -> {y}")?;
        writeln!(
            out,
            "  %{b} = stablehlo.dot_general %{last}, %{a}, contracting_dims = [1] x [0] : ({x}, {y}) -> {z}"
        )?;
        writeln!(out, "  %{c} = stablehlo.tanh %{b} : {z}")?;
        writeln!(
            out,
            "  %{d} = stablehlo.dot_general %{c}, %{last}, contracting_dims = [1] x [0] : ({z}, {x}) -> {x}"
        )?;
        last = d;
    }
    writeln!(out, "  return %{last} : {x}\n}}")?;
    Ok(out.flush()?)
}
