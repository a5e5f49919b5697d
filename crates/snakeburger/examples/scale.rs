//! How long a file takes to read, verify and print: `scale FILE`.

use std::process::ExitCode;
use std::time::Instant;

use warpforge_diag::Source;
use warpforge_snakeburger::text::{Options, parse};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: scale FILE");
        return ExitCode::from(2);
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::from(2);
        }
    };
    let megabytes = text.len() as f64 / 1e6;
    let source = Source::new(path, text);
    let start = Instant::now();
    let module = match parse(&source, &Options::default()) {
        Ok(module) => module,
        Err(diagnostics) => {
            eprintln!("{diagnostics}");
            return ExitCode::from(2);
        }
    };
    let parsed = start.elapsed().as_secs_f64();
    println!("parse  {parsed:.3} s, {:.0} MB/s, peak {} MB", megabytes / parsed, peak_megabytes());
    let start = Instant::now();
    let errors = warpforge_ir::verify(&module).len();
    println!("verify {:.3} s, {errors} errors", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let printed = warpforge_ir::print::print(&module).len();
    println!("print  {:.3} s, {printed} bytes", start.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}

/// The most memory that this process has had, where the system tells.
fn peak_megabytes() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.map_or("unknown".to_owned(), |kilobytes| (kilobytes / 1000).to_string())
}
