//! Loops with reductions: a group of threads computes all stages of a row in one kernel.

use warpforge_fusion::View;
use warpforge_fusion::cluster::{Body, BodyOp, Cluster, Stored};
use warpforge_tensor::ElementType;

use super::access::{
    Access, Chunk, ChunkContext, held_expr, held_type, in_vectors, iotas, read, vector_store,
};
use super::mapping::{MAX_HELD, ThreadMapping};
use super::stages::Stages;
use super::views::{title, views};
use crate::builder::{KernelBuilder, Launch};
use crate::index::{IndexSpace, index_type, max_index, sum};
use crate::kernel::{Emitted, Request, Unsupported};
use crate::salt::Salt;
use crate::steps::{expression, store_expr, stored_expression};
use crate::types::{combine_fn, compute_type, identity, reducer, rounded};

/// The kernel of a loop with reductions.
pub(super) fn emit(request: Request<'_>, body: &Body) -> Result<Emitted, Unsupported> {
    let kernel = Rows::new(request, body).kernel()?;
    Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
}

struct Rows<'a> {
    cluster: &'a Cluster,
    body: &'a Body,
    rows: IndexSpace,
    columns: IndexSpace,
    stages: Stages,
    mapping: ThreadMapping,
    kept: Vec<usize>,
    /// Whether every block has only rows in range.
    full: bool,
    /// The integer type of indices.
    index: &'static str,
    builder: KernelBuilder<'a>,
    element: ElementType,
}

impl<'a> Rows<'a> {
    fn new(request: Request<'a>, body: &'a Body) -> Self {
        let Request { graph, cluster, options } = request;
        let views = views(body);
        let (reduced, kept): (Vec<usize>, Vec<usize>) =
            (0..body.dims.len()).partition(|&at| body.reduced[at]);
        let rows = IndexSpace::new(&body.dims, &kept, &views);
        let columns = IndexSpace::new(&body.dims, &reduced, &views);
        let stages = Stages::new(body, options.effort);
        let element = graph.node(cluster.output).element;
        let mapping = ThreadMapping::new(graph, body, &rows, &columns, &stages, element, options);
        let crossing = stages.crossing(body);
        let held = crossing.len() * mapping.chunks * mapping.width;
        let kept = if held <= MAX_HELD { crossing } else { Vec::new() };
        let full = rows.len().is_multiple_of(mapping.rows());
        let index = index_type(max_index(&views));
        let builder = KernelBuilder::new(graph, options);
        Self { cluster, body, rows, columns, stages, mapping, kept, full, index, builder, element }
    }

    fn kernel(mut self) -> Result<crate::kernel::Kernel, Unsupported> {
        let salt = self.builder.salt();
        salt.begin(&mut self.builder.text);
        self.row();
        for stage in 0..self.stages.count {
            self.uniform(stage)?;
            if self.stores(stage) || !self.stages.reduces(self.body, stage).is_empty() {
                self.pass(stage)?;
            }
        }
        self.store_uniform()?;
        salt.end(&mut self.builder.text);
        let ThreadMapping { threads, .. } = self.mapping;
        let blocks = self.rows.len().div_ceil(self.mapping.rows());
        let (title, cost) = (title(self.body), self.cluster.cost(self.builder.graph));
        self.builder.finish("rows", title, &Launch::new(blocks, threads), cost)
    }

