//! Many updates: windows are ordered by where they go, and those that go to one place are applied one after the other.
//!
//! Where many meet (an embedding with few rows) and the region is a plain fold, all threads of a block fold parts of them,
//! which are put together in a fixed order.

use warpforge_fusion::Op;
use warpforge_fusion::graph::{Form, ReduceKind, Update};
use warpforge_fusion::view::dense_strides;

use super::{Places, copy};
use crate::draft::{Draft, Launch};
use crate::index::{Space, int, sum};
use crate::kernel::{Emitted, Kernel, Unsupported};
use crate::part::order::Lines;
use crate::part::region;
use crate::steps::{loaded, packed};
use crate::types::{combiner, computed, rounded};

const THREADS: usize = 256;

/// Updates of one place from which on all threads of a block share them; at least the groups of a block.
const LONG: usize = 256;

/// Numbers of scratch memory: where each window goes, two for the order on its way, the order.
const KEYS: usize = 0;
const WAY: [usize; 2] = [1, 2];
const ORDER: usize = 3;

pub(super) fn emit(places: &Places<'_>) -> Result<Emitted, Unsupported> {
    let windows = places.windows.len();
    let lines = Lines { cut: places.cut, count: 1, length: windows, what: "scatter", scratch: WAY };
    let compare = |draft: &mut Draft<'_>| {
        let keys = draft.scratch(KEYS, "long long", true);
        draft.text.line(format!("return {keys}[a] < {keys}[b];"));
        Ok(())
    };
    let last = |draft: &mut Draft<'_>| {
        let order = draft.scratch(ORDER, "int", false);
        draft.text.line(format!("{order}[to] = own;"));
        Ok(())
    };
    let mut kernels = vec![copy(places.cut, places.target)?, keys(places)?];
    kernels.extend(lines.kernels(&compare, &last)?);
    kernels.push(apply(places)?);
    let way = lines.scratch_bytes();
    Ok(Emitted { kernels, scratch: vec![windows as u64 * 8, way, way, windows as u64 * 4] })
}

/// The kernel that finds where each window goes; nowhere is -1.
fn keys(places: &Places<'_>) -> Result<Kernel, Unsupported> {
    let Places { cut, windows, along, .. } = places;
    let mut draft = Draft::new(cut.graph, cut.options);
    let index = int(cut.graph.node(cut.operand(1)?).len());
    draft.salt().begin(&mut draft.text);
    let indices = cut.read(&mut draft, 1)?;
    let to = draft.scratch(KEYS, "long long", false);
    let text = &mut draft.text;
    text.line(format!("const {index} u = WF_BLOCK * {THREADS} + WF_THREAD;"));
    text.open(format!("if (u < {})", windows.len()));
    windows.split(text, "u", "n", index);
    text.line(format!("const {index} base = {};", windows.place(0, "n")));
    let (mut inside, mut place) = (vec!["true".to_owned()], Vec::new());
    for ((dim, one), stride) in along.iter().enumerate().zip(places.strides()) {
        text.line(format!("const long long x{dim} = {};", places.begins(one, &indices, "base")));
        inside.push(format!("x{dim} >= 0 && x{dim} < {}", one.size));
        place.push(format!("x{dim} * {stride}"));
    }
    text.line(format!("{to}[u] = {} ? {} : -1;", inside.join(" && "), sum(&place)));
    text.close();
    draft.salt().end(&mut draft.text);
    let launch = Launch::new(windows.len().div_ceil(THREADS), THREADS);
    let title = format!("scatter of {} windows: places", windows.len());
    draft.finish("scatter", title, &launch, cut.cluster.cost(cut.graph))
}

/// The fold that the region is, where it is one.
fn fold(places: &Places<'_>) -> Option<ReduceKind> {
    match &places.cut.graph.node(places.cut.cluster.output).op {
        Op::Opaque(part) => match part.form {
            Some(Form::Scatter(_, Update::Reduce(fold))) => Some(fold),
            _ => None,
        },
        _ => None,
    }
}

