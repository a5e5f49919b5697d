//! Fused loops against a naive evaluation, position by position.

mod accuracy;
mod bytes;
mod memory_and_tiles;
mod naive;
mod operations;
mod random;
mod reductions;

use std::num::NonZeroUsize;

use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use super::*;

/// Every type that fused loops know.
const ELEMENTS: [ElementType; 13] = [
    ElementType::Bool,
    ElementType::I8,
    ElementType::I16,
    ElementType::I32,
    ElementType::I64,
    ElementType::U8,
    ElementType::U16,
    ElementType::U32,
    ElementType::U64,
    ElementType::F16,
    ElementType::BF16,
    ElementType::F32,
    ElementType::F64,
];

fn pool(threads: usize) -> Pool {
    Pool::new(NonZeroUsize::new(threads).unwrap()).unwrap()
}

fn tensor(element: ElementType, values: impl IntoIterator<Item = Scalar>) -> Tensor {
    let values: Vec<Scalar> = values.into_iter().collect();
    Tensor::from_scalars(element, Shape::new([values.len()]).unwrap(), values).unwrap()
}

fn floats(values: impl IntoIterator<Item = f64>) -> Vec<Scalar> {
    values.into_iter().map(Scalar::Float).collect()
}

/// A domain of one row dimension and one column dimension.
fn matrix(rows: usize, columns: usize) -> Domain {
    Domain { rows: vec![rows], columns: vec![columns] }
}

/// Strides of one row dimension and one column dimension.
fn strides(row: isize, column: isize) -> Access {
    Access { offset: 0, rows: vec![row], columns: vec![column] }
}

fn memory(element: ElementType, access: Access) -> Input {
    Input { element, source: Source::Memory(access) }
}

fn output(inst: usize, access: Access) -> Output {
    Output { value: Register(inst), sink: Sink::Memory(access) }
}

/// Runs a fused loop on buffers; the outputs have as many elements as given.
fn run(
    fused_loop: &FusedLoop,
    pool: &Pool,
    inputs: &[&Tensor],
    outputs: &[(ElementType, usize)],
) -> Vec<Tensor> {
    let mut results: Vec<Tensor> = outputs
        .iter()
        .map(|&(element, count)| Tensor::zeros(element, Shape::new([count]).unwrap()).unwrap())
        .collect();
    let inputs: Vec<*const u8> = inputs.iter().map(|input| input.bytes().as_ptr()).collect();
    let targets: Vec<*mut u8> = results.iter_mut().map(|result| result.bytes_mut().as_mut_ptr()).collect();
    // SAFETY: the tests' accesses stay within their tensors.
    unsafe { fused_loop.run(pool, &inputs, &targets) };
    results
}

/// The values of a tensor.
fn values(tensor: &Tensor) -> Vec<Scalar> {
    (0..tensor.shape().num_elements()).map(|at| tensor.get(at)).collect()
}

/// Whether two values are the same, signs of zeros included; NaN is NaN.
fn same(left: Scalar, right: Scalar) -> bool {
    match (left, right) {
        (Scalar::Float(left), Scalar::Float(right)) => {
            left.to_bits() == right.to_bits() || left.is_nan() && right.is_nan()
        }
        _ => left == right,
    }
}
