//! `cpu_flops` beside a register-only loop in C.

use std::process::Command;

use super::{Stage, find, printed};
use crate::command::output;
use crate::peers::table::{Bound, Contest, Figures, Row};
use crate::peers::tools;

const SECONDS: f64 = 4.0;

/// f32 on one core and on all.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let fma = tools::compile("fma", &["-pthread"], stage.folder.path())?;
    let all = std::thread::available_parallelism()?.to_string();
    let theirs = || {
        let rate = |threads: &str| printed(&output(Command::new(&fma).args([threads, "1"]))?, "f32");
        Ok(Figures::from([
            ("f32, one core".to_owned(), rate("1")?),
            ("f32, all cores".to_owned(), rate(&all)?),
        ]))
    };
    let ours = || {
        let params = ["kernels=fma", "dtypes=f32"].map(str::to_owned);
        let metrics = stage.measure("cpu_flops", SECONDS, &params)?;
        let rate = |scope| find(&metrics, "gflops", &[("dtype", "f32"), ("kernel", "fma"), ("scope", scope)]);
        Ok(Figures::from([
            ("f32, one core".to_owned(), rate("one_core")?),
            ("f32, all cores".to_owned(), rate("all_cores")?),
        ]))
    };
    Contest {
        name: "cpu_flops",
        peer: "FMA loop in C",
        unit: "GFLOP/s",
        bound: Bound::AtLeast(0.9),
        theirs: &theirs,
        ours: &ours,
    }
    .hold(stage.alternations)
}
