//! One program with its inputs and what JAX made of them.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use serde_json::Value;
use warpforge::io::{carrier, safetensors};
use warpforge::{
    CompileOptions, Criterion, ElementType, FloatType, Inputs, Model, Tensor, Tolerance, compare,
};

/// The forms that a program is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `jax.jit(f).lower(…).as_text()`.
    Text,
    /// `jax.export`'s portable bytecode.
    Bytecode,
}

impl Form {
    pub(crate) const ALL: [Form; 2] = [Form::Text, Form::Bytecode];
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Form::Text => "text",
            Form::Bytecode => "bytecode",
        })
    }
}

/// The files of one program.
pub(crate) struct Case {
    pub(crate) name: String,
    text: PathBuf,
    bytecode: PathBuf,
    inputs: PathBuf,
    outputs: PathBuf,
}

/// How a program came out.
pub(crate) enum Verdict {
    /// The outputs could be compared.
    Judged {
        /// Largest difference, as a part of its output's largest magnitude.
        error: f64,
        /// The most that its type allows.
        allowed: f64,
        /// What is outside.
        mismatch: Option<String>,
    },
    /// It did not run, or gave something of another type.
    Failed(String),
}

impl Verdict {
    pub(crate) fn passed(&self) -> bool {
        matches!(self, Verdict::Judged { mismatch: None, .. })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Judged { mismatch: None, .. } => f.write_str("passed"),
            Verdict::Judged { mismatch: Some(text), .. } | Verdict::Failed(text) => {
                write!(f, "FAILED: {text}")
            }
        }
    }
}

impl Case {
    /// The version of JAX and the cases that are in a folder.
    pub(crate) fn list(folder: &Path) -> anyhow::Result<(String, Vec<Case>)> {
        let path = folder.join("cases.json");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let listing: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let field = |case: &Value, name: &str| {
            case[name].as_str().map(str::to_owned).with_context(|| format!("a case without `{name}`"))
        };
        let case = |case: &Value| {
            Ok(Case {
                name: field(case, "name")?,
                text: folder.join(field(case, "text")?),
                bytecode: folder.join(field(case, "bytecode")?),
                inputs: folder.join(field(case, "inputs")?),
                outputs: folder.join(field(case, "outputs")?),
            })
        };
        let cases = listing["cases"].as_array().context("no cases")?;
        let cases = cases.iter().map(case).collect::<anyhow::Result<_>>()?;
        Ok((listing["jax"].as_str().unwrap_or("?").to_owned(), cases))
    }

    /// Runs one form and compares.
    pub(crate) fn judge(&self, form: Form) -> Verdict {
        self.try_judge(form).unwrap_or_else(|error| Verdict::Failed(format!("{error:#}")))
    }

    fn try_judge(&self, form: Form) -> anyhow::Result<Verdict> {
        let path = match form {
            Form::Text => &self.text,
            Form::Bytecode => &self.bytecode,
        };
        let compiled = Model::load(path)?.compile(&CompileOptions::default())?;
        let outputs = compiled.run(Inputs::from(safetensors::read(&self.inputs)?))?;
        let expected = safetensors::read(&self.outputs)?;
        if expected.len() != outputs.len() {
            let (ours, theirs) = (outputs.len(), expected.len());
            return Err(anyhow!("{ours} outputs where JAX gives {theirs}"));
        }
        let (mut worst, mut limit, mut mismatch) = (0.0f64, 0.0f64, None);
        for (position, (_, actual)) in outputs.iter().enumerate() {
            let name = format!("out{position}");
            let expected = expected.get(&name).with_context(|| format!("JAX has no {name}"))?;
            let carried = carrier::from_carrier(expected, actual.element_type())?;
            let expected = carried.as_ref().unwrap_or(expected);
            let allowed = allowed(actual.element_type());
            let criterion = Criterion::new(Tolerance::Scaled { rtol: allowed });
            let report = compare(actual, expected, criterion).with_context(|| name.clone())?;
            let scale = scale(expected);
            let error = if scale > 0.0 { report.max_absolute / scale } else { report.max_absolute };
            (worst, limit) = (worst.max(error), limit.max(allowed));
            if let Some(first) = report.first.filter(|_| mismatch.is_none()) {
                let (ours, theirs, at) = (&first.actual, &first.expected, &first.index);
                mismatch = Some(format!("{name}{at:?} is {ours}, not {theirs}"));
            }
        }
        Ok(Verdict::Judged { error: worst, allowed: limit, mismatch })
    }
}

/// How far an output may be from JAX's, as a part of its largest magnitude: room for sums in another order and for
/// functions that XLA approximates.
fn allowed(element: ElementType) -> f64 {
    match element.float_part() {
        Some(FloatType::F64) => 1e-12,
        Some(FloatType::F32) => 1e-5,
        Some(FloatType::F16) => 2e-3,
        Some(FloatType::Bf16) => 1.6e-2,
        Some(_) => 0.25,
        None => 0.0,
    }
}

fn scale(tensor: &Tensor) -> f64 {
    let magnitude = |value: warpforge::Scalar| {
        let (re, im) = value.to_complex();
        re.hypot(im)
    };
    tensor.iter().map(magnitude).filter(|value| value.is_finite()).fold(0.0, f64::max)
}
