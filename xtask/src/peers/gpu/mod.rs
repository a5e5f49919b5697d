//! Models on a GPU beside PyTorch: as it is, compiled, and compiled into CUDA graphs.
//!
//! PyTorch is a Python process of its own (`xtask/peers/gpu`, carried inside this program so that it runs where there is
//! no checkout); ours is `warpt run`. Both have the same weights and inputs, exported by PyTorch, and take turns.

mod peer;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};

use self::peer::Peer;
use self::table::{Row, figures};

/// The programs of the Python side.
const PROGRAMS: [(&str, &str); 3] = [
    ("serve.py", include_str!("../../../peers/gpu/serve.py")),
    ("quantized.py", include_str!("../../../peers/gpu/quantized.py")),
    ("workloads.py", include_str!("../../../peers/gpu/workloads.py")),
];

/// Every way in which PyTorch runs.
const WAYS: [&str; 3] = ["eager", "compile", "graphs"];

/// A workload, and in which precision we run it beside PyTorch's.
#[derive(Debug, Clone, Copy)]
struct Workload {
    name: &'static str,
    precision: &'static str,
    tier: &'static str,
    /// How far our outputs may be from PyTorch's, as a part of their norm.
    near: f64,
    /// Whether it is one of those whose ratios are judged together.
    judged: bool,
}

const fn workload(name: &'static str, precision: &'static str, near: f64) -> Workload {
    Workload { name, precision, tier: "production", near, judged: true }
}

/// Linear layers with quantized weights, by recipe, rows, columns and depth: the shapes of LLaMa 2 70B on eight GPUs that torchao's runner
/// has, with many rows and as in decoding; then products of floats of 8 bits alone. They run where `--only` names them.
const QUANTIZED: [Workload; 26] = [
    workload("float8dq-tensor_16384x1280x8192", "float8dq-tensor", 1e-2),
    workload("float8dq-tensor_16384x8192x1024", "float8dq-tensor", 1e-2),
    workload("float8dq-tensor_16384x7168x8192", "float8dq-tensor", 1e-2),
    workload("float8dq-tensor_16384x8192x3584", "float8dq-tensor", 1e-2),
    workload("float8dq-row_16384x1280x8192", "float8dq-row", 1e-2),
    workload("float8dq-row_16384x8192x1024", "float8dq-row", 1e-2),
    workload("float8dq-row_16384x7168x8192", "float8dq-row", 1e-2),
    workload("float8dq-row_16384x8192x3584", "float8dq-row", 1e-2),
    workload("scaled_product_16384x1280x8192", "model", 1e-2),
    workload("scaled_product_16384x8192x1024", "model", 1e-2),
    workload("scaled_product_16384x7168x8192", "model", 1e-2),
    workload("scaled_product_16384x8192x3584", "model", 1e-2),
    workload("int8dq_16384x7168x8192", "int8dq", 2e-2),
    workload("int8dq_16384x8192x3584", "int8dq", 2e-2),
    // Quantizers of 4 bits differ.
    workload("int4wo-128_1x1280x8192", "int4wo-128", 0.2),
    workload("int4wo-128_1x8192x1024", "int4wo-128", 0.2),
    workload("int4wo-128_1x7168x8192", "int4wo-128", 0.2),
    workload("int4wo-128_1x8192x3584", "int4wo-128", 0.2),
    workload("int4wo-128_1x28672x8192", "int4wo-128", 0.2),
    workload("int4wo-128_16x7168x8192", "int4wo-128", 0.2),
    workload("int4wo-128_64x7168x8192", "int4wo-128", 0.2),
    workload("int4wo-128_16384x7168x8192", "int4wo-128", 0.2),
    workload("int8wo_1x7168x8192", "int8wo", 1e-2),
    workload("int8wo_16384x7168x8192", "int8wo", 1e-2),
    workload("float8wo_1x7168x8192", "float8wo", 1e-2),
    workload("float8wo_16384x7168x8192", "float8wo", 1e-2),
];

const WORKLOADS: [Workload; 14] = [
    workload("elementwise_chain_64M_f32", "model", 1e-5),
    workload("layernorm_softmax_32768x1024_f32", "model", 1e-5),
    workload("linear_gelu_8192x1024x4096_bf16", "model", 1e-2),
    workload("attention_8x16x2048x64_bf16_sdpa", "model", 1e-2),
    workload("attention_8x16x2048x64_bf16_unfused", "model", 2e-2),
    workload("conv_bn_relu_64x256x28_f32", "tf32", 2e-3),
    workload("bert_large_infer_b8_s384_tf32", "tf32", 5e-3),
    workload("bert_large_infer_b8_s384_bf16", "model", 3e-2),
    workload("resnet50_infer_b32_tf32", "tf32", 5e-3),
    workload("llama_1b_prefill_b1_s2048_bf16", "model", 3e-2),
    workload("bert_large_train_b8_s384_tf32", "tf32", 2e-2),
    Workload { judged: false, ..workload("matmul_8192_bf16", "model", 1e-2) },
    Workload { judged: false, ..workload("matmul_4096_f32", "model", 1e-5) },
    Workload { judged: false, tier: "observable", ..workload("matmul_4096_f32", "model", 1e-5) },
];

