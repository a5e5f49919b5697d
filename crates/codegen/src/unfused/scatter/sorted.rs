//! Many updates: windows are sorted by target and colliding ones applied in order.
//!
//! Where many collide (an embedding with few rows) and the combiner is a plain reduction, all threads of a block reduce
//! parts of them and combine these in a fixed order.

use warpforge_fusion::view::dense_strides;

use super::geometry::{ScatterGeometry, copy};
use crate::builder::{KernelBuilder, Launch};
use crate::index::{IndexSpace, index_type, sum};
use crate::kernel::{Emitted, Kernel, Unsupported};
use crate::steps::{load_expr, store_expr};
use crate::types::{combine_fn, compute_type, rounded};
use crate::unfused::merge_sort::SortLines;
use crate::unfused::scalar_function;

const THREADS: usize = 256;

/// Collisions from which on a whole block reduces them; at least the groups per block.
const LONG: usize = 256;

/// Scratch buffers: keys, two sort buffers, the sorted order.
const KEYS: usize = 0;
const SORT_BUFFERS: [usize; 2] = [1, 2];
const ORDER: usize = 3;

pub(super) fn emit(geometry: &ScatterGeometry<'_>) -> Result<Emitted, Unsupported> {
    let windows = geometry.windows.len();
    let lines = SortLines {
        kernel: geometry.kernel,
        count: 1,
        length: windows,
        what: "scatter",
        scratch: SORT_BUFFERS,
    };
    let compare = |builder: &mut KernelBuilder<'_>| {
        let keys = builder.scratch(KEYS, "long long", true);
        builder.text.line(format!("return {keys}[a] < {keys}[b];"));
        Ok(())
    };
    let last = |builder: &mut KernelBuilder<'_>| {
        let order = builder.scratch(ORDER, "int", false);
        builder.text.line(format!("{order}[to] = own;"));
        Ok(())
    };
    let mut kernels = vec![copy(geometry.kernel, geometry.target)?, keys(geometry)?];
    kernels.extend(lines.kernels(&compare, &last)?);
    kernels.push(apply(geometry)?);
    let way = lines.scratch_bytes();
    Ok(Emitted { kernels, scratch: vec![windows as u64 * 8, way, way, windows as u64 * 4] })
}

/// The kernel that computes the target of each window; -1 out of bounds.
fn keys(geometry: &ScatterGeometry<'_>) -> Result<Kernel, Unsupported> {
    let ScatterGeometry { kernel, windows, along, .. } = geometry;
    let mut builder = KernelBuilder::new(kernel.request.graph, kernel.request.options);
    let index = index_type(kernel.request.graph.node(kernel.operand(1)?).len());
    builder.salt().begin(&mut builder.text);
    let indices = kernel.read(&mut builder, 1)?;
    let to = builder.scratch(KEYS, "long long", false);
    let text = &mut builder.text;
    text.line(format!("const {index} u = WF_BLOCK * {THREADS} + WF_THREAD;"));
    text.open(format!("if (u < {})", windows.len()));
    windows.split(text, "u", "n", index);
    text.line(format!("const {index} base = {};", windows.linear_index(0, "n")));
    let (mut inside, mut place) = (vec!["true".to_owned()], Vec::new());
    for ((dim, one), stride) in along.iter().enumerate().zip(geometry.strides()) {
        text.line(format!("const long long x{dim} = {};", geometry.window_start(one, &indices, "base")));
        inside.push(format!("x{dim} >= 0 && x{dim} < {}", one.size));
        place.push(format!("x{dim} * {stride}"));
    }
    text.line(format!("{to}[u] = {} ? {} : -1;", inside.join(" && "), sum(&place)));
    text.close();
    builder.salt().end(&mut builder.text);
    let launch = Launch::new(windows.len().div_ceil(THREADS), THREADS);
    let title = format!("scatter of {} windows: geometry", windows.len());
    builder.finish("scatter", title, &launch, kernel.request.cluster.cost(kernel.request.graph))
}

