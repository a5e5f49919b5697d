//! Loops with reductions: a group of threads computes a row, all of its stages, in one kernel.

use warpforge_fusion::cluster::{Body, BodyOp, Cluster};
use warpforge_fusion::{Graph, View};
use warpforge_tensor::ElementType;

use super::access::{Access, Chunk, InChunk, in_vectors, iotas, read, vector_store};
use super::shape::{MOST_HELD, Shape};
use super::stages::Stages;
use super::{title, views};
use crate::draft::{Draft, Launch};
use crate::index::{Space, int, reach, sum};
use crate::kernel::{Emitted, Unsupported};
use crate::options::Options;
use crate::steps::{expression, packed};
use crate::types::{combiner, computed, functor, identity, rounded, stored};

/// The kernel of a loop with reductions.
pub(super) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    body: &Body,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    let kernel = Rows::new(graph, cluster, body, options).kernel()?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}

struct Rows<'a> {
    cluster: &'a Cluster,
    body: &'a Body,
    rows: Space,
    columns: Space,
    stages: Stages,
    shape: Shape,
    kept: Vec<usize>,
    /// Whether all rows of all blocks exist.
    full: bool,
    /// The integer type of indices.
    index: &'static str,
    draft: Draft<'a>,
    element: ElementType,
}

impl<'a> Rows<'a> {
    fn new(graph: &'a Graph, cluster: &'a Cluster, body: &'a Body, options: &'a Options) -> Self {
        let views = views(body);
        let (reduced, kept): (Vec<usize>, Vec<usize>) =
            (0..body.dims.len()).partition(|&at| body.reduced[at]);
        let rows = Space::new(&body.dims, &kept, &views);
        let columns = Space::new(&body.dims, &reduced, &views);
        let stages = Stages::new(body, options.effort);
        let element = graph.node(cluster.output).element;
        let shape = Shape::new(graph, body, &rows, &columns, &stages, element, options);
        let crossing = stages.crossing(body);
        let held = crossing.len() * shape.chunks * shape.width;
        let kept = if held <= MOST_HELD { crossing } else { Vec::new() };
        let full = rows.len().is_multiple_of(shape.rows());
        let index = int(reach(&views));
        let draft = Draft::new(graph, options);
        Self { cluster, body, rows, columns, stages, shape, kept, full, index, draft, element }
    }

    fn kernel(mut self) -> Result<crate::kernel::Kernel, Unsupported> {
        let salt = self.draft.salt();
        salt.begin(&mut self.draft.text);
        self.row();
        for stage in 0..self.stages.count {
            self.uniform(stage)?;
            if self.stores(stage) || !self.stages.reduces(self.body, stage).is_empty() {
                self.pass(stage)?;
            }
        }
        self.store_uniform()?;
        salt.end(&mut self.draft.text);
        let Shape { threads, .. } = self.shape;
        let blocks = self.rows.len().div_ceil(self.shape.rows());
        let (title, cost) = (title(self.body), self.cluster.cost(self.draft.graph));
        self.draft.finish("rows", title, &Launch::new(blocks, threads), cost)
    }

    /// Which row a thread is at, and where its loads and its result begin.
    fn row(&mut self) {
        let Shape { across, group, .. } = self.shape;
        let (index, here) = (self.index, self.shape.rows());
        let text = &mut self.draft.text;
        let (row, lane) = if across > 1 {
            (format!("WF_THREAD % {across}"), format!("WF_THREAD / {across}"))
        } else {
            (format!("WF_THREAD / {group}"), format!("WF_THREAD % {group}"))
        };
        text.line(format!("const int lane = {lane};"));
        text.line(format!("const {index} row = ({index})WF_BLOCK * {here} + {row};"));
        if self.full {
            text.open("");
            self.rows.split(text, "row", "r", index);
        } else {
            // Threads beyond the last row compute the first one, so that nothing but the stores depends on it.
            text.line(format!("const bool inside = row < {};", self.rows.len()));
            text.open("");
            self.rows.split(text, "(inside ? row : 0)", "r", index);
        }
        // The block is left open: its names are used to the end.
        let body = self.body;
        for (at, view) in body.loads.iter().map(|load| &load.view).chain([&body.output]).enumerate() {
            let place = self.base(at, view);
            self.draft.text.line(format!("const {index} b{at} = {place};"));
        }
    }

    /// Where a view begins for a thread: the loops over its chunks add numbers that are known when they are compiled,
    /// unless a row has several dimensions.
    fn base(&self, at: usize, view: &View) -> String {
        let first = match self.columns.strides[at][..] {
            [stride] if stride != 0 => format!("lane * {}", stride * self.shape.width as isize),
            _ => "0".to_owned(),
        };
        sum(&[view.offset.to_string(), self.rows.place(at, "r"), first])
    }

