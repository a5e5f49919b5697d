//! One graph with its inputs, and what PyTorch computed.

use std::collections::BTreeMap;

use serde_json::Value;
use warpforge_interp::{Interpreter, Options, Value as Evaluated};
use warpforge_ir::signature::Signature;
use warpforge_snakegrinder::{Archive, ImportOptions};
use warpforge_tensor::compare::{Criterion, Tolerance, compare};
use warpforge_tensor::io::carrier;
use warpforge_tensor::{Blob, ElementType, FloatType, Tensor};

use crate::archive;
use crate::program;

/// A case of the files.
pub(crate) struct Case {
    /// The operation that it is for.
    pub(crate) op: String,
    line: usize,
    program: String,
    shapes: BTreeMap<String, Vec<u64>>,
    dynamic: bool,
    inputs: BTreeMap<String, Tensor>,
    outputs: BTreeMap<String, Tensor>,
}

impl Case {
    /// The case of a line; takes its tensors out of those of the family.
    pub(crate) fn new(line: &str, at: usize, tensors: &mut BTreeMap<String, Tensor>) -> Result<Self, String> {
        let graph: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let op = graph["op"].as_str().ok_or("it names no operation")?.to_owned();
        let mut taken = |side: &str| -> BTreeMap<String, Tensor> {
            let prefix = format!("{at}.{side}.");
            let mut own = tensors.split_off(&prefix);
            let after = own.keys().find(|name| !name.starts_with(&prefix)).cloned();
            if let Some(after) = after {
                tensors.append(&mut own.split_off(&after));
            }
            own.into_iter().map(|(name, tensor)| (name[prefix.len()..].to_owned(), tensor)).collect()
        };
        let (inputs, outputs) = (taken("in"), taken("out"));
        if outputs.is_empty() {
            return Err(format!("{op} has no output to compare with"));
        }
        Ok(Self {
            op,
            line: at + 1,
            program: program::program(&graph).to_string(),
            shapes: program::shapes(&graph),
            dynamic: graph.get("ranges").is_some(),
            inputs,
            outputs,
        })
    }

    /// Imports, evaluates and compares. A graph with dynamic sizes is also imported for the sizes of the inputs.
    pub(crate) fn judge(&self) -> Result<(), String> {
        let mut ways = vec![ImportOptions { shapes: Some(self.shapes.clone()) }];
        if self.dynamic {
            ways.push(ImportOptions::default());
        }
        for options in &ways {
            let how = if options.shapes.is_some() { "" } else { ", with dynamic sizes" };
            self.judge_as(options).map_err(|why| format!("line {}{how}: {why}", self.line))?;
        }
        Ok(())
    }

    fn judge_as(&self, options: &ImportOptions) -> Result<(), String> {
        let archive =
            Archive::from_blob(Blob::from(archive::around(&self.program))).map_err(|e| e.to_string())?;
        let imported = archive.import(options).map_err(|error| error.to_string())?;
        let broken = warpforge_ir::verify(&imported.module);
        if let Some(first) = broken.first() {
            return Err(format!("the module breaks {} rules, first {first:?}", broken.len()));
        }
        let signature = Signature::of(imported.module.function("main").ok_or("there is no @main")?);
        let arguments = signature.arguments.iter().map(|argument| {
            let tensor =
                self.inputs.get(&argument.name).ok_or_else(|| format!("no value for `{}`", argument.name))?;
            let element =
                argument.ty.as_tensor().and_then(|ty| ty.element().plain()).ok_or("no tensor argument")?;
            carried(tensor, element).map(Evaluated::from)
        });
        let arguments = arguments.collect::<Result<_, String>>()?;
        let results = Interpreter::new(&imported.module, Options::default())
            .run("main", arguments)
            .map_err(|error| error.to_string())?;
        let mut found = BTreeMap::new();
        for (output, value) in signature.results.iter().zip(&results) {
            found.insert(output.name.as_str(), value.as_tensor().map_err(|error| error.to_string())?);
        }
        if let Some(more) = found.keys().find(|name| !self.outputs.contains_key(**name)) {
            return Err(format!("PyTorch has no output `{more}`"));
        }
        for (name, expected) in &self.outputs {
            let own = found.get(name.as_str()).ok_or_else(|| format!("there is no output `{name}`"))?;
            held(own, expected).map_err(|why| format!("`{name}`: {why}"))?;
        }
        Ok(())
    }
}

/// A tensor as the module has it, from one that may carry its elements in another type.
fn carried(tensor: &Tensor, element: ElementType) -> Result<Tensor, String> {
    let carried = carrier::from_carrier(tensor, element).map_err(|error| error.to_string())?;
    Ok(carried.unwrap_or_else(|| tensor.clone()))
}

/// Holds a result against PyTorch's: integers exactly, floats relative to the largest value.
fn held(own: &Tensor, expected: &Tensor) -> Result<(), String> {
    let expected = carried(expected, own.element_type())?;
    let tolerance = match own.element_type().float_part() {
        None => Tolerance::Exact,
        Some(FloatType::F64) => Tolerance::Scaled { rtol: 1e-12 },
        Some(FloatType::F32) => Tolerance::Scaled { rtol: 1e-5 },
        Some(part) => {
            Tolerance::Within { rtol: 0.0, atol: 0.0, scaled: part.format().epsilon() / 2.0, ulp: 1 }
        }
    };
    let report = compare(own, &expected, Criterion::new(tolerance)).map_err(|error| error.to_string())?;
    if report.passed() {
        return Ok(());
    }
    let worst = report.worst.as_ref().or(report.first.as_ref());
    Err(format!(
        "{} of {} elements differ, scale {:.3e}, largest difference {:.3e}, worst {worst:?}",
        report.mismatches, report.count, report.scale, report.max_absolute
    ))
}
