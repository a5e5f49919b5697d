//! File tests of the pipeline: StableHLO in, clusters out.
//!
//! Each `.mlir` file beside this one begins with the devices to plan for, one a line (`// plan: precision=bf16 converts_operands`, `// plan: without=sort`), and ends with the clusters
//! that each plan has, as comments. `BLESS=1 cargo test -p warpforge-fusion --test plans` writes those anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use warpforge_diag::Source;
use warpforge_fusion::cluster::{Cluster, HoistLimits};
use warpforge_fusion::pipeline::{self, Device};
use warpforge_fusion::{Graph, Node, Op, Precision};
use warpforge_snakeburger::text;
use warpforge_tensor::elementwise::Function;

const HEADER: &str = "// plan:";
const RESULT: &str = "// clusters of";

/// A device that a line of a file describes.
#[derive(Default)]
struct Described {
    precision: Precision,
    converts_operands: bool,
    op_by_op: bool,
    fuses_gradients: bool,
    joins_loops: bool,
    joins_rows: bool,
    multiplies_float8: bool,
    hoists: bool,
    /// Whether grouped convolutions read narrow operands, those of each channel alone where their results are narrow too.
    narrows_groups: bool,
    /// The operations that it has no kernel for.
    without: Vec<String>,
}

impl Described {
    fn parse(line: &str) -> Result<Self, String> {
        let mut described = Self::default();
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some(("precision", name)) => {
                    described.precision = name.parse().map_err(|error| format!("{error}"))?;
                }
                Some(("without", name)) => described.without.push(name.to_owned()),
                None if word == "converts_operands" => described.converts_operands = true,
                None if word == "op_by_op" => described.op_by_op = true,
                None if word == "fuses_gradients" => described.fuses_gradients = true,
                None if word == "joins_loops" => described.joins_loops = true,
                None if word == "joins_rows" => described.joins_rows = true,
                None if word == "multiplies_float8" => described.multiplies_float8 = true,
                None if word == "hoists" => described.hoists = true,
                None if word == "narrows_groups" => described.narrows_groups = true,
                _ => return Err(format!("`{word}` is no capability of a device")),
            }
        }
        Ok(described)
    }
}

impl Device for Described {
    fn precision(&self) -> Precision {
        self.precision
    }

    fn is_op_by_op(&self) -> bool {
        self.op_by_op
    }

    fn converts_operands(&self) -> bool {
        self.converts_operands
    }

    fn narrows_convolution(&self, convolution: &Node, result: Option<&[Function]>) -> bool {
        let Op::Conv(conv) = &convolution.op else { return false };
        let of_each_channel = convolution.dims.last() == Some(&conv.groups);
        conv.groups == 1 || self.narrows_groups && (!of_each_channel || result.is_some())
    }

    fn has_kernel(&self, graph: &Graph, cluster: &Cluster) -> bool {
        let op = &graph.node(cluster.output).op;
        !matches!(op, Op::Opaque(_)) && !self.without.contains(&op.name())
    }

    fn joins_rows(&self) -> bool {
        self.joins_rows
    }

    fn multiplies_float8(&self, _: usize, _: usize) -> bool {
        self.multiplies_float8
    }

    fn joins_loops(&self) -> bool {
        self.joins_loops
    }

    fn hoists(&self) -> Option<HoistLimits> {
        self.hoists.then_some(HoistLimits { added_bytes: 64 << 20, cheap_bytes: 1 << 20 })
    }

    fn fuses(&self, _: &Graph, _: &Cluster) -> bool {
        self.fuses_gradients
    }
}

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of the tests")
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "mlir"))
        .collect();
    files.sort();
    let trial = |path: PathBuf| {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Trial::test(name, move || check(&path))
    };
    libtest_mimic::run(&Arguments::from_args(), files.into_iter().map(trial).collect()).exit();
}

fn check(path: &Path) -> Result<(), Failed> {
    let whole = std::fs::read_to_string(path)?;
    let source = match whole.find(RESULT) {
        Some(at) => whole[..at].trim_end(),
        None => whole.trim_end(),
    };
    let devices: Vec<&str> =
        source.lines().filter_map(|line| line.strip_prefix(HEADER)).map(str::trim).collect();
    if devices.is_empty() {
        return Err(format!("no line begins with `{HEADER}`").into());
    }
    let module = text::parse(&Source::new("case", source), &text::Options::default())
        .map_err(|diagnostics| diagnostics.to_string())?;
    let func = module.function("main").ok_or("there is no @main")?;
    let mut text = format!("{source}\n");
    for device in devices {
        let plan = pipeline::plan(func, &|_| None, &Described::parse(device)?)?;
        let _ =
            writeln!(text, "\n{RESULT} {}", if device.is_empty() { "the model as it is" } else { device });
        for line in plan.report().to_string().lines() {
            let _ = writeln!(text, "// {line}");
        }
    }
    if text == whole {
        return Ok(());
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, text)?;
        return Ok(());
    }
    Err(format!("the clusters are others; BLESS=1 takes them over\n{text}").into())
}
