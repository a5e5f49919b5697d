//! Updates whose windows may overlap in parts: each finds its place and is applied when it comes, in open order.

use super::{Places, copy};
use crate::index::sum;
use crate::kernel::{Emitted, Unsupported};
use crate::part::region;
use crate::single::Element;
use crate::steps::{loaded, packed};
use crate::types::{computed, stored};

pub(super) fn emit(places: &Places<'_>) -> Result<Emitted, Unsupported> {
    let Places { cut, target, dims, windows, numbered, along, .. } = places;
    let block = cut.op.region_block(0).ok_or_else(|| cut.unknown())?;
    let mut element = Element::over(cut.graph, cut.cluster, cut.operand(2)?, dims.clone(), cut.options);
    let index = element.index;
    let indices = cut.read(&mut element.draft, 1)?;
    for (at, dim) in numbered.iter().enumerate() {
        element.draft.text.line(format!("const {index} n{at} = i{dim};"));
    }
    element.draft.text.line(format!("const {index} base = {};", windows.place(0, "n")));
    let strides = places.strides();
    let (mut inside, mut place) = (vec!["true".to_owned()], Vec::new());
    for (dim, one) in along.iter().enumerate() {
        let begin = places.begins(one, &indices, "base");
        let parts = [begin, one.window.map_or_else(|| "0".to_owned(), |window| format!("i{window}"))];
        element.draft.text.line(format!("const long long x{dim} = {};", sum(&parts)));
        inside.push(format!("x{dim} >= 0 && x{dim} < {}", one.size));
        place.push(format!("x{dim} * {}", strides[dim]));
    }
    let of = cut.graph.node(*target).element;
    let (ty, computed) = (stored(of)?, computed(of)?);
    let update = loaded(&cut.read(&mut element.draft, 2)?, "n");
    let to = element.draft.write(*target)?;
    let text = &mut element.draft.text;
    text.open(format!("if ({})", inside.join(" && ")));
    text.line(format!("const {computed} update = {update};"));
    text.line(format!("{ty}* const spot = {to} + ({});", sum(&place)));
    // Several updates may meet: each is applied to what it finds, and again where another was quicker.
    text.line(format!("{ty} found = *spot;"));
    text.open("for (;;)");
    text.line(format!("const {computed} old = wf_get(found);"));
    let names = ["old".to_owned(), "update".to_owned()];
    let results = region::emit(text, cut.op.module(), block, &names, "t")?;
    let result = results.first().ok_or_else(|| cut.unknown())?;
    text.line(format!("const {ty} wanted = {};", packed(of, result)?));
    text.line(format!("const {ty} before = wf_exchange_if(spot, found, wanted);"));
    text.line("if (wf_same(before, found)) break;");
    text.line("found = before;");
    text.close();
    text.close();
    let scattered = element.done()?;
    Ok(Emitted { kernels: vec![copy(cut, *target)?, scattered], scratch: Vec::new() })
}