    /// Emits the row of a thread and the base indices of its loads and output.
    fn row(&mut self) {
        let ThreadMapping { across, group, .. } = self.mapping;
        let (index, here) = (self.index, self.mapping.rows());
        let text = &mut self.builder.text;
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
            // Threads past the last row recompute the first one; only their stores are masked.
            text.line(format!("const bool inside = row < {};", self.rows.len()));
            text.open("");
            self.rows.split(text, "(inside ? row : 0)", "r", index);
        }
        // The scope stays open until the end of the kernel.
        let body = self.body;
        for (at, view) in body.loads.iter().map(|load| &load.view).chain([&body.output]).enumerate() {
            let place = self.base(at, view);
            self.builder.text.line(format!("const {index} b{at} = {place};"));
        }
    }

    /// The base index of a view for a thread. Chunk offsets are compile-time constants unless a row has several
    /// dimensions.
    fn base(&self, at: usize, view: &View) -> String {
        let first = match self.columns.strides[at][..] {
            [stride] if stride != 0 => format!("lane * {}", stride * self.mapping.width as isize),
            _ => "0".to_owned(),
        };
        sum(&[view.offset.to_string(), self.rows.linear_index(at, "r"), first])
    }

    /// Emits row-uniform steps that are available before a stage.
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
                    let pointer = self.builder.read(self.body.loads[*load].value)?;
                    format!("wf_get({pointer}[b{load}])")
                }
                BodyOp::Iota(view) => {
                    let begin = iotas.iter().find(|(known, _)| known == view);
                    let begin = begin.map_or("0", |(_, begin)| begin.as_str());
                    format!("wf_convert<{}>((long long)({begin}))", compute_type(step.element)?)
                }
                _ => {
                    let context =
                        ChunkContext { chunk: once, accesses: &accesses, iotas: &iotas, names: &names };
                    expression(self.body, at, &context)?
                }
            };
            self.builder.text.line(format!("const {} s{at} = {value};", compute_type(step.element)?));
            if let Some(divisor) = self.stages.divisor(self.body, at) {
                self.builder.text.line(divisor);
            }
        }
        Ok(())
    }

    /// One pass over the row.
    fn pass(&mut self, stage: usize) -> Result<(), Unsupported> {
        let ThreadMapping { group, width, chunks, .. } = self.mapping;
        let (body, index, len) = (self.body, self.index, self.columns.len());
        for &at in self.kept.iter().filter(|&&at| self.stages.level[at] == stage) {
            let ty = compute_type(body.steps[at].element)?;
            self.builder.text.line(format!("{ty} k{at}[{}];", chunks * width));
        }
        let reduces = self.stages.reduces(body, stage);
        for &at in &reduces {
            let (kind, element) = reduction_of(body, at);
            let (ty, from) = (compute_type(element)?, identity(kind, element)?);
            self.builder.text.line(format!("{ty} a{at} = {from};"));
        }
        let guarded = self.stores(stage) && !self.full;
        if guarded {
            self.builder.text.open("if (inside)");
        }
        // A condition inside the loop would keep loads of consecutive chunks from overlapping.
        let whole = self.mapping.whole(len);
        let number = format!("const {index} n = (({index})j * {group} + lane) * {width};");
        if whole > 0 {
            let in_flight = self.mapping.chunks_in_flight();
            let counts = if self.kept.is_empty() && whole > 2 * in_flight {
                format!("#pragma unroll {in_flight}")
            } else {
                "#pragma unroll".to_owned()
            };
            self.builder.text.line(counts);
            self.builder.text.open(format!("for (int j = 0; j < {whole}; ++j)"));
            if self.columns.dims.len() > 1 {
                self.builder.text.line(&number);
            }
            self.chunk(stage)?;
            self.builder.text.close();
        }
        if whole < chunks {
            self.builder.text.open("");
            self.builder.text.line(format!("const int j = {whole};"));
            self.builder.text.line(&number);
            self.builder.text.open(format!("if (n < {len})"));
            self.chunk(stage)?;
            self.builder.text.close();
            self.builder.text.close();
        }
        if guarded {
            self.builder.text.close();
        }
        for at in reduces {
            self.reduce_threads(at)?;
        }
        Ok(())
    }

    /// Whether a stage writes the output.
    fn stores(&self, stage: usize) -> bool {
        stage + 1 == self.stages.count && !self.stages.uniform[self.body.steps.len() - 1]
    }

    /// Emits chunk `j` of a pass.
    fn chunk(&mut self, stage: usize) -> Result<(), Unsupported> {
        let ThreadMapping { group, width, .. } = self.mapping;
        let (body, index) = (self.body, self.index);
        let columns = self.columns.clone();
        let chunk = Chunk { space: &columns, prefix: "c", width };
        let needed = self.stages.needed(body, stage, &self.kept);
        match columns.dims.len() {
            1 => self.builder.text.line(format!("const {index} c0 = ({index})j * {};", group * width)),
            _ => columns.split(&mut self.builder.text, "n", "c", index),
        }
        let mut accesses: Vec<Option<Access>> = vec![None; body.loads.len()];
        for &at in &needed {
            let fresh = !self.kept.contains(&at) || self.stages.level[at] == stage;
            if let BodyOp::Load(load) = &body.steps[at].op
                && fresh
            {
                accesses[*load] = Some(read(&mut self.builder, body, *load, chunk, &format!("b{load}"))?);
            }
        }
        let last = body.steps.len() - 1;
        let stores = self.stores(stage);
        let at_output = body.loads.len();
        let place = sum(&[format!("b{at_output}"), columns.linear_index(at_output, "c")]);
        let vector = stores && in_vectors(chunk, at_output, &body.output);
        if vector {
            self.builder.text.line(format!("wf_vec<{}, {width}> o;", held_type(self.element)?));
        }
        let v = if width > 1 {
            self.builder.text.unrolled("v", width);
            "v"
        } else {
            "0"
        };
        let iotas = iotas(body, &|at, view| self.base(at, view));
        let names = |at: usize| format!("s{at}");
        let context = ChunkContext { chunk, accesses: &accesses, iotas: &iotas, names: &names };
        let held = |at: usize| format!("k{at}[j * {width} + {v}]");
        for &at in &needed {
            let ty = compute_type(body.steps[at].element)?;
            if self.kept.contains(&at) && self.stages.level[at] < stage {
                self.builder.text.line(format!("const {ty} s{at} = {};", held(at)));
                continue;
            }
            let value = match self.stages.quotient(body, at) {
                Some(quotient) => rounded(body.steps[at].element, quotient)?,
                None if stores && at == last && self.builder.salt() == Salt::Off => {
                    stored_expression(body, at, &context)?
                }
                None => expression(body, at, &context)?,
            };
            self.builder.text.line(format!("const {ty} s{at} = {value};"));
            if self.kept.contains(&at) {
                self.builder.text.line(format!("{} = s{at};", held(at)));
            }
        }
        for at in self.stages.reduces(body, stage) {
            let (kind, _) = reduction_of(body, at);
            let input = body.steps[at].inputs[0];
            self.builder.text.line(format!("a{at} = {}(a{at}, s{input});", combine_fn(kind)));
        }
        if stores {
            let pointer = self.builder.write(self.cluster.output)?;
            self.builder.salt().wrote(&mut self.builder.text, &format!("s{last}"), self.element.byte_width());
            if vector {
                let value = held_expr(self.element, &format!("s{last}"))?;
                self.builder.text.line(format!("o.x[v] = {value};"));
            } else {
                let value = store_expr(self.element, &format!("s{last}"))?;
                let step = columns.inner(at_output).filter(|_| width > 1).unwrap_or(0);
                let more = if step == 0 { "0".to_owned() } else { format!("v * {step}") };
                self.builder.text.line(format!("{pointer}[{}] = {value};", sum(&[place.clone(), more])));
            }
            if width > 1 {
                self.builder.text.close();
            }
            if vector {
                self.builder.text.line(vector_store(&pointer, self.element, width, &place, "o")?);
            }
        } else if width > 1 {
            self.builder.text.close();
        }
        Ok(())
    }

    /// Emits the reduction over the threads of a row.
    fn reduce_threads(&mut self, at: usize) -> Result<(), Unsupported> {
        let ThreadMapping { threads, across, group, .. } = self.mapping;
        let (kind, element) = reduction_of(self.body, at);
        let ty = compute_type(element)?;
        let text = &mut self.builder.text;
        let value = if across > 1 {
            text.line(format!("WF_SHARED {ty} m{at}[{threads}];"));
            format!("wf_column_reduce<{across}, {group}>(a{at}, {}, m{at})", reducer(kind))
        } else {
            text.line(format!("WF_SHARED {ty} m{at}[{}];", threads / 32));
            format!("wf_group_reduce<{group}>(a{at}, {}, m{at})", reducer(kind))
        };
        let value = rounded(element, value)?;
        text.line(format!("const {ty} s{at} = {value};"));
        if let Some(divisor) = self.stages.divisor(self.body, at) {
            self.builder.text.line(divisor);
        }
        Ok(())
    }

    /// Stores outputs that have one element per row.
    fn store_uniform(&mut self) -> Result<(), Unsupported> {
        let last = self.body.steps.len() - 1;
        let own = self.stages.uniform[last].then_some(Stored { value: self.cluster.output, step: last });
        let place = format!("b{}", self.body.loads.len());
        let own = own.into_iter().map(|stored| (stored, place.as_str()));
        // Others lie in the order of the rows.
        let others = self.body.also.iter().map(|&stored| (stored, "row"));
        for (Stored { value, step }, place) in own.chain(others) {
            if !self.stages.uniform[step] {
                return Err(Unsupported::new("a loop over rows that gives several values of each element"));
            }
            let element = self.builder.graph.node(value).element;
            let pointer = self.builder.write(value)?;
            let stored = store_expr(element, &format!("s{step}"))?;
            let salt = self.builder.salt();
            let text = &mut self.builder.text;
            text.open(if self.full { "if (lane == 0)" } else { "if (inside && lane == 0)" });
            salt.wrote(text, &format!("s{step}"), element.byte_width());
            text.line(format!("{pointer}[{place}] = {stored};"));
            text.close();
        }
        self.builder.text.close();
        Ok(())
    }
}

fn reduction_of(body: &Body, at: usize) -> (warpforge_fusion::graph::ReduceKind, ElementType) {
    match body.steps[at].op {
        BodyOp::Reduce(kind) => (kind, body.steps[at].element),
        _ => (warpforge_fusion::graph::ReduceKind::Add, body.steps[at].element),
    }
}
