//! The linpack suite beside MKL, OpenBLAS and HPL, in turn, with the same orders and threads; on a GPU beside PyTorch.

mod cuda;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;

use super::contests::{self, Destination, Named};
use super::table::{Bound, Contest, Figures, Row};
use super::tools;
use super::warpt::{self, find};
use crate::command::{output, root};
use crate::python;

/// Arguments of `cargo xtask peers linpack`.
#[derive(Debug, Args)]
pub(crate) struct LinpackArgs {
    /// Where to solve: cpu or cuda
    #[arg(long, default_value = "cpu", value_parser = ["cpu", "cuda"])]
    device: String,
    /// Only these contests: mkl, openblas, hpl, mxp; on cuda torch, mxp
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Orders of the matrices [default: 4096,8192; on cuda 16384,32768]
    #[arg(long, value_delimiter = ',')]
    orders: Vec<usize>,
    /// How often each side runs, in turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    alternations: u16,
    /// An existing release build of warpt, instead of building one
    #[arg(long)]
    warpt: Option<PathBuf>,
    /// With --device cuda: a Python that has PyTorch with CUDA
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    python: PathBuf,
    /// Put the figures into docs/benchmarks/linpack.md
    #[arg(long)]
    update_docs: bool,
}

/// The page that has the figures.
const PAGE: &str = "docs/benchmarks/linpack.md";

/// Orders of matrices that a processor solves in seconds.
const ORDERS: [usize; 2] = [4096, 8192];

/// What every contest needs.
struct Stage {
    warpt: PathBuf,
    python: PathBuf,
    orders: Vec<usize>,
    threads: usize,
    alternations: usize,
}

const CONTESTS: [Named<Stage>; 4] =
    [("mkl", mkl), ("openblas", openblas), ("hpl", hpl), ("mxp", mixed_precision)];

/// Runs all comparisons and prints their ratios.
pub(super) fn run(args: &LinpackArgs) -> anyhow::Result<()> {
    if args.device == "cuda" {
        return cuda::run(args);
    }
    contests::check(&CONTESTS, &args.only)?;
    if args.only.is_empty() || args.only.iter().any(|only| only == "hpl") {
        tools::require("hpcc", "hpcc")?;
    }
    let python = match python::environment(&python::LINPACK)? {
        Ok(python) => python,
        Err(reason) => bail!("the libraries from PyPI cannot run: {reason}"),
    };
    let stage = Stage {
        warpt: args.warpt.clone().map_or_else(tools::build_warpt, Ok)?,
        python,
        orders: if args.orders.is_empty() { ORDERS.to_vec() } else { args.orders.clone() },
        threads: std::thread::available_parallelism().map_or(1, Into::into),
        alternations: args.alternations.into(),
    };
    let destination = Destination {
        warpt: &stage.warpt,
        task: "peers linpack",
        page: PAGE,
        method: &contests::medians(args.alternations.into()),
        update_docs: args.update_docs,
    };
    contests::hold(&CONTESTS, &args.only, &stage, &destination)
}

fn mkl(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    stage.beside("MKL dgesv", Bound::AtLeast(0.95), "linpack_fp64_cpu", &|order| stage.library("mkl", order))
}

fn openblas(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let theirs = |order| stage.library("openblas", order);
    stage.beside("OpenBLAS dgesv", Bound::AtLeast(0.95), "linpack_fp64_cpu", &theirs)
}

fn hpl(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let theirs = |order| stage.ours("linpack_external", order);
    stage.beside("HPL of hpcc", Bound::AtLeast(0.95), "linpack_fp64_cpu", &theirs)
}

fn mixed_precision(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let theirs = |order| stage.ours("linpack_fp64_cpu", order);
    stage.beside("linpack_fp64_cpu", Bound::AtLeast(3.0), "linpack_mxp_cpu", &theirs)
}

impl Stage {
    /// A benchmark of ours beside a rate of others, for all orders.
    fn beside(
        &self,
        peer: &str,
        bound: Bound,
        benchmark: &str,
        theirs: &dyn Fn(usize) -> anyhow::Result<f64>,
    ) -> anyhow::Result<Vec<Row>> {
        let ours = |order| self.ours(benchmark, order);
        beside((benchmark, peer), bound, (&self.orders, self.alternations), &ours, theirs)
    }

    /// The rate of a benchmark of ours.
    fn ours(&self, benchmark: &str, order: usize) -> anyhow::Result<f64> {
        let metrics = warpt::measure(&self.warpt, benchmark, 0.1, &[format!("n={order}")])?;
        find(&metrics, "gflops", &[])
    }

    /// The rate of a library.
    fn library(&self, name: &str, order: usize) -> anyhow::Result<f64> {
        let mut command = Command::new(&self.python);
        command.arg(root().join("crates/bench/src/suites/linpack/blas.py")).args([name, &order.to_string()]);
        command.args([self.threads.to_string(), "1".to_owned()]);
        checked_rate(&output(&mut command)?)
    }
}

/// A rate of each side for all orders, each so often in turn. The names are of a benchmark of ours and of its peer.
fn beside(
    (benchmark, peer): (&str, &str),
    bound: Bound,
    (orders, alternations): (&[usize], usize),
    ours: &dyn Fn(usize) -> anyhow::Result<f64>,
    theirs: &dyn Fn(usize) -> anyhow::Result<f64>,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &order in orders {
        let figures = |rate: f64| Figures::from([(format!("N = {order}"), rate)]);
        let contest = Contest {
            name: benchmark,
            peer,
            unit: "GFLOP/s",
            bound,
            theirs: &|| theirs(order).map(figures),
            ours: &|| ours(order).map(figures),
        };
        rows.extend(contest.hold(alternations)?);
    }
    Ok(rows)
}

/// The rate that a program of others printed; its residual must pass HPL's check as ours does.
fn checked_rate(text: &str) -> anyhow::Result<f64> {
    let found: Value = serde_json::from_str(text.trim()).with_context(|| format!("it printed {text}"))?;
    match (found["gflops"].as_f64(), found["residual"].as_f64()) {
        (Some(rate), Some(residual)) if residual < 16.0 => Ok(rate),
        _ => bail!("no right solution: {found}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_needs_a_right_solution() {
        assert_eq!(checked_rate(r#"{"gflops": 12.5, "residual": 0.01}"#).unwrap(), 12.5);
        for wrong in [r#"{"gflops": 12.5, "residual": 16.5}"#, r#"{"gflops": 12.5, "residual": null}"#, "no"]
        {
            assert!(checked_rate(wrong).is_err(), "{wrong}");
        }
    }
}
