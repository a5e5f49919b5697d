//! Modules of operators in a chain.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use warpforge::{Shape, Tensor};
use warpforge_tensor::{ElementType, FloatType};

use crate::error::Result;

/// An argument of a module.
#[derive(Debug, Clone)]
struct Argument {
    name: &'static str,
    dims: Vec<usize>,
    element: &'static str,
    /// Whether it is known when compiling.
    weight: bool,
    /// The type that an input is stored in, where it is widened first.
    stored: Option<&'static str>,
}

/// An operator of the chain.
#[derive(Debug, Clone)]
struct Operator {
    name: &'static str,
    lines: String,
    result: String,
}

/// A module in the making: arguments, and operators one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModuleText {
    arguments: Vec<Argument>,
    operators: Vec<Operator>,
    /// The type that the last result is rounded to.
    rounded: Option<&'static str>,
}

/// A tensor type in text.
pub(super) fn ty(dims: &[usize], element: &str) -> String {
    let dims: String = dims.iter().map(|dim| format!("{dim}x")).collect();
    format!("tensor<{dims}{element}>")
}

impl ModuleText {
    /// Adds an input of a run.
    pub(super) fn input(mut self, name: &'static str, dims: &[usize], element: &'static str) -> Self {
        self.arguments.push(Argument { name, dims: dims.to_vec(), element, weight: false, stored: None });
        self
    }

    /// Adds a weight, which is known when compiling.
    pub(super) fn weight(mut self, name: &'static str, dims: &[usize], element: &'static str) -> Self {
        self.arguments.push(Argument { name, dims: dims.to_vec(), element, weight: true, stored: None });
        self
    }

    /// Adds an operator: its lines, the last of which defines `%NAME` of this type.
    pub(super) fn operator(mut self, name: &'static str, ty: &str, lines: String) -> Self {
        self.operators.push(Operator { name, lines, result: ty.to_owned() });
        self
    }

    /// The same module on inputs of f32 that are stored in a narrower type: a contraction in that type reads them as they are, and
    /// nothing has to round them first.
    pub(crate) fn stored_as(mut self, element: &'static str) -> Self {
        for argument in
            self.arguments.iter_mut().filter(|argument| !argument.weight && argument.element == "f32")
        {
            argument.stored = Some(element);
        }
        self
    }

    /// The same module that rounds its result of f32, as a model does where the next contraction reads it.
    pub(crate) fn rounded_to(mut self, element: &'static str) -> Self {
        self.rounded = Some(element);
        self
    }

    /// The names of the operators.
    pub(crate) fn operators(&self) -> Vec<&'static str> {
        self.operators.iter().map(|operator| operator.name).collect()
    }

    /// The module; unfused, it gives the result of every operator.
    pub(crate) fn text(&self, unfused: bool) -> String {
        let argument = |argument: &Argument| {
            let Argument { name, dims, element, weight, stored } = argument;
            let role = if *weight { ", warpforge.role = \"parameter\"" } else { "" };
            let (suffix, element) = stored.map_or(("", *element), |stored| ("_stored", stored));
            format!("%{name}{suffix}: {} {{warpforge.name = \"{name}\"{role}}}", ty(dims, element))
        };
        let arguments: Vec<String> = self.arguments.iter().map(argument).collect();
        let given = &self.operators[if unfused { 0 } else { self.operators.len().saturating_sub(1) }..];
        let mut types: Vec<String> = given.iter().map(|operator| operator.result.clone()).collect();
        let mut values: Vec<String> = given.iter().map(|operator| format!("%{}", operator.name)).collect();
        let mut rounding = String::new();
        if let (Some(element), Some(ty), Some(value)) = (self.rounded, types.last_mut(), values.last_mut()) {
            let narrow = ty.replace("xf32>", &format!("x{element}>"));
            rounding = format!("  %rounded = stablehlo.convert {value} : ({ty}) -> {narrow}\n");
            (*ty, *value) = (narrow, "%rounded".to_owned());
        }
        let mut text = format!("func.func @main({}) -> ({}) {{\n", arguments.join(", "), types.join(", "));
        for Argument { name, dims, element, stored, .. } in &self.arguments {
            if let Some(stored) = stored {
                let (from, to) = (ty(dims, stored), ty(dims, element));
                let _ = writeln!(text, "  %{name} = stablehlo.convert %{name}_stored : ({from}) -> {to}");
            }
        }
        for operator in &self.operators {
            text += &operator.lines;
        }
        text += &rounding;
        let _ = writeln!(text, "  func.return {} : {}\n}}", values.join(", "), types.join(", "));
        text
    }

    /// Random weights, the same each time.
    pub(crate) fn weights(&self) -> Result<BTreeMap<String, Tensor>> {
        let weights = self.arguments.iter().filter(|argument| argument.weight);
        weights.map(|weight| Ok((weight.name.to_owned(), random(weight)?))).collect()
    }

    /// Random inputs, the same each time.
    pub(crate) fn inputs(&self) -> Result<Vec<Tensor>> {
        self.arguments.iter().filter(|argument| !argument.weight).map(random).collect()
    }
}

/// Floats of either sign, variances positive; bytes; indices of the table's rows.
fn random(argument: &Argument) -> Result<Tensor> {
    let Argument { name, dims, element, .. } = argument;
    let count: usize = dims.iter().product();
    let seed = name.bytes().fold(0x5eed, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let mut rng = fastrand::Rng::with_seed(seed);
    let tensor = match *element {
        "i8" => {
            let values: Vec<i8> = (0..count).map(|_| rng.i8(-100..=100)).collect();
            Tensor::from_slice(dims, &values)
        }
        "f8E4M3FN" => {
            // Either sign, from 1/4 to 3.75.
            let codes: Vec<u8> = (0..count).map(|_| rng.u8(0x28..=0x47) | (rng.u8(0..=1) << 7)).collect();
            let element = ElementType::Float(FloatType::F8E4M3Fn);
            Tensor::from_bytes(element, Shape::new(dims.clone())?, &codes)
        }
        "i64" => {
            let values: Vec<i64> =
                (0..count).map(|_| rng.i64(0..super::streams::TABLE_ROWS as i64)).collect();
            Tensor::from_slice(dims, &values)
        }
        _ => {
            let positive = *name == "var";
            let value = |rng: &mut fastrand::Rng| {
                let magnitude = 0.25 + 0.5 * rng.f32();
                if positive || rng.bool() { magnitude } else { -magnitude }
            };
            let values: Vec<f32> = (0..count).map(|_| value(&mut rng)).collect();
            match argument.stored {
                Some("bf16") => Tensor::from_slice(
                    dims,
                    &values.into_iter().map(half::bf16::from_f32).collect::<Vec<_>>(),
                ),
                Some("f16") => {
                    Tensor::from_slice(dims, &values.into_iter().map(half::f16::from_f32).collect::<Vec<_>>())
                }
                _ => Tensor::from_slice(dims, &values),
            }
        }
    };
    Ok(tensor?)
}