    /// Steps with one value for the row that can be computed before a stage.
    fn uniform(&mut self, stage: usize) -> Result<(), Unsupported> {
        let once = Chunk { space: &self.columns, prefix: "c", width: 1 };
        let iotas = iotas(self.body, &|at, view| self.base(at, view));
        let accesses: Vec<Option<Access>> = vec![None; self.body.loads.len()];
        let names = |at: usize| format!("s{at}");
        for (at, step) in self.body.steps.iter().enumerate() {
            let now = self.stages.uniform[at] && self.stages.level[at] == stage;
            if !now || matches!(step.op, BodyOp::Reduce(_)) {
                continue;
            }
            let value = match &step.op {
                BodyOp::Load(load) => {
                    let pointer = self.draft.read(self.body.loads[*load].value)?;
                    format!("wf_get({pointer}[b{load}])")
                }
                BodyOp::Iota(view) => {
                    let begin = iotas.iter().find(|(known, _)| known == view);
                    let begin = begin.map_or("0", |(_, begin)| begin.as_str());
                    format!("wf_convert<{}>((long long)({begin}))", computed(step.element)?)
                }
                _ => {
                    let around = InChunk { chunk: once, accesses: &accesses, iotas: &iotas, names: &names };
                    expression(self.body, at, &around)?
                }
            };
            self.draft.text.line(format!("const {} s{at} = {value};", computed(step.element)?));
            if let Some(divisor) = self.stages.divisor(self.body, at) {
                self.draft.text.line(divisor);
            }
        }
        Ok(())
    }

    /// One pass over the row.
    fn pass(&mut self, stage: usize) -> Result<(), Unsupported> {
        let Shape { group, width, chunks, .. } = self.shape;
        let (body, index, len) = (self.body, self.index, self.columns.len());
        for &at in self.kept.iter().filter(|&&at| self.stages.level[at] == stage) {
            let ty = computed(body.steps[at].element)?;
            self.draft.text.line(format!("{ty} k{at}[{}];", chunks * width));
        }
        let reduces = self.stages.reduces(body, stage);
        for &at in &reduces {
            let (fold, element) = reduction_of(body, at);
            let (ty, from) = (computed(element)?, identity(fold, element)?);
            self.draft.text.line(format!("{ty} a{at} = {from};"));
        }
        let guarded = self.stores(stage) && !self.full;
        if guarded {
            self.draft.text.open("if (inside)");
        }
        // A condition inside would keep the loads of one chunk from being on their way with those of the next.
        let whole = self.shape.whole(len);
        let number = format!("const {index} n = (({index})j * {group} + lane) * {width};");
        if whole > 0 {
            let ahead = self.shape.ahead();
            let counts = if self.kept.is_empty() && whole > 2 * ahead {
                format!("#pragma unroll {ahead}")
            } else {
                "#pragma unroll".to_owned()
            };
            self.draft.text.line(counts);
            self.draft.text.open(format!("for (int j = 0; j < {whole}; ++j)"));
            if self.columns.dims.len() > 1 {
                self.draft.text.line(&number);
            }
            self.chunk(stage)?;
            self.draft.text.close();
        }
        if whole < chunks {
            self.draft.text.open("");
            self.draft.text.line(format!("const int j = {whole};"));
            self.draft.text.line(&number);
            self.draft.text.open(format!("if (n < {len})"));
            self.chunk(stage)?;
            self.draft.text.close();
            self.draft.text.close();
        }
        if guarded {
            self.draft.text.close();
        }
        for at in reduces {
            self.fold(at)?;
        }
        Ok(())
    }

    /// Whether a stage's pass writes the result.
    fn stores(&self, stage: usize) -> bool {
        stage + 1 == self.stages.count && !self.stages.uniform[self.body.steps.len() - 1]
    }

