//! Few updates: each element of the result goes through all windows, in their order.

use warpforge_fusion::view::dense_strides;

use super::Places;
use crate::index::sum;
use crate::kernel::{Emitted, Unsupported};
use crate::part::region;
use crate::single::Element;
use crate::steps::loaded;
use crate::types::computed;

pub(super) fn emit(places: &Places<'_>) -> Result<Emitted, Unsupported> {
    let Places { cut, target, dims, windows, along, .. } = places;
    let block = cut.op.region_block(0).ok_or_else(|| cut.unknown())?;
    let sizes = along.iter().map(|along| along.size).collect();
    let mut element = Element::over(cut.graph, cut.cluster, *target, sizes, cut.options);
    let index = element.index;
    let operand = cut.read(&mut element.draft, 0)?;
    let indices = cut.read(&mut element.draft, 1)?;
    let updates = cut.read(&mut element.draft, 2)?;
    let ty = computed(cut.graph.node(*target).element)?;
    let text = &mut element.draft.text;
    text.line(format!("{ty} value = {};", loaded(&operand, "n")));
    text.open(format!("for ({index} u = 0; u < {}; ++u)", windows.len()));
    windows.split(text, "u", "n", index);
    text.line(format!("const {index} base = {};", windows.place(0, "n")));
    let strides = dense_strides(dims);
    let mut place = vec![windows.place(1, "n")];
    let mut inside = vec!["true".to_owned()];
    for (dim, one) in along.iter().enumerate() {
        text.line(format!("const long long t{dim} = i{dim} - ({});", places.begins(one, &indices, "base")));
        match one.window {
            Some(window) => {
                inside.push(format!("t{dim} >= 0 && t{dim} < {}", dims[window]));
                place.push(format!("t{dim} * {}", strides[window]));
            }
            None => inside.push(format!("t{dim} == 0")),
        }
    }
    text.open(format!("if ({})", inside.join(" && ")));
    let update = computed(cut.element(2)?)?;
    text.line(format!("const {update} update = {};", loaded(&updates, &sum(&place))));
    let names = ["value".to_owned(), "update".to_owned()];
    let results = region::emit(text, cut.op.module(), block, &names, "t_")?;
    text.line(format!("value = {};", results.first().ok_or_else(|| cut.unknown())?));
    text.close();
    text.close();
    Ok(Emitted { kernels: vec![element.finish("value")?], scratch: Vec::new() })
}
