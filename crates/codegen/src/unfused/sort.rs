//! Stable sort along a dimension, with any comparator and several operands: positions are sorted, then the values are
//! permuted.

use warpforge_fusion::graph::Comparator;
use warpforge_tensor::ElementType;

use super::element_kernel::UnfusedKernel;
use super::merge_sort::SortLines;
use super::scalar_function;
use crate::builder::KernelBuilder;
use crate::index::index_type;
use crate::kernel::{Emitted, Unsupported};
use crate::steps::{load_expr, store_expr};
use crate::types::compute_type;

pub(super) fn emit(
    kernel: &UnfusedKernel<'_>,
    axis: usize,
    comparator: &Comparator,
) -> Result<Emitted, Unsupported> {
    let (count, dims) = (kernel.count(), kernel.dims(0)?);
    let elements: Vec<ElementType> =
        (0..count).map(|at| kernel.element(at)).collect::<Result<_, Unsupported>>()?;
    let function = comparator.function(&elements);
    let (all, length) = (dims.iter().product::<usize>(), dims[axis]);
    let inner: usize = dims[axis + 1..].iter().product();
    let lines = SortLines { kernel, count: all / length, length, what: "sort", scratch: [0, 1] };
    let index = index_type(all);
    // The base index of a line.
    let base = |builder: &mut KernelBuilder<'_>| {
        builder
            .text
            .line(format!("const {index} base = line / {inner} * {} + line % {inner};", length * inner));
    };
    let compare = |builder: &mut KernelBuilder<'_>| {
        base(builder);
        let mut names = Vec::new();
        for (at, &element) in elements.iter().enumerate() {
            let pointer = kernel.read(builder, at)?;
            let ty = compute_type(element)?;
            for side in ["a", "b"] {
                let value = load_expr(&pointer, &format!("base + {side} * ({index}){inner}"));
                builder.text.line(format!("const {ty} {side}{at} = {value};"));
                names.push(format!("{side}{at}"));
            }
        }
        let results = scalar_function::emit(&mut builder.text, &function, &names, "t")?;
        let result = results.first().ok_or_else(|| kernel.unsupported())?;
        builder.text.line(format!("return {result};"));
        Ok(())
    };
    let last = |builder: &mut KernelBuilder<'_>| {
        base(builder);
        for at in 0..count {
            let Some(id) = kernel.result(at) else { continue };
            let element = kernel.request.graph.node(id).element;
            let (from, to) = (kernel.read(builder, at)?, builder.write(id)?);
            let value = load_expr(&from, &format!("base + own * ({index}){inner}"));
            builder.text.line(format!("const {} value{at} = {value};", compute_type(element)?));
            let value = format!("value{at}");
            builder.salt().wrote(&mut builder.text, &value, element.byte_width());
            let value = store_expr(element, &value)?;
            builder.text.line(format!("{to}[base + to * ({index}){inner}] = {value};"));
        }
        Ok(())
    };
    let kernels = lines.kernels(&compare, &last)?;
    let scratch = match lines.scratch_bytes() {
        0 => Vec::new(),
        bytes => vec![bytes; 2],
    };
    Ok(Emitted { kernels, scratch })
}
