//! Loops with reductions: a group of threads computes a row, all of its stages, in one kernel.

use warpforge_fusion::cluster::{Body, BodyOp, Cluster};
use warpforge_fusion::{Graph, View};
use warpforge_tensor::ElementType;

use super::access::{Access, Chunk, InChunk, in_vectors, iotas, read, vector_store, width};
use super::stages::Stages;
use super::{title, views};
use crate::draft::{Draft, Launch};
use crate::index::{Space, int, reach, sum};
use crate::kernel::{Emitted, Unsupported};
use crate::options::{Effort, Options};
use crate::steps::{expression, packed};
use crate::types::{combiner, computed, functor, identity, rounded, stored};

/// Values of a row that a thread may hold in registers; most are dead when the next are computed.
const MOST_HELD: usize = 160;

/// Least threads of a block.
const LEAST_THREADS: usize = 128;

/// Threads that keep a device busy.
const BUSY_THREADS: usize = 1 << 16;

/// Rows side by side that a block takes when their elements lie side by side: fewer where there are few.
const ACROSS: [usize; 3] = [32, 16, 8];

/// Blocks that a device should have.
const BUSY_BLOCKS: usize = 256;

/// How threads share the work.
struct Shape {
    /// Threads of a block.
    threads: usize,
    /// Rows side by side: 1, or one of [`ACROSS`] where neighbouring threads read neighbouring rows.
    across: usize,
    /// Threads that compute a row together.
    group: usize,
    /// Neighbours that a thread takes at once.
    width: usize,
    /// Chunks that a thread takes of a row.
    chunks: usize,
}

impl Shape {
    fn rows(&self) -> usize {
        self.threads / self.group
    }
}

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
    /// The integer type of indices.
    index: &'static str,
    draft: Draft<'a>,
    element: ElementType,
}

impl<'a> Rows<'a> {
    fn new(graph: &'a Graph, cluster: &'a Cluster, body: &'a Body, options: &'a Options) -> Self {
        let views = views(body);
        let (folded, kept): (Vec<usize>, Vec<usize>) = (0..body.dims.len()).partition(|&at| body.folded[at]);
        let rows = Space::new(&body.dims, &kept, &views);
        let columns = Space::new(&body.dims, &folded, &views);
        let stages = Stages::new(body);
        let element = graph.node(cluster.output).element;
        let shape = shape(graph, body, &rows, &columns, &stages, element, options);
        let crossing = stages.crossing(body);
        let held = crossing.len() * shape.chunks * shape.width;
        let kept = if held <= MOST_HELD { crossing } else { Vec::new() };
        let index = int(reach(&views));
        let draft = Draft::new(graph, options);
        Self { cluster, body, rows, columns, stages, shape, kept, index, draft, element }
    }

