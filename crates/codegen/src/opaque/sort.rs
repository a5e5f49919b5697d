//! Stable sort along a dimension, with any comparator and several operands: positions are sorted, then the values are
//! permuted.

use super::merge_sort::SortLines;
use super::{OpaqueKernel, region};
use crate::builder::KernelBuilder;
use crate::index::index_type;
use crate::kernel::{Emitted, Unsupported};
use crate::steps::{load_expr, store_expr};
use crate::types::compute_type;

pub(super) fn emit(opaque: &OpaqueKernel<'_>) -> Result<Emitted, Unsupported> {
    let op = opaque.op;
    let count = op.result_count();
    let dims = opaque.dims(0)?;
    let axis = op.attr_i64("dimension").ok_or_else(|| opaque.unsupported())?;
    let axis = if axis < 0 { axis + dims.len() as i64 } else { axis };
    let axis =
        usize::try_from(axis).ok().filter(|&axis| axis < dims.len()).ok_or_else(|| opaque.unsupported())?;
    let block = op.region_block(0).ok_or_else(|| opaque.unsupported())?;
    let (all, length) = (dims.iter().product::<usize>(), dims[axis]);
    if all == 0 || (0..count).all(|at| opaque.result(at).is_none()) {
        return Ok(Emitted::default());
    }
    let inner: usize = dims[axis + 1..].iter().product();
    let lines = SortLines { opaque, count: all / length, length, what: "sort", scratch: [0, 1] };
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
        for at in 0..count {
            let pointer = opaque.read(builder, at)?;
            let ty = compute_type(opaque.element(at)?)?;
            for side in ["a", "b"] {
                let value = load_expr(&pointer, &format!("base + {side} * ({index}){inner}"));
                builder.text.line(format!("const {ty} {side}{at} = {value};"));
                names.push(format!("{side}{at}"));
            }
        }
        let results = region::emit(&mut builder.text, op.module(), block, &names, "t")?;
        let result = results.first().ok_or_else(|| opaque.unsupported())?;
        builder.text.line(format!("return {result};"));
        Ok(())
    };
    let last = |builder: &mut KernelBuilder<'_>| {
        base(builder);
        for at in 0..count {
            let Some(id) = opaque.result(at) else { continue };
            let element = opaque.graph.node(id).element;
            let (from, to) = (opaque.read(builder, at)?, builder.write(id)?);
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
