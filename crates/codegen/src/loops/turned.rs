//! Loops without reductions some of whose loads run along another dimension than the result: tiles of these are turned in
//! shared memory, so that loads and stores both run along neighbours. Whichever of the two a loop's own dimensions follow,
//! the result's order is taken.

use warpforge_fusion::cluster::{Body, BodyOp, Cluster};
use warpforge_fusion::{Graph, View};

use super::{title, views};
use crate::draft::{Draft, Launch};
use crate::index::{Space, int, reach, sum};
use crate::kernel::{Emitted, Unsupported};
use crate::options::Options;
use crate::steps::{Written, expression, loaded, packed};
use crate::types::{computed, stored};

/// Rows and columns of a tile.
const SIDE: usize = 32;

/// Rows that threads have at a time.
const ROWS: usize = 8;

/// Least size of the two dimensions of a tile.
const LEAST: usize = 16;

/// Most loads that are turned.
const MOST: usize = 4;

/// Which dimension the turned loads run along, and which loads they are.
pub(super) struct Turned {
    space: Space,
    along: usize,
    loads: Vec<usize>,
}

/// What there is to turn in a loop.
pub(super) fn plan(body: &Body) -> Option<Turned> {
    let mut all: Vec<usize> = (0..body.dims.len()).collect();
    all.sort_by_key(|&dim| std::cmp::Reverse(body.output.strides[dim]));
    let space = Space::new(&body.dims, &all, &views(body));
    let last = space.dims.len().checked_sub(1)?;
    if space.dims[last] < LEAST || space.inner(body.loads.len()) != Some(1) {
        return None;
    }
    let runs = |load: usize| {
        let strides = &space.strides[load];
        let along = strides.iter().position(|&stride| stride == 1)?;
        (along != last && strides[last] != 0 && space.dims[along] >= LEAST).then_some(along)
    };
    let along = (0..body.loads.len()).find_map(runs)?;
    let loads: Vec<usize> = (0..body.loads.len()).filter(|&load| runs(load) == Some(along)).collect();
    (loads.len() <= MOST).then_some(Turned { space, along, loads })
}

impl Turned {
    /// Where a view is at the indices of these names.
    fn place(&self, at: usize, view: &View, names: &dyn Fn(usize) -> String) -> String {
        let terms = self.space.strides[at].iter().enumerate().filter(|&(_, &stride)| stride != 0);
        let terms: Vec<String> = terms.map(|(dim, stride)| format!("{} * {stride}", names(dim))).collect();
        sum(&[view.offset.to_string(), sum(&terms)])
    }

    pub(super) fn emit(
        &self,
        graph: &Graph,
        cluster: &Cluster,
        body: &Body,
        options: &Options,
    ) -> Result<Emitted, Unsupported> {
        let dims = &self.space.dims;
        let (last, along) = (dims.len() - 1, self.along);
        let (wide, high) = (dims[last].div_ceil(SIDE), dims[along].div_ceil(SIDE));
        let others: Vec<usize> = (0..last).filter(|&dim| dim != along).collect();
        let outer = Space { dims: others.iter().map(|&dim| dims[dim]).collect(), strides: Vec::new() };
        let index = int(reach(&views(body)));
        let mut draft = Draft::new(graph, options);
        let salt = draft.salt();
        salt.begin(&mut draft.text);
        draft.text.line(format!("const int x = WF_THREAD % {SIDE}, y = WF_THREAD / {SIDE};"));
        draft.text.line(format!("const int left = WF_BLOCK % {wide} * {SIDE};"));
        draft.text.line(format!("const int top = WF_BLOCK / {wide} % {high} * {SIDE};"));
        outer.split(&mut draft.text, &format!("({index})(WF_BLOCK / {})", wide * high), "o", index);
        let other = |dim: usize| format!("o{}", others.iter().position(|&known| known == dim).unwrap_or(0));
        for &load in &self.loads {
            let operand = &body.loads[load];
            let element = graph.node(operand.value).element;
            let pointer = draft.read(operand.value)?;
            let text = &mut draft.text;
            text.line(format!("WF_SHARED {} tile{load}[{SIDE}][{}];", stored(element)?, SIDE + 1));
            text.unrolled("r", SIDE / ROWS);
            text.line(format!("const {index} across = left + y + r * {ROWS}, down = top + x;"));
            text.open(format!("if (across < {} && down < {})", dims[last], dims[along]));
            let names = |dim: usize| match dim {
                dim if dim == last => "across".to_owned(),
                dim if dim == along => "down".to_owned(),
                dim => other(dim),
            };
            let place = self.place(load, &operand.view, &names);
            text.line(format!("tile{load}[y + r * {ROWS}][x] = {pointer}[{place}];"));
            text.close();
            text.close();
        }
        draft.text.line("wf_sync();");
        draft.text.unrolled("r", SIDE / ROWS);
        draft.text.line(format!("const {index} across = left + x, down = top + y + r * {ROWS};"));
        draft.text.open(format!("if (across < {} && down < {})", dims[last], dims[along]));
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
                let pointer = draft.read(load.value)?;
                loaded(&pointer, &self.place(at, &load.view, &names))
            });
        }
        let mut iotas: Vec<(View, String)> = Vec::new();
        for step in &body.steps {
            if let BodyOp::Iota(view) = &step.op {
                let place = self.place(body.loads.len() + 1 + iotas.len(), view, &names);
                iotas.push((view.clone(), place));
            }
        }
        let around = Written { loads, iotas };
        for (at, step) in body.steps.iter().enumerate() {
            let value = expression(body, at, &around)?;
            draft.text.line(format!("const {} s{at} = {value};", computed(step.element)?));
        }
        let value = body.steps.len().checked_sub(1).map(|at| format!("s{at}"));
        let value = value.ok_or_else(|| Unsupported::new("an empty loop"))?;
        let element = graph.node(cluster.output).element;
        let pointer = draft.write(cluster.output)?;
        let place = self.place(body.loads.len(), &body.output, &names);
        salt.wrote(&mut draft.text, &value, element.byte_width());
        draft.text.line(format!("{pointer}[{place}] = {};", packed(element, &value)?));
        draft.text.close();
        draft.text.close();
        salt.end(&mut draft.text);
        let launch = Launch::new(wide * high * outer.len(), SIDE * ROWS);
        let title = format!("{}, turned", title(body));
        let kernel = draft.finish("turned", title, &launch, cluster.cost(graph))?;
        Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
    }
}
