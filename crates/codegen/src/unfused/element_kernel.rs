//! What the kernels of unfused operations have in common.

use warpforge_fusion::NodeId;
use warpforge_fusion::cluster::{Cluster, Operand};
use warpforge_tensor::{ElementType, FloatType};

use crate::builder::{KernelBuilder, Launch};
use crate::index::{IndexSpace, index_type};
use crate::kernel::{Kernel, Request, Unsupported};
use crate::steps::store_expr;

/// Threads per block.
pub(super) const THREADS: usize = 256;

/// An operation with its operands and results.
pub(super) struct UnfusedKernel<'a> {
    pub(super) request: Request<'a>,
    pub(super) operands: &'a [Operand],
}

impl UnfusedKernel<'_> {
    fn at(&self, at: usize) -> Result<&Operand, Unsupported> {
        self.operands.get(at).ok_or_else(|| self.unsupported())
    }

    /// The graph value of an operand.
    pub(super) fn operand(&self, at: usize) -> Result<NodeId, Unsupported> {
        Ok(self.at(at)?.value)
    }

    /// The shape of an operand.
    pub(super) fn dims(&self, at: usize) -> Result<&[usize], Unsupported> {
        Ok(&self.at(at)?.view.dims)
    }

    /// The element type of an operand.
    pub(super) fn element(&self, at: usize) -> Result<ElementType, Unsupported> {
        Ok(self.request.graph.node(self.operand(at)?).element)
    }

    /// The type of the first operand, of operations that are for f32 and f64 alone.
    pub(super) fn full_float(&self) -> Result<&'static str, Unsupported> {
        match self.element(0)? {
            ElementType::Float(FloatType::F32) => Ok("float"),
            ElementType::Float(FloatType::F64) => Ok("double"),
            _ => Err(self.unsupported()),
        }
    }

    /// The pointer to an operand.
    pub(super) fn read(&self, builder: &mut KernelBuilder<'_>, at: usize) -> Result<String, Unsupported> {
        builder.read(self.operand(at)?)
    }

    /// The number of operands.
    pub(super) fn count(&self) -> usize {
        self.operands.len()
    }

    /// The value that the operation gives.
    pub(super) fn output(&self) -> NodeId {
        self.request.cluster.output
    }

    /// A part of the tuple that it gives, where it is used.
    pub(super) fn result(&self, at: usize) -> Option<NodeId> {
        self.request.graph.result(self.request.cluster.output, at)
    }

    pub(super) fn unsupported(&self) -> Unsupported {
        Unsupported::new(self.request.graph.node(self.request.cluster.output).op.name())
    }
}

/// A kernel with one thread per element of a value; indices are `i0`, `i1`, ….
pub(crate) struct ElementKernel<'a> {
    pub(crate) builder: KernelBuilder<'a>,
    pub(crate) cluster: &'a Cluster,
    /// The value that is enumerated.
    target: NodeId,
    /// The integer type of indices.
    pub(crate) index: &'static str,
}

impl<'a> ElementKernel<'a> {
    pub(crate) fn new(request: Request<'a>, target: NodeId) -> Self {
        let dims = request.graph.node(target).dims.clone();
        Self::with_dims(request, target, dims)
    }

    /// The same with other dimensions for the value.
    pub(crate) fn with_dims(request: Request<'a>, target: NodeId, dims: Vec<usize>) -> Self {
        let Request { graph, cluster, options } = request;
        let node = graph.node(target);
        let most = cluster.reads().iter().map(|&id| graph.node(id).len()).max().unwrap_or(0);
        let index = index_type(most.max(node.len()));
        let mut builder = KernelBuilder::new(graph, options);
        builder.salt().begin(&mut builder.text);
        builder.text.line(format!("const {index} n = ({index})WF_BLOCK * {THREADS} + WF_THREAD;"));
        builder.text.open(format!("if (n < {})", node.len()));
        let space = IndexSpace { dims, strides: Vec::new() };
        space.split(&mut builder.text, "n", "i", index);
        Self { builder, cluster, target, index }
    }

    /// Stores the element and finishes the kernel.
    pub(crate) fn finish(mut self, value: &str) -> Result<Kernel, Unsupported> {
        self.store(self.target, "n", value)?;
        self.done()
    }

    /// Emits the store of an element.
    pub(crate) fn store(&mut self, id: NodeId, place: &str, value: &str) -> Result<(), Unsupported> {
        let element = self.builder.graph.node(id).element;
        let pointer = self.builder.write(id)?;
        self.builder.salt().wrote(&mut self.builder.text, value, element.byte_width());
        self.builder.text.line(format!("{pointer}[{place}] = {};", store_expr(element, value)?));
        Ok(())
    }

    /// Finishes the kernel.
    pub(crate) fn done(mut self) -> Result<Kernel, Unsupported> {
        let graph = self.builder.graph;
        self.builder.text.close();
        self.builder.salt().end(&mut self.builder.text);
        let node = graph.node(self.target);
        let launch = Launch::new(node.len().div_ceil(THREADS), THREADS);
        let dims: Vec<String> = node.dims.iter().map(ToString::to_string).collect();
        let name = graph.node(self.cluster.output).op.name();
        let title = format!("{name} to {}", dims.join("x"));
        let what = name.split_whitespace().next().unwrap_or("unfused").to_owned();
        self.builder.finish(&what, title, &launch, self.cluster.cost(graph))
    }
}