/// Arguments of `cargo xtask peers gpu`.
#[derive(Debug, Args)]
pub(crate) struct GpuArgs {
    /// Only workloads whose names have one of these in them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Only these ways of PyTorch: eager, compile, graphs
    #[arg(long, value_name = "WAY", value_delimiter = ',')]
    ways: Vec<String>,
    /// How often both have a turn
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// How many runs a turn has
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(2..))]
    times: u16,
    /// A Python that has PyTorch with CUDA, transformers and torchvision
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    python: PathBuf,
    /// The warpt to measure [default: built here in release]
    #[arg(long, value_name = "PROGRAM")]
    warpt: Option<PathBuf>,
    /// The device of ours
    #[arg(long, value_name = "DEVICE", default_value = "cuda")]
    device: String,
    /// Where the exported workloads are kept
    #[arg(long, value_name = "DIR")]
    work: PathBuf,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// Runs the workloads and prints their table.
pub(super) fn run(args: &GpuArgs) -> anyhow::Result<()> {
    if let Some(way) = args.ways.iter().find(|way| !WAYS.contains(&way.as_str())) {
        bail!("--ways {way}: there are {}", WAYS.join(", "));
    }
    let warpt = match &args.warpt {
        Some(warpt) => std::path::absolute(warpt)?,
        None => super::tools::build_warpt()?,
    };
    let work = std::path::absolute(&args.work)?;
    std::fs::create_dir_all(&work)?;
    for (name, text) in PROGRAMS {
        std::fs::write(work.join(name), text).with_context(|| work.join(name).display().to_string())?;
    }
    let mut peer = Peer::start(&args.python, &work)?;
    let copy = peer.ask(&json!({ "do": "copy" }))?["bytes_per_s"].as_f64();
    let mut rows = Vec::new();
    let named = |workload: &Workload| args.only.iter().any(|only| workload.name.contains(only.as_str()));
    let wanted = WORKLOADS.into_iter().filter(|workload| args.only.is_empty() || named(workload));
    for workload in wanted.chain(QUANTIZED.into_iter().filter(named)) {
        let row = contest(&mut peer, &warpt, &work, args, &workload);
        eprintln!("{}", row.line());
        rows.push(row);
    }
    let found = figures(&rows, copy);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&table::json(&rows, copy))?);
    } else {
        println!("{found}");
    }
    let wrong: Vec<String> = rows.iter().filter_map(Row::wrong).collect();
    if !wrong.is_empty() {
        bail!("wrong or missing results of ours:\n{}", wrong.join("\n"));
    }
    Ok(())
}

/// One workload: both sides in turn.
fn contest(peer: &mut Peer, warpt: &Path, work: &Path, args: &GpuArgs, workload: &Workload) -> Row {
    let mut row = Row::new(workload.name, workload.tier, workload.judged, workload.near);
    let name = workload.name;
    if let Err(error) = peer.ask(&json!({ "do": "prepare", "workload": name })) {
        row.problem(format!("not exported: {error}"));
        return row;
    }
    let ways =
        WAYS.into_iter().filter(|way| args.ways.is_empty() || args.ways.iter().any(|wanted| wanted == way));
    let mut ready = Vec::new();
    for way in ways {
        match peer.ask(&json!({ "do": "warm", "way": way })) {
            Ok(_) => ready.push(way),
            Err(error) => row.note(format!("PyTorch {way}: {error}")),
        }
    }
    for _ in 0..args.rounds {
        for way in &ready {
            match peer.ask(&json!({ "do": "time", "way": way, "times": args.times })) {
                Ok(answer) => row.theirs(way, answer["median_ms"].as_f64()),
                Err(error) => row.note(format!("PyTorch {way}: {error}")),
            }
        }
        match ours(warpt, work, args, workload) {
            Ok(record) => row.ours(&record),
            Err(error) => {
                row.problem(format!("{error:#}"));
                break;
            }
        }
    }
    if row.ran() {
        match peer.ask(&json!({ "do": "check", "workload": name })) {
            Ok(answer) => row.distance(answer["distance"].as_f64(), answer["worst"].as_str()),
            Err(error) => row.problem(format!("not compared: {error}")),
        }
    }
    if let Err(error) = peer.ask(&json!({ "do": "forget" })) {
        row.note(error.to_string());
    }
    row
}

/// Our turn: the record of `warpt run`.
fn ours(warpt: &Path, work: &Path, args: &GpuArgs, workload: &Workload) -> anyhow::Result<Value> {
    let home = work.join(workload.name);
    let mut command = Command::new(warpt);
    command.arg("run").arg(home.join("model.pt2")).arg("--inputs").arg(home.join("inputs.safetensors"));
    command.arg("--outputs").arg(home.join("ours.safetensors"));
    command.args(["--device", &args.device, "--tier", workload.tier, "--precision", workload.precision]);
    command.args(["--repeat", &args.times.to_string(), "--json"]);
    let output = command.output().with_context(|| warpt.display().to_string())?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!("warpt ended with {}: {}", output.status, text.trim().lines().last().unwrap_or("no message"));
    }
    serde_json::from_slice(&output.stdout).context("not the record of a run")
}
