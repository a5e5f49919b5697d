//! Judges the conformance files below a folder: `cargo run --release --example conformance -- FOLDER [REASONS]`.

use std::collections::BTreeMap;
use std::path::Path;

use warpforge_interp::Options;
use warpforge_interp::conformance::{Status, run_folder};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let shown: usize = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(20);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let summary = run_folder(Path::new(&folder), &Options::default(), threads)?;
    let mut table: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for case in &summary.cases {
        let (passed, failed) = table.entry(&case.operation).or_default();
        *(if case.status == Status::Passed { passed } else { failed }) += 1;
    }
    for (operation, (passed, failed)) in &table {
        println!("{operation:32} {passed:5} passed {failed:5} not");
    }
    for case in summary.cases.iter().filter(|case| case.status != Status::Passed).take(shown) {
        println!("{}:{}: {}", case.file, case.line, case.reason.as_deref().unwrap_or("no reason"));
    }
    println!("{} passed, {} failed, {} skipped", summary.passed, summary.failed, summary.skipped);
    Ok(())
}
