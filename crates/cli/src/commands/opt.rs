//! `warpt opt`: read a model, transform it, and write it in another form.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use warpforge::io::output::is_standard;
use warpforge::{CompileOptions, Device, Plan, Precision, Recipe, Tier, shown};
use warpforge_calibrate::CostModel;
use warpforge_diag::Source;
use warpforge_fusion::cluster::Machine;
use warpforge_ir::legalize::legalize;
use warpforge_ir::refine::refine;
use warpforge_ir::{Module, print};
use warpforge_snakeburger::bytecode::{self, Target, Version};
use warpforge_snakeburger::{Loaded, text};

use super::calibrate::machine;
use super::model::{self, WeightsFile};
use crate::exit::{Exit, Failure, Outcome};
use crate::{output, term};

/// Arguments of `warpt opt`.
#[derive(Debug, Args)]
pub(crate) struct OptArgs {
    /// A StableHLO file or a PyTorch archive; text may hold several modules separated by `// -----`; `-` is standard
    /// input
    file: PathBuf,
    /// What to write [default: bytecode where the name of the output ends in `.bc`, else stablehlo]
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// Version of StableHLO that bytecode is written for: `current`, the newest known; `compatible`, the oldest that has
    /// all the model uses; or a version such as 1.13.0
    #[arg(long, value_name = "VERSION", default_value = "current", value_parser = target)]
    bytecode_version: Target,
    /// Refine the shapes of `@main` for inputs of these types, such as `tensor<2x3xf32>,tensor<i32>`
    #[arg(long, value_name = "TYPES")]
    refine: Option<String>,
    /// Append an optimizer to a model that gives a loss and gradients: sgd, adam or adamw, and settings, such as
    /// `adamw,lr=3e-4,clip=1,schedule=linear,warmup=100,total=1000`
    #[arg(long, value_name = "OPTIMIZER,lr=RATE,…")]
    train: Option<Recipe>,
    /// With --emit fusion or kernels, the device to plan for, on this machine or not: `cpu`, `cuda` or `hip`
    /// [default: cpu for fusion, cuda for kernels]
    #[arg(long, value_name = "DEVICE")]
    device: Option<Device>,
    /// With --emit fusion or kernels, the tier: production, observable or correctness [default: the fastest that the device has]
    #[arg(long, value_name = "TIER")]
    tier: Option<Tier>,
    /// With --emit fusion or kernels, the precision of contractions: model, tf32, bf16, f16 or a quantization recipe
    #[arg(long, value_name = "PRECISION", default_value_t)]
    precision: Precision,
    /// With --emit fusion or kernels, plan a training step that computes its forward pass again, as `warpt run` with this option
    #[arg(long)]
    gradient_checkpointing: bool,
    /// With --emit fusion or kernels, the profile of the machine to plan for, as `warpt calibrate` wrote it: fusion
    /// decisions that are close are its own, and fusion shows predicted times
    #[arg(long, value_name = "PROFILE.json")]
    machine: Option<PathBuf>,
    /// With --emit kernels, what the kernels say about themselves
    #[arg(long, value_enum, default_value_t = Salt::Off)]
    salt: Salt,
    /// Replace the operations of CHLO, such as `chlo.erf`, by StableHLO's own; bytecode has this done always
    #[arg(long)]
    legalize: bool,
    /// With --emit fusion, print JSON for programs
    #[arg(long)]
    json: bool,
    /// Write the weights of an archive to this file and let `@main` take them as arguments, instead of as constants in
    /// the module
    #[arg(long, value_name = "W.safetensors")]
    weights: Option<PathBuf>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// StableHLO text as StableHLO's own tools print it
    Stablehlo,
    /// The same in MLIR's generic form
    Generic,
    /// A portable artifact: the bytecode that StableHLO's tools exchange
    Bytecode,
    /// What fusion makes of the model: its clusters, kernels and bytes moved before and after. Text, or JSON or a picture
    /// where the name of the output ends in `.json` or `.svg`
    Fusion,
    /// The source of the kernels that a GPU runs the model with, each with its cluster
    Kernels,
}

/// What kernels say about themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Salt {
    /// Nothing
    Off,
    /// When each block began and ended
    Timing,
    /// And what it wrote
    Trace,
}

fn target(text: &str) -> Result<Target, String> {
    match text {
        "compatible" => Ok(Target::Compatible),
        "current" => Ok(Target::Version(Version::CURRENT)),
        version => {
            version.parse().map(Target::Version).map_err(|error: bytecode::BadVersion| error.to_string())
        }
    }
}

impl OptArgs {
    /// How the name of the output ends.
    fn ending(&self) -> Option<&str> {
        self.output.as_ref().and_then(|path| path.extension()).and_then(|ending| ending.to_str())
    }

