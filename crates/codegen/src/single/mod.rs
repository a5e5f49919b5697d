//! Operations that stand alone: a thread computes an element of the result.

mod concat;
mod gather;
mod pad;
mod window;

use warpforge_fusion::cluster::{Cluster, Operand};
use warpforge_fusion::{Graph, Op};

use crate::draft::{Draft, Launch};
use crate::index::{Space, int};
use crate::kernel::{Emitted, Unsupported};
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
    if node.is_empty() {
        return Ok(Emitted::default());
    }
    let mut element = Element::new(graph, cluster, options)?;
    let value = match &node.op {
        Op::Concat(axis) => concat::value(&mut element, operands, *axis)?,
        Op::Pad { low, interior, .. } => pad::value(&mut element, operands, low, interior)?,
        Op::Gather(numbers, window) => gather::value(&mut element, operands, numbers, window)?,
        Op::ReduceWindow(fold, window, init) => window::value(&mut element, operands, *fold, window, init)?,
        op => return Err(Unsupported::new(op.name())),
    };
    element.finish(&value)
}

/// A kernel whose threads have an element of the result each; its indices are `i0`, `i1`, …, one for each dimension.
pub(crate) struct Element<'a> {
    pub(crate) draft: Draft<'a>,
    pub(crate) cluster: &'a Cluster,
    /// The integer type of indices.
    pub(crate) index: &'static str,
    len: usize,
}

impl<'a> Element<'a> {
    pub(crate) fn new(
        graph: &'a Graph,
        cluster: &'a Cluster,
        options: &'a Options,
    ) -> Result<Self, Unsupported> {
        let node = graph.node(cluster.output);
        let most = cluster.reads().iter().map(|&id| graph.node(id).len()).max().unwrap_or(0);
        let index = int(most.max(node.len()));
        let mut draft = Draft::new(graph, options);
        draft.salt().begin(&mut draft.text);
        draft.text.line(format!("const {index} n = ({index})WF_BLOCK * {THREADS} + WF_THREAD;"));
        draft.text.open(format!("if (n < {})", node.len()));
        let space = Space { dims: node.dims.clone(), strides: Vec::new() };
        space.split(&mut draft.text, "n", "i", index);
        Ok(Self { draft, cluster, index, len: node.len() })
    }

    /// The kernel, once the lines that compute the element's value stand.
    pub(crate) fn finish(mut self, value: &str) -> Result<Emitted, Unsupported> {
        let graph = self.draft.graph;
        let node = graph.node(self.cluster.output);
        let pointer = self.draft.write(self.cluster.output)?;
        let salt = self.draft.salt();
        let text = &mut self.draft.text;
        salt.wrote(text, value, node.element.byte_width());
        text.line(format!("{pointer}[n] = {};", packed(node.element, value)?));
        text.close();
        salt.end(text);
        let launch = Launch::new(self.len.div_ceil(THREADS), THREADS);
        let dims: Vec<String> = node.dims.iter().map(ToString::to_string).collect();
        let title = format!("{} to {}", node.op.name(), dims.join("x"));
        let what = node.op.name();
        let what = what.split_whitespace().next().unwrap_or("single").to_owned();
        let kernel = self.draft.finish(&what, title, &launch, self.cluster.cost(graph))?;
        Ok(Emitted { kernels: vec![kernel], scratch: Vec::new() })
    }
}
