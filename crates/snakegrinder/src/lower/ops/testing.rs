//! One operation at a time, from a graph of one node to the numbers that the reference computes.

#[path = "../../../tests/mutations/archive.rs"]
mod around;
#[path = "../../../tests/common/zip.rs"]
mod zip;

use serde_json::{Value, json};
use warpforge_interp::{Interpreter, Options, Value as Evaluated};
use warpforge_tensor::{Blob, ElementType, Scalar, Shape, Tensor};

use crate::{Archive, ImportOptions};

/// An argument of the node.
pub(super) enum Given {
    /// Numbers in a shape: an input of the graph.
    Floats(&'static [usize], Vec<f32>),
    /// The same, rounded to bf16.
    Bf16s(&'static [usize], Vec<f32>),
    /// Whole numbers in a shape.
    Ints(&'static [usize], Vec<i64>),
    /// Truth values in a shape.
    Bools(&'static [usize], Vec<bool>),
    /// Anything else, as an archive has it.
    Plain(Value),
    /// Several tensors.
    List(Vec<Given>),
}

/// PyTorch's code of an element type.
#[derive(Clone, Copy)]
pub(super) enum Code {
    I32 = 4,
    I64 = 5,
    F32 = 7,
    F64 = 8,
    Bool = 12,
    Bf16 = 13,
    /// A result of integers that nothing uses.
    Unused = 3,
}

/// What the operation gives for its arguments: one list of numbers for each result of the given types and shapes.
///
/// # Panics
///
/// When it is refused, or cannot be evaluated.
pub(super) fn evaluated(
    target: &str,
    arguments: Vec<(&str, Given)>,
    results: &[(Code, &[usize])],
) -> Vec<Vec<f64>> {
    evaluated_after(&[], target, arguments, results)
}

/// A node before the one that is evaluated, as an archive has it, and the tensors that it gives.
pub(super) struct Before {
    pub(super) node: Value,
    pub(super) gives: &'static [(&'static str, Code, &'static [usize])],
}

/// The same after other nodes; arguments may name what those give.
pub(super) fn evaluated_after(
    before: &[Before],
    target: &str,
    arguments: Vec<(&str, Given)>,
    results: &[(Code, &[usize])],
) -> Vec<Vec<f64>> {
    let mut inputs = Vec::new();
    let named: Vec<Value> = arguments
        .into_iter()
        .map(|(name, given)| json!({"name": name, "arg": argument(given, &mut inputs)}))
        .collect();
    let output = |at: usize, code: Code| match code {
        Code::Unused => format!("y{at}_unused_"),
        _ => format!("y{at}"),
    };
    let listed = results.iter().enumerate();
    let outputs: Vec<Value> =
        listed.map(|(at, (code, _))| json!({"as_tensor": {"name": output(at, *code)}})).collect();
    let mut tensors = serde_json::Map::new();
    for (at, tensor) in inputs.iter().enumerate() {
        let code = match tensor.element_type() {
            ElementType::BF16 => Code::Bf16,
            ElementType::Bool => Code::Bool,
            element if element.is_float() => Code::F32,
            _ => Code::I64,
        };
        tensors.insert(format!("x{at}"), json!([code as i64, tensor.dims()]));
    }
    for (at, (code, dims)) in results.iter().enumerate() {
        tensors.insert(output(at, *code), json!([*code as i64, dims]));
    }
    let target = format!("torch.ops.{target}");
    let seed = json!({"target": target, "inputs": named, "outputs": outputs, "tensors": tensors});
    let mut program = around::program(&seed);
    let graph = &mut program["graph_module"]["graph"];
    for Before { node, gives } in before.iter().rev() {
        for (name, code, dims) in *gives {
            graph["tensor_values"][*name] = around::meta(&json!(*code as i64), &json!(dims));
        }
        if let Some(nodes) = graph["nodes"].as_array_mut() {
            nodes.insert(0, node.clone());
        }
    }
    let archive = around::around(&program.to_string());
    let archive = Archive::from_blob(Blob::from(archive)).expect("a sound archive");
    let imported = archive.import(&ImportOptions::default()).expect("a lowering");
    let values = inputs.into_iter().map(Evaluated::Tensor).collect();
    let found = Interpreter::new(&imported.module, Options::default()).run("main", values).expect("it runs");
    let numbers = |value: Evaluated| match value {
        Evaluated::Tensor(tensor) => tensor.iter().map(Scalar::to_f64).collect(),
        _ => Vec::new(),
    };
    found.into_iter().map(numbers).collect()
}

fn of_scalars(element: ElementType, dims: &[usize], values: impl Iterator<Item = Scalar>) -> Tensor {
    let shape = Shape::new(dims).expect("a small shape");
    Tensor::from_scalars(element, shape, values).expect("as many numbers")
}

fn argument(given: Given, inputs: &mut Vec<Tensor>) -> Value {
    let mut input = |tensor: Tensor| {
        inputs.push(tensor);
        json!({"name": format!("x{}", inputs.len() - 1)})
    };
    match given {
        Given::Floats(dims, values) => {
            json!({"as_tensor": input(Tensor::from_slice(dims, &values).expect("as many numbers"))})
        }
        Given::Bf16s(dims, values) => {
            let values = values.into_iter().map(|value| Scalar::Float(f64::from(value)));
            json!({"as_tensor": input(of_scalars(ElementType::BF16, dims, values))})
        }
        Given::Bools(dims, values) => {
            let values = values.into_iter().map(Scalar::Bool);
            json!({"as_tensor": input(of_scalars(ElementType::Bool, dims, values))})
        }
        Given::Ints(dims, values) => {
            json!({"as_tensor": input(Tensor::from_slice(dims, &values).expect("as many numbers"))})
        }
        Given::Plain(value) => value,
        Given::List(all) => {
            let all = all.into_iter().map(|one| argument(one, inputs)["as_tensor"].clone());
            json!({"as_tensors": all.collect::<Vec<_>>()})
        }
    }
}
