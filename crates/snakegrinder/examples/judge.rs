//! Imports archives, evaluates them on the reference and compares with PyTorch's own outputs.
//!
//! Each argument is a folder with `model.pt2` and `model.golden/{inputs,outputs}.safetensors`. With `--text FILE` the
//! module of the last folder is written there; with `--import` nothing is evaluated; with `--dynamic` dimensions stay open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use warpforge_interp::{Interpreter, Options, Value};
use warpforge_ir::print::print;
use warpforge_ir::signature::Signature;
use warpforge_snakegrinder::{ImportOptions, open};
use warpforge_tensor::compare::{Criterion, Tolerance, compare};
use warpforge_tensor::io::safetensors;
use warpforge_tensor::{ElementType, Tensor};

/// Of the output's scale.
const TOLERANCE: f64 = 1e-5;

fn main() -> ExitCode {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut text = None;
    let mut evaluate = true;
    let mut dynamic = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--text" => text = arguments.next(),
            "--import" => evaluate = false,
            "--dynamic" => dynamic = true,
            _ => folders.push(argument.into()),
        }
    }
    let mut failed = 0;
    for folder in &folders {
        let verdict = judge(folder, text.as_deref(), evaluate, dynamic);
        failed += usize::from(verdict.is_err());
        match verdict {
            Ok(note) => println!("PASS {}: {note}", folder.display()),
            Err(why) => println!("FAIL {}: {why}", folder.display()),
        }
    }
    println!("{} passed, {failed} failed", folders.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn judge(folder: &Path, text: Option<&str>, evaluate: bool, dynamic: bool) -> Result<String, String> {
    let shown = |error: &dyn std::fmt::Display| error.to_string();
    let golden = folder.join("model.golden");
    let inputs = safetensors::read(&golden.join("inputs.safetensors")).map_err(|e| shown(&e))?;
    let expected = safetensors::read(&golden.join("outputs.safetensors")).map_err(|e| shown(&e))?;
    let archive = open(&folder.join("model.pt2")).map_err(|e| shown(&e))?;
    let shapes = inputs
        .iter()
        .map(|(name, tensor)| (name.clone(), tensor.dims().iter().map(|&dim| dim as u64).collect()))
        .collect();
    let started = std::time::Instant::now();
    let shapes = (!dynamic).then_some(shapes);
    let imported = archive.import(&ImportOptions { shapes }).map_err(|e| shown(&e))?;
    let import_time = started.elapsed();
    if let Some(path) = text {
        std::fs::write(path, print(&imported.module)).map_err(|e| shown(&e))?;
    }
    let broken = warpforge_ir::verify(&imported.module);
    if let Some(first) = broken.first() {
        return Err(format!("the module breaks {} rules, first {first:?}", broken.len()));
    }
    if !evaluate {
        return Ok(format!("import {import_time:.0?}"));
    }
    let main = imported.module.function("main").ok_or("no @main")?;
    let signature = Signature::of(main);
    let arguments: Vec<Value> = signature
        .arguments
        .iter()
        .map(|argument| {
            let tensor = inputs.get(&argument.name).or_else(|| imported.weights.get(&argument.name));
            tensor.cloned().map(Value::from).ok_or_else(|| format!("no value for `{}`", argument.name))
        })
        .collect::<Result<_, _>>()?;
    let started = std::time::Instant::now();
    let results = Interpreter::new(&imported.module, Options::default())
        .run("main", arguments)
        .map_err(|e| shown(&e))?;
    let run_time = started.elapsed();
    let mut found = BTreeMap::new();
    for (output, value) in signature.results.iter().zip(results) {
        found.insert(output.name.clone(), value.as_tensor().map_err(|e| shown(&e))?.clone());
    }
    let worst = compare_all(&found, &expected)?;
    Ok(format!("error {worst:.1e} of scale, import {import_time:.0?}, run {run_time:.0?}"))
}

/// Narrow floats are judged by steps of their type, integers exactly.
fn criterion(element: ElementType) -> Criterion {
    let tolerance = match element.float_part() {
        None => Tolerance::Exact,
        Some(part) if part.format().bits() < 32 => {
            Tolerance::Within { rtol: 0.0, atol: 0.0, scaled: part.format().epsilon() / 2.0, ulp: 1 }
        }
        Some(_) => Tolerance::Scaled { rtol: TOLERANCE },
    };
    Criterion::new(tolerance)
}

fn compare_all(found: &BTreeMap<String, Tensor>, expected: &BTreeMap<String, Tensor>) -> Result<f64, String> {
    let mut worst = 0.0f64;
    if expected.is_empty() {
        return Err("nothing to compare with".to_owned());
    }
    for (name, tensor) in expected {
        let own = found.get(name).ok_or_else(|| format!("no output `{name}`, only {:?}", found.keys()))?;
        let report = compare(own, tensor, criterion(tensor.element_type()))
            .map_err(|error| format!("`{name}`: {error}"))?;
        if !report.passed() {
            let first = report.worst.as_ref().or(report.first.as_ref());
            return Err(format!(
                "`{name}`: {} of {} elements differ, scale {:.3e}, max abs {:.3e}, worst {first:?}",
                report.mismatches, report.count, report.scale, report.max_absolute
            ));
        }
        if report.scale > 0.0 {
            worst = worst.max(report.max_absolute / report.scale);
        }
    }
    Ok(worst)
}