/// The kernel that applies the updates of each place.
fn apply(places: &Places<'_>) -> Result<Kernel, Unsupported> {
    let Places { cut, target, windows, .. } = places;
    let block = cut.op.region_block(0).ok_or_else(|| cut.unknown())?;
    let own = inner(places);
    let (count, size) = (windows.len(), own.len());
    // So many threads go along a window.
    let lanes = size.next_power_of_two().min(32);
    let (groups, slices) = (THREADS / lanes, size.div_ceil(lanes));
    let node = cut.graph.node(*target);
    let (of, ty) = (node.element, computed(node.element)?);
    let index = int(node.len().max(cut.graph.node(cut.operand(2)?).len()));
    let mut draft = Draft::new(cut.graph, cut.options);
    draft.salt().begin(&mut draft.text);
    let keys = draft.scratch(KEYS, "long long", true);
    let order = draft.scratch(ORDER, "int", true);
    let (updates, to) = (cut.read(&mut draft, 2)?, draft.write(*target)?);
    let text = &mut draft.text;
    text.line(format!("WF_SHARED int ends[{groups}];"));
    text.line(format!("const int lane = WF_THREAD % {lanes}, group = WF_THREAD / {lanes};"));
    text.line(format!("const int first = WF_BLOCK / {slices} * {groups}, at = first + group;"));
    text.line(format!("const int w = WF_BLOCK % {slices} * {lanes} + lane;"));
    text.line(format!("const auto key = [&](int i) {{ return {keys}[{order}[i]]; }};"));
    text.line("int end = 0;");
    text.open(format!("if (at < {count} && key(at) >= 0 && (at == 0 || key(at - 1) != key(at)))"));
    text.line(format!("int high = {count};"));
    text.line("end = at + 1;");
    text.open("while (end < high)");
    text.line("const int half = end + (high - end) / 2;");
    text.line("if (key(half) == key(at)) end = half + 1; else high = half;");
    text.close();
    text.close();
    text.line("if (lane == 0) ends[group] = end;");
    text.line("wf_sync();");
    text.open(format!("const auto update = [&](int i) -> {}", computed(cut.element(2)?)?));
    text.line(format!("const {index} u = {order}[i];"));
    windows.split(text, "u", "n", index);
    own.split(text, "w", "i", index);
    let place = sum(&[windows.place(1, "n"), own.place(0, "i")]);
    text.line(format!("return {};", loaded(&updates, &place)));
    text.close();
    text.line(";");
    own.split(text, "w", "i", index);
    text.line(format!("const {index} off = {};", own.place(1, "i")));
    let fold = fold(places);
    let short = if fold.is_some() { format!(" && end - at <= {LONG}") } else { String::new() };
    text.open(format!("if (w < {size} && end != 0{short})"));
    text.line(format!("{ty} value = {};", loaded(&to, "key(at) + off")));
    text.open("for (int i = at; i < end; ++i)");
    text.line(format!("const {} one = update(i);", computed(cut.element(2)?)?));
    let names = ["value".to_owned(), "one".to_owned()];
    let results = region::emit(text, cut.op.module(), block, &names, "t")?;
    text.line(format!("value = {};", results.first().ok_or_else(|| cut.unknown())?));
    text.close();
    let salt = cut.options.salt;
    salt.wrote(text, "value", of.byte_width());
    text.line(format!("{to}[key(at) + off] = {};", packed(of, "value")?));
    text.close();
    if let Some(fold) = fold {
        let reduced = |a: &str, b: &str| rounded(of, format!("{}({a}, {b})", combiner(fold)));
        text.line(format!("WF_SHARED {ty} parts[{THREADS}];"));
        text.open(format!("for (int q = 0; q < {groups}; ++q)"));
        text.line("const int begin = first + q;");
        text.line(format!("if (ends[q] == 0 || ends[q] - begin <= {LONG}) continue;"));
        text.open(format!("if (w < {size})"));
        text.line(format!("{ty} value = update(begin + group);"));
        text.line(format!(
            "for (int i = begin + group + {groups}; i < ends[q]; i += {groups}) value = {};",
            reduced("value", "update(i)")?
        ));
        text.line("parts[WF_THREAD] = value;");
        text.close();
        text.line("wf_sync();");
        text.open(format!("if (group == 0 && w < {size})"));
        text.line(format!("{ty} value = {};", loaded(&to, "key(begin) + off")));
        text.line(format!(
            "for (int g = 0; g < {groups}; ++g) value = {};",
            reduced("value", &format!("parts[g * {lanes} + lane]"))?
        ));
        salt.wrote(text, "value", of.byte_width());
        text.line(format!("{to}[key(begin) + off] = {};", packed(of, "value")?));
        text.close();
        text.line("wf_sync();");
        text.close();
    }
    salt.end(&mut draft.text);
    let launch = Launch::new(count.div_ceil(groups) * slices, THREADS);
    let title = format!("scatter of {count} windows of {size}");
    draft.finish("scatter", title, &launch, cut.cluster.cost(cut.graph))
}

/// The elements of a window; strides are those of the updates and of the operand.
fn inner(places: &Places<'_>) -> Space {
    let (strides, of_operand) = (dense_strides(&places.dims), places.strides());
    let to = |window: usize| {
        let dim = places.along.iter().position(|along| along.window == Some(window));
        dim.map_or(0, |dim| of_operand[dim])
    };
    Space {
        dims: places.inner.iter().map(|&at| places.dims[at]).collect(),
        strides: vec![
            places.inner.iter().map(|&at| strides[at]).collect(),
            places.inner.iter().map(|&at| to(at)).collect(),
        ],
    }
}
