//! The linpack suite beside MKL, OpenBLAS and HPL, in turn, with the same orders and threads.

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
    /// Only these contests: mkl, openblas, hpl, mxp
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Orders of the matrices
    #[arg(long, value_delimiter = ',', default_value = "4096,8192")]
    orders: Vec<usize>,
    /// How often each side runs, in turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    alternations: u16,
    /// An existing release build of warpt, instead of building one
    #[arg(long)]
    warpt: Option<PathBuf>,
    /// Put the figures into docs/benchmarks/linpack.md
    #[arg(long)]
    update_docs: bool,
}

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
        orders: args.orders.clone(),
        threads: std::thread::available_parallelism().map_or(1, Into::into),
        alternations: args.alternations.into(),
    };
    let destination = Destination {
        warpt: &stage.warpt,
        task: "peers linpack",
        page: "docs/benchmarks/linpack.md",
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
        let mut rows = Vec::new();
        for &order in &self.orders {
            let figures = |rate: f64| Figures::from([(format!("N = {order}"), rate)]);
            let contest = Contest {
                name: benchmark,
                peer,
                unit: "GFLOP/s",
                bound,
                theirs: &|| theirs(order).map(figures),
                ours: &|| self.ours(benchmark, order).map(figures),
            };
            rows.extend(contest.hold(self.alternations)?);
        }
        Ok(rows)
    }

    /// The rate of a benchmark of ours.
    fn ours(&self, benchmark: &str, order: usize) -> anyhow::Result<f64> {
        let metrics = warpt::measure(&self.warpt, benchmark, 0.1, &[format!("n={order}")])?;
        find(&metrics, "gflops", &[])
    }

    /// The rate of a library; its residual must pass HPL's check as ours does.
    fn library(&self, name: &str, order: usize) -> anyhow::Result<f64> {
        let mut command = Command::new(&self.python);
        command.arg(root().join("xtask/peers/linpack.py")).args([name, &order.to_string()]);
        command.args([self.threads.to_string(), "1".to_owned()]);
        let text = output(&mut command)?;
        let found: Value = serde_json::from_str(text.trim()).with_context(|| format!("it printed {text}"))?;
        match (found["gflops"].as_f64(), found["residual"].as_f64()) {
            (Some(rate), Some(residual)) if residual < 16.0 => Ok(rate),
            _ => bail!("no right solution: {found}"),
        }
    }
}