    /// What to write: what was asked for, or what the name of the output says.
    fn emit(&self) -> Emit {
        let by_name = if self.ending() == Some("bc") { Emit::Bytecode } else { Emit::Stablehlo };
        self.emit.unwrap_or(by_name)
    }
}

/// Writes the modules of a file again.
pub(crate) fn run(args: &OptArgs) -> Outcome {
    check_options(args)?;
    let files = [("--output", args.output.as_deref()), ("--weights", args.weights.as_deref())];
    output::takes_stdout(files, false)?;
    output::check(files.map(|(_, path)| path))?;
    if args.emit() == Emit::Bytecode
        && args.output.as_deref().is_none_or(is_standard)
        && std::io::stdout().is_terminal()
    {
        return Err(Failure::bad_input(anyhow!(
            "bytecode is not written to a terminal: name a file with -o"
        )));
    }
    if args.emit() == Emit::Fusion {
        return write(args, &fusion(args)?);
    }
    if args.emit() == Emit::Kernels {
        return write(args, &kernels(args)?);
    }
    // Locations say which node of a model an operation came from: what is not text for people keeps them.
    let keep_locations = args.emit() == Emit::Bytecode;
    let types = args.refine.as_deref().map(text::parse_types).transpose();
    let types = types.map_err(|diagnostics| Failure::bad_input(anyhow!("--refine: {diagnostics}")))?;
    let (loaded, weights_file) = load(args, keep_locations)?;
    let mut modules = Vec::new();
    for loaded in loaded {
        let mut module = loaded.module.map_err(|diagnostics| Failure::bad_input(anyhow!("{diagnostics}")))?;
        if let Some(types) = &types {
            module = refine(&module, "main", types).map_err(|error| {
                Failure::bad_input(anyhow!("{}", error.diagnostic().render(&loaded.source)))
            })?;
        }
        if let Some(recipe) = &args.train {
            module = warpforge_train::step(&module, "main", recipe)
                .map_err(|error| Failure::bad_input(anyhow!("{}: {error}", shown(&args.file))))?;
        }
        if args.legalize || args.emit() == Emit::Bytecode {
            module = legalize(module)
                .map_err(|error| Failure::bad_input(anyhow!("{}: {error}", args.file.display())))?;
        }
        modules.push(module);
    }
    let bytes = match args.emit() {
        Emit::Stablehlo => printed(&modules, print::Form::Pretty),
        Emit::Generic => printed(&modules, print::Form::Generic),
        Emit::Bytecode => artifact(args, &modules)?,
        Emit::Fusion => fusion(args)?,
        Emit::Kernels => kernels(args)?,
    };
    let exit = write(args, &bytes)?;
    weights_file.map_or(Ok(()), model::WeightsFile::finish)?;
    Ok(exit)
}

/// The modules of the file. The weights of an archive are constants of its module, or go to a file.
fn load(args: &OptArgs, keep_locations: bool) -> Result<(Vec<Loaded>, Option<WeightsFile<'_>>), Failure> {
    match model::read(&args.file, keep_locations)? {
        model::Model::Modules(_) if args.weights.is_some() => {
            let text =
                format!("--weights: {} is no archive, its weights are where they are", shown(&args.file));
            Err(Failure::bad_input(anyhow!(text)))
        }
        model::Model::Modules(modules) => Ok((modules, None)),
        model::Model::Archive(imported) => {
            let weights = model::weights_of(&imported);
            let (module, file) = model::with_weights(*imported, args.weights.as_deref(), &args.file)?;
            if weights.0 > 0 {
                let text = model::weights_text(weights, args.weights.as_deref());
                term::remark(&format!("{}: {text}", shown(&args.file)));
            }
            let source = Source::binary(shown(&args.file));
            Ok((vec![Loaded { source, module: Ok(module) }], file))
        }
    }
}

