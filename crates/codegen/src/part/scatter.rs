//! Updates put where indices say: the operand is copied, then each update finds its place.

use warpforge_fusion::view::dense_strides;

use super::{Cut, region};
use crate::index::sum;
use crate::kernel::{Emitted, Unsupported};
use crate::single::Element;
use crate::steps::{loaded, packed};
use crate::types::{computed, stored};

pub(super) fn emit(cut: &Cut<'_>) -> Result<Emitted, Unsupported> {
    let op = cut.op;
    let (Some(numbers), Some(block)) = (op.scatter_dims(), op.region_block(0)) else {
        return Err(cut.unknown());
    };
    if op.result_count() != 1 {
        return Err(Unsupported::new("a scatter of several values"));
    }
    let Some(target) = cut.result(0).filter(|&id| !cut.graph.node(id).is_empty()) else {
        return Ok(Emitted::default());
    };
    let mut copy = Element::new(cut.graph, cut.cluster, target, cut.options);
    let source = cut.read(&mut copy.draft, 0)?;
    let copied = copy.finish(&loaded(&source, "n"))?;
    let (dims, index_dims, updates) = (cut.dims(0)?, cut.dims(1)?, cut.operand(2)?);
    if cut.graph.node(updates).is_empty() {
        return Ok(Emitted { kernels: vec![copied], scratch: Vec::new() });
    }
    let sizes = |dims: &[i64]| dims.iter().map(|&dim| dim as usize).collect::<Vec<usize>>();
    let window_dims = sizes(&numbers.update_window_dims);
    let inserted = sizes(&numbers.inserted_window_dims);
    let (batching, index_batching) =
        (sizes(&numbers.input_batching_dims), sizes(&numbers.scatter_indices_batching_dims));
    let vector_dim = numbers.index_vector_dim as usize;
    let update_dims = cut.dims(2)?;
    // The dimensions of the updates that number the windows, in the order of the indices' dimensions but the vector's.
    let numbered: Vec<usize> = (0..update_dims.len()).filter(|at| !window_dims.contains(at)).collect();
    let index_numbered: Vec<usize> = (0..index_dims.len()).filter(|&at| at != vector_dim).collect();
    let index_strides = dense_strides(&index_dims);
    let mut element = Element::over(cut.graph, cut.cluster, updates, update_dims.clone(), cut.options);
    let index = element.index;
    let terms: Vec<String> = index_numbered
        .iter()
        .zip(&numbered)
        .map(|(&dim, at)| format!("i{at} * {}", index_strides[dim]))
        .collect();
    let pointer = cut.read(&mut element.draft, 1)?;
    element.draft.text.line(format!("const {index} base = {};", sum(&terms)));
    let strides = dense_strides(&dims);
    let (mut inside, mut place) = (vec!["true".to_owned()], Vec::new());
    let mut windows = window_dims.iter();
    for (dim, &size) in dims.iter().enumerate() {
        let mut parts = Vec::new();
        if let Some(at) =
            numbers.scatter_dims_to_operand_dims.iter().position(|&mapped| mapped as usize == dim)
        {
            let step = index_strides.get(vector_dim).copied().unwrap_or(0);
            let start = loaded(&pointer, &sum(&["base".to_owned(), (at as isize * step).to_string()]));
            parts.push(format!("(long long)({start})"));
        }
        if let Some(at) = batching.iter().position(|&batched| batched == dim) {
            let position = index_numbered.iter().position(|&known| known == index_batching[at]);
            let at = position.and_then(|position| numbered.get(position)).ok_or_else(|| cut.unknown())?;
            parts.push(format!("i{at}"));
        }
        if !inserted.contains(&dim) && !batching.contains(&dim) {
            parts.push(format!("i{}", windows.next().ok_or_else(|| cut.unknown())?));
        }
        element.draft.text.line(format!("const long long x{dim} = {};", sum(&parts)));
        inside.push(format!("x{dim} >= 0 && x{dim} < {size}"));
        place.push(format!("x{dim} * {}", strides[dim]));
    }
    let of = cut.graph.node(target).element;
    let (ty, computed) = (stored(of)?, computed(of)?);
    let update = loaded(&cut.read(&mut element.draft, 2)?, "n");
    let to = element.draft.write(target)?;
    let text = &mut element.draft.text;
    text.open(format!("if ({})", inside.join(" && ")));
    text.line(format!("const {computed} update = {update};"));
    text.line(format!("{ty}* const spot = {to} + ({});", sum(&place)));
    // Several updates may meet: each is applied to what it finds, and again where another was quicker.
    text.line(format!("{ty} found = *spot;"));
    text.open("for (;;)");
    text.line(format!("const {computed} old = wf_get(found);"));
    let names = ["old".to_owned(), "update".to_owned()];
    let results = region::emit(text, op.module(), block, &names, "t")?;
    let result = results.first().ok_or_else(|| cut.unknown())?;
    text.line(format!("const {ty} wanted = {};", packed(of, result)?));
    text.line(format!("const {ty} before = wf_exchange_if(spot, found, wanted);"));
    text.line("if (wf_same(before, found)) break;");
    text.line("found = before;");
    text.close();
    text.close();
    let scattered = element.done()?;
    Ok(Emitted { kernels: vec![copied, scattered], scratch: Vec::new() })
}
