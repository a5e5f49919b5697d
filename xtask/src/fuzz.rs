//! `cargo xtask fuzz`: feed mutated files to everything that reads files from strangers.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::command::{cargo, root, run};

/// A fuzz target, and where its first inputs are.
struct Target {
    name: &'static str,
    seeds: &'static [&'static str],
}

const TARGETS: &[Target] = &[
    Target {
        name: "text",
        seeds: &["fuzz/seeds/text", "fuzz/seeds/evaluator", "crates/snakeburger/tests/data"],
    },
    Target { name: "bytecode", seeds: &["fuzz/seeds/bytecode", "crates/snakeburger/tests/data"] },
    Target { name: "evaluator", seeds: &["fuzz/seeds/evaluator"] },
    Target { name: "plan", seeds: &["fuzz/seeds/evaluator", "crates/fusion/tests/plans"] },
    Target { name: "archive", seeds: &["fuzz/seeds/archive"] },
    Target { name: "graph", seeds: &["fuzz/seeds/graph"] },
    Target { name: "sequences", seeds: &["fuzz/seeds/sequences"] },
    Target { name: "alignment", seeds: &["fuzz/seeds/alignment"] },
    Target { name: "microbench", seeds: &["fuzz/seeds/microbench"] },
    Target { name: "gguf", seeds: &["fuzz/seeds/gguf"] },
    Target { name: "image", seeds: &["fuzz/seeds/image", "crates/detection/tests/images"] },
    Target { name: "annotations", seeds: &["fuzz/seeds/annotations"] },
];

/// What makes the compiler count which branches are taken, for libFuzzer to see.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "--cfg=fuzzing",
];

/// Arguments of `cargo xtask fuzz`.
#[derive(Debug, Args)]
pub(crate) struct FuzzArgs {
    /// The targets to run [default: all, one after the other]
    targets: Vec<String>,
    /// How long to run each
    #[arg(long, value_name = "N", default_value_t = 900)]
    seconds: u64,
    /// The most memory that an input may make the target use
    #[arg(long, value_name = "MEGABYTES", default_value_t = 1024)]
    memory: u64,
}

/// Builds the targets with the compiler at hand and runs them. A finding ends the run; its input is kept.
pub(crate) fn run_fuzz(args: &FuzzArgs) -> anyhow::Result<()> {
    let chosen: Vec<&Target> = TARGETS
        .iter()
        .filter(|t| args.targets.is_empty() || args.targets.iter().any(|n| n == t.name))
        .collect();
    if let Some(unknown) = args.targets.iter().find(|name| TARGETS.iter().all(|t| t.name != **name)) {
        let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        bail!("there is no fuzz target `{unknown}`: there are {}", known.join(", "));
    }
    let folder = root().join("fuzz");
    let built = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder.join("target"), PathBuf::from);
    // Apart from what other builds leave: every crate is compiled with counters.
    let built = built.join("fuzz");
    let mut build = cargo();
    build
        .args(["build", "--release", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", &built)
        .env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\u{1f}"))
        // Build scripts and macros must not have the counters: nothing there could take them.
        .args(["--target", &host()?]);
    run(&mut build)?;
    for target in chosen {
        run(&mut fuzzer(target, &built.join(host()?).join("release"), &folder, args)?)?;
    }
    Ok(())
}

fn fuzzer(target: &Target, built: &Path, folder: &Path, args: &FuzzArgs) -> anyhow::Result<Command> {
    let (corpus, artifacts) =
        (folder.join("corpus").join(target.name), folder.join("artifacts").join(target.name));
    for made in [&corpus, &artifacts] {
        std::fs::create_dir_all(made).with_context(|| format!("cannot make {}", made.display()))?;
    }
    let mut command = Command::new(built.join(target.name));
    command
        .current_dir(root())
        .arg(format!("-max_total_time={}", args.seconds))
        .arg(format!("-rss_limit_mb={}", args.memory))
        .args(["-timeout=20", "-max_len=16384", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(&corpus)
        .args(target.seeds);
    Ok(command)
}

/// The machine that the compiler compiles for by itself.
fn host() -> anyhow::Result<String> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let described = crate::command::output(rustc.arg("-vV"))?;
    let host = described.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say which machine it compiles for")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_exists_and_has_inputs() {
        let declared = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        for target in TARGETS {
            assert!(declared.contains(&format!("name = \"{}\"", target.name)), "{}", target.name);
            let inputs = target.seeds.iter().flat_map(|seeds| std::fs::read_dir(root().join(seeds)).unwrap());
            assert!(inputs.count() > 1, "{}", target.name);
        }
        assert_eq!(declared.matches("[[bin]]").count(), TARGETS.len());
    }
}