/// Refuses options that would have no effect on what is written.
fn check_options(args: &OptArgs) -> Result<(), Failure> {
    let module = matches!(args.emit(), Emit::Stablehlo | Emit::Generic | Emit::Bytecode);
    if let Some(ending @ ("svg" | "json")) = args.ending().filter(|_| module) {
        return Err(Failure::bad_input(anyhow!("a model is no .{ending} file; --emit fusion writes those")));
    }
    let options = [
        ("--refine", args.refine.is_some(), module, "stablehlo, generic or bytecode"),
        ("--weights", args.weights.is_some(), module, "stablehlo, generic or bytecode"),
        ("--legalize", args.legalize, module, "stablehlo, generic or bytecode"),
        ("--json", args.json, args.emit() == Emit::Fusion, "fusion"),
        ("--device", args.device.is_some(), !module, "fusion or kernels"),
        ("--tier", args.tier.is_some(), !module, "fusion or kernels"),
        ("--machine", args.machine.is_some(), !module, "fusion or kernels"),
        ("--precision", args.precision != Precision::Model, !module, "fusion or kernels"),
        ("--gradient-checkpointing", args.gradient_checkpointing, !module, "fusion or kernels"),
    ];
    let Some((option, _, _, emit)) = options.into_iter().find(|(_, given, fits, _)| *given && !fits) else {
        return Ok(());
    };
    let way = if module { "" } else { "; write the module to a file first, and read that" };
    Err(Failure::bad_input(anyhow!("{option} has an effect with --emit {emit} alone{way}")))
}

fn write(args: &OptArgs, bytes: &[u8]) -> Outcome {
    match &args.output {
        Some(path) => output::write(path, bytes)?,
        None => term::write(bytes)?,
    }
    Ok(Exit::Pass)
}

fn printed(modules: &[Module], form: print::Form) -> Vec<u8> {
    let texts: Vec<String> = modules.iter().map(|module| print::print_as(module, form)).collect();
    texts.join("\n// -----\n\n").into_bytes()
}

/// The plan of the model for a device; decisions that are close are the machine's.
fn plan(args: &OptArgs, device: Device, cost: Option<&CostModel>) -> Result<Plan, Failure> {
    let machine = cost.map(|cost| Arc::new(cost.clone()) as Arc<dyn Machine>);
    let options = CompileOptions {
        device,
        tier: args.tier,
        precision: args.precision,
        machine,
        gradient_checkpointing: args.gradient_checkpointing,
        ..CompileOptions::default()
    };
    let mut model = warpforge::Model::load(&args.file)?;
    if let Some(recipe) = &args.train {
        model = model.train(recipe)?;
    }
    model.plan(&options).map_err(|error| Failure::bad_input(anyhow!("{}: {error}", args.file.display())))
}

/// The cost model of the machine that was named, which need not be this one.
fn cost_model(args: &OptArgs, device: Device) -> Result<Option<CostModel>, Failure> {
    let read = |path| Ok(machine::read(path)?.cost_model(device)?.in_precision(args.precision));
    args.machine.as_deref().map(read).transpose()
}

fn fusion(args: &OptArgs) -> Result<Vec<u8>, Failure> {
    let device = args.device.unwrap_or(Device::Cpu);
    let cost = cost_model(args, device)?;
    let plan = plan(args, device, cost.as_ref())?;
    let mut report = plan.report();
    if let Some(cost) = &cost {
        cost.estimate(&plan, &mut report);
    }
    Ok(match args.ending() {
        Some("svg") => report.picture().into_bytes(),
        ending if args.json || ending == Some("json") => {
            serde_json::to_vec_pretty(&report).map_err(Failure::not_possible)?
        }
        _ => report.to_string().into_bytes(),
    })
}

fn kernels(args: &OptArgs) -> Result<Vec<u8>, Failure> {
    use warpforge_codegen as codegen;
    let device = args.device.unwrap_or(Device::Cuda(0));
    let (dialect, architecture) = match device {
        Device::Cuda(_) => (codegen::Dialect::Cuda, "sm_90"),
        Device::Hip(_) => (codegen::Dialect::Hip, "gfx942"),
        other => {
            let reason = format!("--emit kernels writes the source of kernels for a GPU; {other} has none");
            return Err(Failure::bad_input(anyhow!("{reason}: use --device cuda or hip")));
        }
    };
    let mut options = codegen::Options::new(dialect, architecture);
    options.salt = match args.salt {
        Salt::Off => codegen::Salt::Off,
        Salt::Timing => codegen::Salt::Timing,
        Salt::Trace => codegen::Salt::Trace,
    };
    if args.precision == Precision::Tf32 {
        options.compute_precision = codegen::ComputePrecision::Tf32;
    }
    if args.tier == Some(Tier::Correctness) {
        options.effort = codegen::Effort::Naive;
    }
    let cost = cost_model(args, device)?;
    Ok(codegen::listing(&plan(args, device, cost.as_ref())?, &options).into_bytes())
}

fn artifact(args: &OptArgs, modules: &[Module]) -> Result<Vec<u8>, Failure> {
    let refused = |what: String| Failure::bad_input(anyhow!("{}: {what}", args.file.display()));
    let [module] = modules else {
        return Err(refused(format!("{} modules; an artifact holds one", modules.len())));
    };
    bytecode::write(module, args.bytecode_version).map_err(|error| refused(error.to_string()))
}