/// The kernel that applies the updates of each target.
fn apply(geometry: &ScatterGeometry<'_>) -> Result<Kernel, Unsupported> {
    let ScatterGeometry { kernel, target, combine, reduce_kind, windows, .. } = geometry;
    let own = inner(geometry);
    let (count, size) = (windows.len(), own.len());
    // Threads along a window.
    let lanes = size.next_power_of_two().min(32);
    let (groups, slices) = (THREADS / lanes, size.div_ceil(lanes));
    let node = kernel.request.graph.node(*target);
    let (of, ty) = (node.element, compute_type(node.element)?);
    let index = index_type(node.len().max(kernel.request.graph.node(kernel.operand(2)?).len()));
    let mut builder = KernelBuilder::new(kernel.request.graph, kernel.request.options);
    builder.salt().begin(&mut builder.text);
    let keys = builder.scratch(KEYS, "long long", true);
    let order = builder.scratch(ORDER, "int", true);
    let (updates, to) = (kernel.read(&mut builder, 2)?, builder.write(*target)?);
    let text = &mut builder.text;
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
    text.open(format!("const auto update = [&](int i) -> {}", compute_type(kernel.element(2)?)?));
    text.line(format!("const {index} u = {order}[i];"));
    windows.split(text, "u", "n", index);
    own.split(text, "w", "i", index);
    let place = sum(&[windows.linear_index(1, "n"), own.linear_index(0, "i")]);
    text.line(format!("return {};", load_expr(&updates, &place)));
    text.close();
    text.line(";");
    own.split(text, "w", "i", index);
    text.line(format!("const {index} off = {};", own.linear_index(1, "i")));
    let short = if reduce_kind.is_some() { format!(" && end - at <= {LONG}") } else { String::new() };
    text.open(format!("if (w < {size} && end != 0{short})"));
    text.line(format!("{ty} value = {};", load_expr(&to, "key(at) + off")));
    text.open("for (int i = at; i < end; ++i)");
    text.line(format!("const {} one = update(i);", compute_type(kernel.element(2)?)?));
    let result = scalar_function::emit_one(text, combine, ["value", "one"], "t")?;
    text.line(format!("value = {result};"));
    text.close();
    let salt = kernel.request.options.salt;
    salt.wrote(text, "value", of.byte_width());
    text.line(format!("{to}[key(at) + off] = {};", store_expr(of, "value")?));
    text.close();
    if let &Some(kind) = reduce_kind {
        let reduced = |a: &str, b: &str| rounded(of, format!("{}({a}, {b})", combine_fn(kind)));
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
        text.line(format!("{ty} value = {};", load_expr(&to, "key(begin) + off")));
        text.line(format!(
            "for (int g = 0; g < {groups}; ++g) value = {};",
            reduced("value", &format!("parts[g * {lanes} + lane]"))?
        ));
        salt.wrote(text, "value", of.byte_width());
        text.line(format!("{to}[key(begin) + off] = {};", store_expr(of, "value")?));
        text.close();
        text.line("wf_sync();");
        text.close();
    }
    salt.end(&mut builder.text);
    let launch = Launch::new(count.div_ceil(groups) * slices, THREADS);
    let title = format!("scatter of {count} windows of {size}");
    builder.finish("scatter", title, &launch, kernel.request.cluster.cost(kernel.request.graph))
}

/// The elements of a window; view 0 are the updates, view 1 the operand.
fn inner(geometry: &ScatterGeometry<'_>) -> IndexSpace {
    let (strides, of_operand) = (dense_strides(&geometry.dims), geometry.strides());
    let to = |window: usize| {
        let dim = geometry.along.iter().position(|along| along.window == Some(window));
        dim.map_or(0, |dim| of_operand[dim])
    };
    IndexSpace {
        dims: geometry.inner.iter().map(|&at| geometry.dims[at]).collect(),
        strides: vec![
            geometry.inner.iter().map(|&at| strides[at]).collect(),
            geometry.inner.iter().map(|&at| to(at)).collect(),
        ],
    }
}
