//! Operations that stand alone: a thread computes an element of the result.

mod concat;
mod gather;
mod pad;
mod window;

use warpforge_fusion::cluster::{Cluster, Operand};
use warpforge_fusion::{Graph, NodeId, Op};

use crate::draft::{Draft, Launch};
use crate::index::{Space, int};
use crate::kernel::{Emitted, Kernel, Unsupported};
use crate::options::Options;
use crate::steps::packed;

/// Threads of a block.
const THREADS: usize = 256;

/// The kernel of an operation that stands alone.
pub(crate) fn emit(
    graph: &Graph,
    cluster: &Cluster,
    operands: &[Operand],
    options: &Options,
) -> Result<Emitted, Unsupported> {
    let node = graph.node(cluster.output);
    if let Op::Opaque(part) = &node.op {
        return crate::part::emit(graph, cluster, part, operands, options);
    }
    if node.is_empty() {
        return Ok(Emitted::default());
    }
    let mut element = Element::new(graph, cluster, cluster.output, options);
    let value = match &node.op {
        Op::Concat(axis) => concat::value(&mut element, operands, *axis)?,
        Op::Pad { low, interior, .. } => pad::value(&mut element, operands, low, interior)?,
        Op::Gather(numbers, window) => gather::value(&mut element, operands, numbers, window)?,
        Op::ReduceWindow(fold, window, init) => window::value(&mut element, operands, *fold, window, init)?,
        op => return Err(Unsupported::new(op.name())),
    };
    Ok(Emitted { kernels: vec![element.finish(&value)?], scratch: Vec::new() })
}

/// A kernel whose threads have an element of a value each; its indices are `i0`, `i1`, …, one for each dimension.
pub(crate) struct Element<'a> {
    pub(crate) draft: Draft<'a>,
    pub(crate) cluster: &'a Cluster,
    /// The value whose elements are numbered.
    target: NodeId,
    /// The integer type of indices.
    pub(crate) index: &'static str,
}

impl<'a> Element<'a> {
    pub(crate) fn new(graph: &'a Graph, cluster: &'a Cluster, target: NodeId, options: &'a Options) -> Self {
        let dims = graph.node(target).dims.clone();
        Self::over(graph, cluster, target, dims, options)
    }

    /// The same over a value that an operation sees in other dimensions.
    pub(crate) fn over(
        graph: &'a Graph,
        cluster: &'a Cluster,
        target: NodeId,
        dims: Vec<usize>,
        options: &'a Options,
    ) -> Self {
        let node = graph.node(target);
        let most = cluster.reads().iter().map(|&id| graph.node(id).len()).max().unwrap_or(0);
        let index = int(most.max(node.len()));
        let mut draft = Draft::new(graph, options);
        draft.salt().begin(&mut draft.text);
        draft.text.line(format!("const {index} n = ({index})WF_BLOCK * {THREADS} + WF_THREAD;"));
        draft.text.open(format!("if (n < {})", node.len()));
        let space = Space { dims, strides: Vec::new() };
        space.split(&mut draft.text, "n", "i", index);
        Self { draft, cluster, target, index }
    }

    /// The kernel, once the lines that compute the element's value stand.
    pub(crate) fn finish(mut self, value: &str) -> Result<Kernel, Unsupported> {
        self.store(self.target, "n", value)?;
        self.done()
    }

    /// Lines that store an element of a value.
    pub(crate) fn store(&mut self, id: NodeId, place: &str, value: &str) -> Result<(), Unsupported> {
        let element = self.draft.graph.node(id).element;
        let pointer = self.draft.write(id)?;
        self.draft.salt().wrote(&mut self.draft.text, value, element.byte_width());
        self.draft.text.line(format!("{pointer}[{place}] = {};", packed(element, value)?));
        Ok(())
    }

    /// The kernel, once everything is stored.
    pub(crate) fn done(mut self) -> Result<Kernel, Unsupported> {
        let graph = self.draft.graph;
        self.draft.text.close();
        self.draft.salt().end(&mut self.draft.text);
        let node = graph.node(self.target);
        let launch = Launch::new(node.len().div_ceil(THREADS), THREADS);
        let dims: Vec<String> = node.dims.iter().map(ToString::to_string).collect();
        let name = graph.node(self.cluster.output).op.name();
        let title = format!("{name} to {}", dims.join("x"));
        let what = name.split_whitespace().next().unwrap_or("single").to_owned();
        self.draft.finish(&what, title, &launch, self.cluster.cost(graph))
    }
}
