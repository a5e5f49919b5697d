//! Reductions of several operands by any function: each thread reduces all elements of one output element.

use warpforge_fusion::graph::ScalarFunction;
use warpforge_fusion::view::dense_strides;

use super::element_kernel::{ElementKernel, UnfusedKernel};
use super::scalar_function;
use crate::kernel::{Emitted, Unsupported};
use crate::steps::load_expr;
use crate::types::compute_type;

pub(super) fn emit(
    kernel: &UnfusedKernel<'_>,
    function: &ScalarFunction,
    axes: &[usize],
) -> Result<Emitted, Unsupported> {
    let count = kernel.count() / 2;
    let target = (0..count).find_map(|at| kernel.result(at)).ok_or_else(|| kernel.unsupported())?;
    let dims = kernel.dims(0)?;
    let strides = dense_strides(dims);
    let mut element = ElementKernel::new(kernel.request, target);
    let mut names = Vec::new();
    for at in 0..count {
        let init = load_expr(&kernel.read(&mut element.builder, count + at)?, "0");
        element.builder.text.line(format!("{} f{at} = {init};", compute_type(kernel.element(at)?)?));
        names.push(format!("f{at}"));
    }
    let mut place = vec!["0".to_owned()];
    let mut kept = 0;
    for (dim, stride) in strides.iter().enumerate() {
        if axes.contains(&dim) {
            element
                .builder
                .text
                .open(format!("for ({0} x{dim} = 0; x{dim} < {1}; ++x{dim})", element.index, dims[dim]));
            place.push(format!("x{dim} * {stride}"));
        } else {
            place.push(format!("i{kept} * {stride}"));
            kept += 1;
        }
    }
    let place = place.join(" + ");
    for at in 0..count {
        let value = load_expr(&kernel.read(&mut element.builder, at)?, &place);
        element.builder.text.line(format!("const {} e{at} = {value};", compute_type(kernel.element(at)?)?));
        names.push(format!("e{at}"));
    }
    let results = scalar_function::emit(&mut element.builder.text, function, &names, "t")?;
    for (at, result) in results.iter().enumerate() {
        element.builder.text.line(format!("const {} g{at} = {result};", compute_type(kernel.element(at)?)?));
    }
    for at in 0..results.len() {
        element.builder.text.line(format!("f{at} = g{at};"));
    }
    for _ in axes {
        element.builder.text.close();
    }
    for at in 0..count {
        if let Some(id) = kernel.result(at) {
            element.store(id, "n", &format!("f{at}"))?;
        }
    }
    Ok(Emitted { kernels: vec![element.done()?], scratch: Vec::new() })
}
