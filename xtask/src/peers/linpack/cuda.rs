//! The linpack suite on a GPU beside PyTorch, in turn.
//!
//! PyTorch's side is carried inside this program, so that it runs where there is no checkout.

use std::path::PathBuf;
use std::process::Command;

use super::super::contests::{self, Destination, Named};
use super::super::table::{Bound, Row};
use super::super::{tools, warpt};
use super::{LinpackArgs, beside, checked_rate};
use crate::command::output;

const PROGRAM: &str = include_str!("../../../peers/linpack_cuda.py");

/// Seconds of one turn of ours: the first solve warms up, the rest count.
const SECONDS: f64 = 3.0;
/// Solves of one turn of PyTorch.
const TIMES: usize = 5;

/// Orders that fill a GPU.
const ORDERS: [usize; 2] = [16_384, 32_768];

/// What every contest needs.
struct Stage {
    warpt: PathBuf,
    python: PathBuf,
    orders: Vec<usize>,
    alternations: usize,
}

const CONTESTS: [Named<Stage>; 2] = [("torch", torch), ("mxp", mixed_precision)];

/// Runs the comparisons on a GPU and prints their ratios.
pub(super) fn run(args: &LinpackArgs) -> anyhow::Result<()> {
    contests::check(&CONTESTS, &args.only)?;
    let stage = Stage {
        warpt: args.warpt.clone().map_or_else(tools::build_warpt, Ok)?,
        python: args.python.clone(),
        orders: if args.orders.is_empty() { ORDERS.to_vec() } else { args.orders.clone() },
        alternations: args.alternations.into(),
    };
    let destination = Destination {
        warpt: &stage.warpt,
        task: "peers linpack --device cuda",
        page: super::PAGE,
        method: &contests::medians(args.alternations.into()),
        update_docs: args.update_docs,
    };
    contests::hold(&CONTESTS, &args.only, &stage, &destination)
}

fn torch(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let ours = |order| stage.ours("linpack_fp64_gpu", order);
    beside(
        ("linpack_fp64_gpu", "torch.linalg"),
        Bound::AtLeast(0.9),
        (&stage.orders, stage.alternations),
        &ours,
        &|order| stage.torch(order),
    )
}

fn mixed_precision(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    beside(
        ("linpack_mxp_gpu", "linpack_fp64_gpu"),
        Bound::AtLeast(2.0),
        (&stage.orders, stage.alternations),
        &|order| stage.ours("linpack_mxp_gpu", order),
        &|order| stage.ours("linpack_fp64_gpu", order),
    )
}

impl Stage {
    /// The rate of a benchmark of ours.
    fn ours(&self, benchmark: &str, order: usize) -> anyhow::Result<f64> {
        let metrics = warpt::measure(&self.warpt, benchmark, SECONDS, &[format!("n={order}")])?;
        warpt::find(&metrics, "gflops", &[])
    }

    /// The rate of PyTorch.
    fn torch(&self, order: usize) -> anyhow::Result<f64> {
        let mut command = Command::new(&self.python);
        command.args(["-c", PROGRAM, &order.to_string(), &TIMES.to_string(), "1"]);
        checked_rate(&output(&mut command)?)
    }
}