    fn kernel(mut self) -> Result<crate::kernel::Kernel, Unsupported> {
        let salt = self.draft.salt();
        salt.begin(&mut self.draft.text);
        self.row();
        for stage in 0..self.stages.count {
            self.uniform(stage)?;
            let last = self.body.steps.len() - 1;
            let ends = stage + 1 == self.stages.count && !self.stages.uniform[last];
            if ends || !self.stages.folds(self.body, stage).is_empty() {
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

    /// Which row a thread is at, and where its loads begin.
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
        text.line(format!("const bool inside = row < {};", self.rows.len()));
        text.open("");
        self.rows.split(text, "(inside ? row : 0)", "r", index);
        // The block is left open: its names are used to the end.
        for at in 0..self.body.loads.len() {
            let place = self.base(at, &self.body.loads[at].view.clone());
            self.draft.text.line(format!("const {index} b{at} = {place};"));
        }
    }

    fn base(&self, at: usize, view: &View) -> String {
        sum(&[view.offset.to_string(), self.rows.place(at, "r")])
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
        }
        Ok(())
    }

    /// One pass over the row.
    fn pass(&mut self, stage: usize) -> Result<(), Unsupported> {
        let Shape { group, width, chunks, .. } = self.shape;
        let (body, index) = (self.body, self.index);
        let columns = self.columns.clone();
        let chunk = Chunk { space: &columns, prefix: "c", width };
        let needed = self.stages.needed(body, stage, &self.kept);
        for &at in self.kept.iter().filter(|&&at| self.stages.level[at] == stage) {
            let ty = computed(body.steps[at].element)?;
            self.draft.text.line(format!("{ty} k{at}[{}];", chunks * width));
        }
        let folds = self.stages.folds(body, stage);
        for &at in &folds {
            let (fold, element) = fold_of(body, at);
            let (ty, from) = (computed(element)?, identity(fold, element)?);
            self.draft.text.line(format!("{ty} a{at} = {from};"));
        }
        let counts = if self.kept.is_empty() && chunks > 8 { "#pragma unroll 4" } else { "#pragma unroll" };
        self.draft.text.line(counts);
        self.draft.text.open(format!("for (int j = 0; j < {chunks}; ++j)"));
        self.draft.text.line(format!("const {index} n = (({index})j * {group} + lane) * {width};"));
        self.draft.text.open(format!("if (inside && n < {})", columns.len()));
        columns.split(&mut self.draft.text, "n", "c", index);
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
        let stores = stage + 1 == self.stages.count && !self.stages.uniform[last];
        let at_output = body.loads.len();
        let place = sum(&[self.base(at_output, &body.output), columns.place(at_output, "c")]);
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
            let value = expression(body, at, &around)?;
            self.draft.text.line(format!("const {ty} s{at} = {value};"));
            if self.kept.contains(&at) {
                self.draft.text.line(format!("{} = s{at};", held(at)));
            }
        }
        for &at in &folds {
            let (fold, _) = fold_of(body, at);
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
        self.draft.text.close();
        self.draft.text.close();
        for at in folds {
            self.fold(at)?;
        }
        Ok(())
    }

    /// The fold over the threads of a row.
    fn fold(&mut self, at: usize) -> Result<(), Unsupported> {
        let Shape { threads, across, group, .. } = self.shape;
        let (fold, element) = fold_of(self.body, at);
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
        Ok(())
    }

    /// The result, where it is one value for a row.
    fn store_uniform(&mut self) -> Result<(), Unsupported> {
        let last = self.body.steps.len() - 1;
        if self.stages.uniform[last] {
            let pointer = self.draft.write(self.cluster.output)?;
            let place = self.base(self.body.loads.len(), &self.body.output);
            let value = packed(self.element, &format!("s{last}"))?;
            let salt = self.draft.salt();
            let text = &mut self.draft.text;
            text.open("if (inside && lane == 0)");
            salt.wrote(text, &format!("s{last}"), self.element.byte_width());
            text.line(format!("{pointer}[{place}] = {value};"));
            text.close();
        }
        self.draft.text.close();
        Ok(())
    }
}

fn fold_of(body: &Body, at: usize) -> (warpforge_fusion::graph::Fold, ElementType) {
    match body.steps[at].op {
        BodyOp::Reduce(fold) => (fold, body.steps[at].element),
        _ => (warpforge_fusion::graph::Fold::Add, body.steps[at].element),
    }
}

/// How threads share the rows.
fn shape(
    graph: &Graph,
    body: &Body,
    rows: &Space,
    columns: &Space,
    stages: &Stages,
    element: ElementType,
    options: &Options,
) -> Shape {
    let (row_count, len) = (rows.len(), columns.len());
    if options.effort == Effort::Naive {
        return Shape { threads: LEAST_THREADS, across: 1, group: 1, width: 1, chunks: len };
    }
    let size = |at: usize| graph.node(body.loads[at].value).element.byte_width();
    let varies = |at: &usize| columns.strides[*at].iter().any(|&stride| stride != 0);
    let loads: Vec<usize> = (0..body.loads.len()).filter(varies).collect();
    let beside = loads.iter().filter(|&&at| columns.inner(at) == Some(1)).count();
    let below = loads.iter().filter(|&&at| rows.inner(at) == Some(1)).count();
    if below > beside && rows.dims.last().is_some_and(|&last| last >= ACROSS[1]) {
        let across = ACROSS.into_iter().find(|across| row_count / across >= BUSY_BLOCKS).unwrap_or(ACROSS[2]);
        let group = len.div_ceil(8).next_power_of_two().clamp(1, 512 / across);
        let threads = (across * group).max(LEAST_THREADS);
        let group = threads / across;
        return Shape { threads, across, group, width: 1, chunks: len.div_ceil(group) };
    }
    let mut seen: Vec<(usize, &View, usize)> =
        loads.iter().map(|&at| (at, &body.loads[at].view, size(at))).collect();
    let last = body.steps.len() - 1;
    let mut output = None;
    if !stages.uniform[last] {
        seen.push((body.loads.len(), &body.output, element.byte_width()));
        output = Some(body.loads.len());
    }
    let width = width(columns, &seen, output);
    let pieces = (len / width).max(1);
    let mut group = if pieces <= 32 {
        pieces.next_power_of_two()
    } else if pieces <= 32 * 8 {
        32
    } else {
        (pieces / 4).next_power_of_two().clamp(64, 1024)
    };
    while row_count * group < BUSY_THREADS && group < 1024 && group * 2 <= pieces.next_power_of_two() {
        group *= 2;
    }
    let crossing = stages.crossing(body).len();
    while crossing * pieces.div_ceil(group) * width > MOST_HELD && group < 1024 {
        group *= 2;
    }
    let threads = group.max(LEAST_THREADS);
    Shape { threads, across: 1, group, width, chunks: pieces.div_ceil(group) }
}
