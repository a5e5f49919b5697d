//! `cargo xtask differential`: random programs, evaluated by the reference and by XLA or an engine.

mod engine;
mod generate;
mod inputs;
mod program;
mod xla;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use warpforge::{Device, Tier};
use warpforge_diag::Source;
use warpforge_golden::op_tolerance::difference;
use warpforge_interp::{Interpreter, Options, Value};
use warpforge_ir::Module;
use warpforge_snakeburger::text;
use warpforge_tensor::Tensor;

use engine::Engine;
use program::{Program, Step};
use xla::Xla;

/// Arguments of `cargo xtask differential`.
#[derive(Debug, Args)]
pub(crate) struct DifferentialArgs {
    /// How long to go on
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// The first program; the same number gives the same programs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Operations in a program
    #[arg(long, default_value_t = 12)]
    operations: usize,
    /// Who is compared with the reference
    #[arg(long, value_enum, default_value_t = Against::Xla)]
    against: Against,
    /// With `--against production`, the device that it runs on
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Device,
    /// With `--against production`, another tier than that one
    #[arg(long, value_name = "TIER", default_value = "production")]
    tier: Tier,
    /// A Python that has jax
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Where to keep the modules that show a difference
    #[arg(long, default_value = "target/differential")]
    keep: PathBuf,
    /// Stop after so many differences
    #[arg(long, default_value_t = 1)]
    most: usize,
}

/// Who is compared with the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Against {
    /// XLA, through jaxlib
    Xla,
    /// The production tier of an engine, or another
    Production,
}

/// Another evaluator.
pub(crate) trait Other {
    /// Runs a module; `Ok(Err(text))` is its refusal.
    fn run(
        &mut self,
        module: &str,
        inputs: &[Tensor],
        outputs: &[&program::Ty],
    ) -> anyhow::Result<Result<Vec<Tensor>, String>>;
}

/// What came of the programs so far.
#[derive(Default)]
struct Tally {
    programs: usize,
    operations: BTreeMap<&'static str, usize>,
    refused: usize,
    /// Operations whose result in XLA is another one when they stand alone, and then it is ours.
    context: usize,
    differences: usize,
}

/// Compares programs until the time is over or there are differences enough.
pub(crate) fn run(args: &DifferentialArgs) -> anyhow::Result<()> {
    let mut other: Box<dyn Other> = match args.against {
        Against::Xla => Box::new(Xla::start(&args.python)?),
        Against::Production => Box::new(Engine { device: args.device, tier: args.tier }),
    };
    let end = Instant::now() + Duration::from_secs_f64(args.minutes * 60.0);
    let mut tally = Tally::default();
    let mut seed = args.seed;
    while Instant::now() < end && tally.differences < args.most {
        compare(seed, args, other.as_mut(), &mut tally)?;
        seed += 1;
    }
    let operations: usize = tally.operations.values().sum();
    println!(
        "{} programs from seed {}, {operations} operations of {} kinds, {} refused, \
         {} computed otherwise alone, {} differences",
        tally.programs,
        args.seed,
        tally.operations.len(),
        tally.refused,
        tally.context,
        tally.differences
    );
    for (op, count) in &tally.operations {
        println!("  {op} {count}");
    }
    if tally.differences > 0 {
        bail!("the reference differs; the modules are in {}", args.keep.display());
    }
    Ok(())
}

fn compare(
    seed: u64,
    args: &DifferentialArgs,
    other: &mut dyn Other,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let program = generate::program(&mut rng, args.operations)?;
    let text = program.text();
    tally.programs += 1;
    let flat = match other.run(&text, &program.inputs, &program.outputs().collect::<Vec<_>>())? {
        Ok(flat) => flat,
        // Nearly always XLA lacks an operation on a type; what is wrong with a program shows in its text.
        Err(refusal) => {
            tally.refused += 1;
            eprintln!("seed {seed}: refused: {}", refusal.lines().next().unwrap_or_default());
            return Ok(());
        }
    };
    let findings = match parse(&text) {
        Ok(module) => differences(&module, &program, flat, other, tally)?,
        Err(error) => vec![format!("XLA accepts what we refuse: {error}")],
    };
    if findings.is_empty() {
        return Ok(());
    }
    tally.differences += findings.len();
    std::fs::create_dir_all(&args.keep)?;
    let file = args.keep.join(format!("{seed}.mlir"));
    std::fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    for finding in findings {
        eprintln!("seed {seed}: {finding}");
    }
    Ok(())
}

fn parse(text: &str) -> Result<Module, String> {
    let source = Source::new("random.mlir", text);
    let module = text::parse(&source, &text::Options::default()).map_err(|error| error.to_string())?;
    match warpforge_ir::verify(&module).first() {
        None => Ok(module),
        Some(first) => Err(format!("{first:?}")),
    }
}

/// Evaluates each operation on the operands that XLA had, and compares with what XLA made of them.
fn differences(
    module: &Module,
    program: &Program,
    flat: Vec<Tensor>,
    other: &mut dyn Other,
    tally: &mut Tally,
) -> anyhow::Result<Vec<String>> {
    let interpreter = Interpreter::new(module, Options::default());
    let mut flat = flat.into_iter();
    let theirs: Vec<Vec<Tensor>> =
        program.steps.iter().map(|step| flat.by_ref().take(step.results.len()).collect()).collect();
    let mut findings = Vec::new();
    for (number, step) in program.steps.iter().enumerate() {
        *tally.operations.entry(step.op).or_default() += 1;
        let operands: Vec<&Tensor> =
            step.operands.iter().map(|&value| program.tensor(value, &theirs)).collect();
        let inputs = operands.iter().map(|&operand| Value::Tensor(operand.clone())).collect();
        let ours = match interpreter.run(&format!("op{number}"), inputs) {
            Ok(ours) => ours,
            Err(error) => {
                findings.push(format!("@op{number}: {error}"));
                continue;
            }
        };
        let ours = ours.iter().map(Value::as_tensor).collect::<Result<Vec<_>, _>>()?;
        let Some(text) = first_difference(step, &operands, &ours, &theirs[number]) else { continue };
        // Fused with its neighbours an operation may be rounded elsewhere, or be miscompiled.
        let alone = Program::alone(step, &operands);
        match other.run(&alone.text(), &alone.inputs, &alone.outputs().collect::<Vec<_>>())? {
            Ok(theirs) if first_difference(step, &operands, &ours, &theirs).is_none() => tally.context += 1,
            _ => findings.push(format!("@op{number} ({}): {text}; operands {operands:?}", step.op)),
        }
    }
    Ok(findings)
}

fn first_difference(
    step: &Step,
    operands: &[&Tensor],
    ours: &[&Tensor],
    theirs: &[Tensor],
) -> Option<String> {
    ours.iter().zip(theirs).find_map(|(ours, theirs)| difference(step.tolerance, operands, ours, theirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every program is valid and can be evaluated, whether or not there is an XLA to compare with.
    #[test]
    fn programs_are_valid_and_run() {
        for seed in 0..60 {
            let program = generate::program(&mut fastrand::Rng::with_seed(seed), 20).unwrap();
            let text = program.text();
            let module = parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
            let inputs = program.inputs.iter().cloned().map(Value::Tensor).collect();
            let results = Interpreter::new(&module, Options::default())
                .run("main", inputs)
                .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
            for (result, ty) in results.iter().zip(program.outputs()) {
                assert_eq!(result.as_tensor().unwrap().dims(), ty.dims, "seed {seed}");
            }
        }
    }
}
