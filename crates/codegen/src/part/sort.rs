//! Sorts along a dimension, by any comparison and of several values together: positions are ordered, then the values are
//! put where their positions came to.

use super::order::Lines;
use super::{Cut, region};
use crate::draft::Draft;
use crate::index::int;
use crate::kernel::{Emitted, Unsupported};
use crate::steps::{loaded, packed};
use crate::types::computed;

pub(super) fn emit(cut: &Cut<'_>) -> Result<Emitted, Unsupported> {
    let op = cut.op;
    let count = op.result_count();
    let dims = cut.dims(0)?;
    let axis = op.attr_i64("dimension").ok_or_else(|| cut.unknown())?;
    let axis = if axis < 0 { axis + dims.len() as i64 } else { axis };
    let axis = usize::try_from(axis).ok().filter(|&axis| axis < dims.len()).ok_or_else(|| cut.unknown())?;
    let block = op.region_block(0).ok_or_else(|| cut.unknown())?;
    let (all, length) = (dims.iter().product::<usize>(), dims[axis]);
    if all == 0 || (0..count).all(|at| cut.result(at).is_none()) {
        return Ok(Emitted::default());
    }
    let inner: usize = dims[axis + 1..].iter().product();
    let lines = Lines { cut, count: all / length, length, what: "sort", scratch: [0, 1] };
    let index = int(all);
    // The place of a position in its line.
    let base = |draft: &mut Draft<'_>| {
        draft
            .text
            .line(format!("const {index} base = line / {inner} * {} + line % {inner};", length * inner));
    };
    let compare = |draft: &mut Draft<'_>| {
        base(draft);
        let mut names = Vec::new();
        for at in 0..count {
            let pointer = cut.read(draft, at)?;
            let ty = computed(cut.element(at)?)?;
            for side in ["a", "b"] {
                let value = loaded(&pointer, &format!("base + {side} * ({index}){inner}"));
                draft.text.line(format!("const {ty} {side}{at} = {value};"));
                names.push(format!("{side}{at}"));
            }
        }
        let results = region::emit(&mut draft.text, op.module(), block, &names, "t")?;
        let result = results.first().ok_or_else(|| cut.unknown())?;
        draft.text.line(format!("return {result};"));
        Ok(())
    };
    let last = |draft: &mut Draft<'_>| {
        base(draft);
        for at in 0..count {
            let Some(id) = cut.result(at) else { continue };
            let element = cut.graph.node(id).element;
            let (from, to) = (cut.read(draft, at)?, draft.write(id)?);
            let value = loaded(&from, &format!("base + own * ({index}){inner}"));
            draft.text.line(format!("const {} value{at} = {value};", computed(element)?));
            let value = format!("value{at}");
            draft.salt().wrote(&mut draft.text, &value, element.byte_width());
            let value = packed(element, &value)?;
            draft.text.line(format!("{to}[base + to * ({index}){inner}] = {value};"));
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