    /// What a pass does with the chunk number `j` of a thread.
    fn chunk(&mut self, stage: usize) -> Result<(), Unsupported> {
        let Shape { group, width, .. } = self.shape;
        let (body, index) = (self.body, self.index);
        let columns = self.columns.clone();
        let chunk = Chunk { space: &columns, prefix: "c", width };
        let needed = self.stages.needed(body, stage, &self.kept);
        match columns.dims.len() {
            1 => self.draft.text.line(format!("const {index} c0 = ({index})j * {};", group * width)),
            _ => columns.split(&mut self.draft.text, "n", "c", index),
        }
        let mut accesses: Vec<Option<Access>> = vec![None; body.loads.len()];
        for &at in &needed {
            let fresh = !self.kept.contains(&at) || self.stages.level[at] == stage;
            if let BodyOp::Load(load) = &body.steps[at].op
                && fresh
            {
                accesses[*load] = Some(read(&mut self.draft, body, *load, chunk, &format!("b{load}"))?);
            }
        }
        let last = body.steps.len() - 1;
        let stores = self.stores(stage);
        let at_output = body.loads.len();
        let place = sum(&[format!("b{at_output}"), columns.place(at_output, "c")]);
        let vector = stores && in_vectors(chunk, at_output, &body.output);
        if vector {
            self.draft.text.line(format!("wf_vec<{}, {width}> o;", stored(self.element)?));
        }
        let v = if width > 1 {
            self.draft.text.unrolled("v", width);
            "v"
        } else {
            "0"
        };
        let iotas = iotas(body, &|at, view| self.base(at, view));
        let names = |at: usize| format!("s{at}");
        let around = InChunk { chunk, accesses: &accesses, iotas: &iotas, names: &names };
        let held = |at: usize| format!("k{at}[j * {width} + {v}]");
        for &at in &needed {
            let ty = computed(body.steps[at].element)?;
            if self.kept.contains(&at) && self.stages.level[at] < stage {
                self.draft.text.line(format!("const {ty} s{at} = {};", held(at)));
                continue;
            }
            let value = match self.stages.quotient(body, at) {
                Some(quotient) => rounded(body.steps[at].element, quotient)?,
                None => expression(body, at, &around)?,
            };
            self.draft.text.line(format!("const {ty} s{at} = {value};"));
            if self.kept.contains(&at) {
                self.draft.text.line(format!("{} = s{at};", held(at)));
            }
        }
        for at in self.stages.reduces(body, stage) {
            let (fold, _) = reduction_of(body, at);
            let input = body.steps[at].inputs[0];
            self.draft.text.line(format!("a{at} = {}(a{at}, s{input});", combiner(fold)));
        }
        if stores {
            let pointer = self.draft.write(self.cluster.output)?;
            let value = packed(self.element, &format!("s{last}"))?;
            self.draft.salt().wrote(&mut self.draft.text, &format!("s{last}"), self.element.byte_width());
            if vector {
                self.draft.text.line(format!("o.x[v] = {value};"));
            } else {
                let step = columns.inner(at_output).filter(|_| width > 1).unwrap_or(0);
                let more = if step == 0 { "0".to_owned() } else { format!("v * {step}") };
                self.draft.text.line(format!("{pointer}[{}] = {value};", sum(&[place.clone(), more])));
            }
            if width > 1 {
                self.draft.text.close();
            }
            if vector {
                self.draft.text.line(vector_store(&pointer, self.element, width, &place, "o")?);
            }
        } else if width > 1 {
            self.draft.text.close();
        }
        Ok(())
    }

    /// The fold over the threads of a row.
    fn fold(&mut self, at: usize) -> Result<(), Unsupported> {
        let Shape { threads, across, group, .. } = self.shape;
        let (fold, element) = reduction_of(self.body, at);
        let ty = computed(element)?;
        let text = &mut self.draft.text;
        let value = if across > 1 {
            text.line(format!("WF_SHARED {ty} m{at}[{threads}];"));
            format!("wf_column_fold<{across}, {group}>(a{at}, {}, m{at})", functor(fold))
        } else {
            text.line(format!("WF_SHARED {ty} m{at}[{}];", threads / 32));
            format!("wf_group_fold<{group}>(a{at}, {}, m{at})", functor(fold))
        };
        let value = rounded(element, value)?;
        text.line(format!("const {ty} s{at} = {value};"));
        if let Some(divisor) = self.stages.divisor(self.body, at) {
            self.draft.text.line(divisor);
        }
        Ok(())
    }

    /// The result, where it is one value for a row.
    fn store_uniform(&mut self) -> Result<(), Unsupported> {
        let last = self.body.steps.len() - 1;
        if self.stages.uniform[last] {
            let pointer = self.draft.write(self.cluster.output)?;
            let place = format!("b{}", self.body.loads.len());
            let value = packed(self.element, &format!("s{last}"))?;
            let salt = self.draft.salt();
            let text = &mut self.draft.text;
            text.open(if self.full { "if (lane == 0)" } else { "if (inside && lane == 0)" });
            salt.wrote(text, &format!("s{last}"), self.element.byte_width());
            text.line(format!("{pointer}[{place}] = {value};"));
            text.close();
        }
        self.draft.text.close();
        Ok(())
    }
}

fn reduction_of(body: &Body, at: usize) -> (warpforge_fusion::graph::ReduceKind, ElementType) {
    match body.steps[at].op {
        BodyOp::Reduce(fold) => (fold, body.steps[at].element),
        _ => (warpforge_fusion::graph::ReduceKind::Add, body.steps[at].element),
    }
}
