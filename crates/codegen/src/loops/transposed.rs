//! Elementwise loops with loads that are contiguous along another dimension than the output. These are transposed
//! through shared-memory tiles, so that loads and stores are both coalesced. Iteration follows the layout of the
//! output.

use warpforge_fusion::View;
use warpforge_fusion::cluster::{Body, BodyOp};

use super::views::{title, views};
use crate::builder::{KernelBuilder, Launch};
use crate::index::{IndexSpace, index_type, max_index, sum};
use crate::kernel::{Emitted, Request, Unsupported};
use crate::steps::{Written, expression, load_expr, store_expr};
use crate::types::{compute_type, storage_type};

/// Rows and columns of a tile.
const SIDE: usize = 32;

/// Rows of threads per block.
const ROWS: usize = 8;

/// Minimum size of both tile dimensions.
const MIN_SIZE: usize = 16;

/// Most transposed loads.
const MAX_LOADS: usize = 4;

/// The dimension along which the transposed loads are contiguous, and these loads.
pub(super) struct Transposed {
    space: IndexSpace,
    along: usize,
    loads: Vec<usize>,
}

/// Plans the transposition of a loop, where it has transposed loads.
pub(super) fn plan(body: &Body) -> Option<Transposed> {
    let mut all: Vec<usize> = (0..body.dims.len()).collect();
    all.sort_by_key(|&dim| std::cmp::Reverse(body.output.strides[dim]));
    let space = IndexSpace::new(&body.dims, &all, &views(body));
    let last = space.dims.len().checked_sub(1)?;
    if space.dims[last] < MIN_SIZE || space.inner(body.loads.len()) != Some(1) {
        return None;
    }
    let runs = |load: usize| {
        let strides = &space.strides[load];
        let along = strides.iter().position(|&stride| stride == 1)?;
        (along != last && strides[last] != 0 && space.dims[along] >= MIN_SIZE).then_some(along)
    };
    let along = (0..body.loads.len()).find_map(runs)?;
    let loads: Vec<usize> = (0..body.loads.len()).filter(|&load| runs(load) == Some(along)).collect();
    (loads.len() <= MAX_LOADS).then_some(Transposed { space, along, loads })
}

impl Transposed {
    /// The index of a view at the named indices.
    fn linear_index(&self, at: usize, view: &View, names: &dyn Fn(usize) -> String) -> String {
        let terms = self.space.strides[at].iter().enumerate().filter(|&(_, &stride)| stride != 0);
        let terms: Vec<String> = terms.map(|(dim, stride)| format!("{} * {stride}", names(dim))).collect();
        sum(&[view.offset.to_string(), sum(&terms)])
    }

    pub(super) fn emit(&self, request: Request<'_>, body: &Body) -> Result<Emitted, Unsupported> {
        let Request { graph, cluster, options } = request;
        let dims = &self.space.dims;
        let (last, along) = (dims.len() - 1, self.along);
        let (wide, high) = (dims[last].div_ceil(SIDE), dims[along].div_ceil(SIDE));
        let others: Vec<usize> = (0..last).filter(|&dim| dim != along).collect();
        let outer = IndexSpace { dims: others.iter().map(|&dim| dims[dim]).collect(), strides: Vec::new() };
        let index = index_type(max_index(&views(body)));
        let mut builder = KernelBuilder::new(graph, options);
        let salt = builder.salt();
        salt.begin(&mut builder.text);
        builder.text.line(format!("const int x = WF_THREAD % {SIDE}, y = WF_THREAD / {SIDE};"));
        builder.text.line(format!("const int left = WF_BLOCK % {wide} * {SIDE};"));
        builder.text.line(format!("const int top = WF_BLOCK / {wide} % {high} * {SIDE};"));
        outer.split(&mut builder.text, &format!("({index})(WF_BLOCK / {})", wide * high), "o", index);
        let other = |dim: usize| format!("o{}", others.iter().position(|&known| known == dim).unwrap_or(0));
        for &load in &self.loads {
            let operand = &body.loads[load];
            let element = graph.node(operand.value).element;
            let pointer = builder.read(operand.value)?;
            let text = &mut builder.text;
            text.line(format!("WF_SHARED {} tile{load}[{SIDE}][{}];", storage_type(element)?, SIDE + 1));
            text.unrolled("r", SIDE / ROWS);
            text.line(format!("const {index} across = left + y + r * {ROWS}, down = top + x;"));
            text.open(format!("if (across < {} && down < {})", dims[last], dims[along]));
            let names = |dim: usize| match dim {
                dim if dim == last => "across".to_owned(),
                dim if dim == along => "down".to_owned(),
                dim => other(dim),
            };
            let place = self.linear_index(load, &operand.view, &names);
            text.line(format!("tile{load}[y + r * {ROWS}][x] = {pointer}[{place}];"));
            text.close();
            text.close();
        }
        builder.text.line("wf_sync();");
        builder.text.unrolled("r", SIDE / ROWS);
        builder.text.line(format!("const {index} across = left + x, down = top + y + r * {ROWS};"));
        builder.text.open(format!("if (across < {} && down < {})", dims[last], dims[along]));
        let names = |dim: usize| match dim {
            dim if dim == last => "across".to_owned(),
            dim if dim == along => "down".to_owned(),
            dim => other(dim),
        };
        let mut loads = Vec::new();
        for (at, load) in body.loads.iter().enumerate() {
            loads.push(if self.loads.contains(&at) {
                format!("wf_get(tile{at}[x][y + r * {ROWS}])")
            } else {
                let pointer = builder.read(load.value)?;
                load_expr(&pointer, &self.linear_index(at, &load.view, &names))
            });
        }
        let mut iotas: Vec<(View, String)> = Vec::new();
        for step in &body.steps {
            if let BodyOp::Iota(view) = &step.op {
                let place = self.linear_index(body.loads.len() + 1 + iotas.len(), view, &names);
                iotas.push((view.clone(), place));
            }
        }
        let context = Written { loads, iotas };
        for (at, step) in body.steps.iter().enumerate() {
            let value = expression(body, at, &context)?;
            builder.text.line(format!("const {} s{at} = {value};", compute_type(step.element)?));
        }
        let value = body.steps.len().checked_sub(1).map(|at| format!("s{at}"));
        let value = value.ok_or_else(|| Unsupported::new("an empty loop"))?;
        let element = graph.node(cluster.output).element;
        let pointer = builder.write(cluster.output)?;
        let place = self.linear_index(body.loads.len(), &body.output, &names);
        salt.wrote(&mut builder.text, &value, element.byte_width());
        builder.text.line(format!("{pointer}[{place}] = {};", store_expr(element, &value)?));
        builder.text.close();
        builder.text.close();
        salt.end(&mut builder.text);
        let launch = Launch::new(wide * high * outer.len(), SIDE * ROWS);
        let title = format!("{}, transposed", title(body));
        let kernel = builder.finish("transposed", title, &launch, cluster.cost(graph))?;
        Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
    }
}
