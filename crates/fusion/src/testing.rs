//! Graphs of modules that tests write as text.

use warpforge_diag::Source;
use warpforge_ir::Module;
use warpforge_snakeburger::text;

use crate::cluster::{Clusters, DeviceKernels, clusters};
use crate::graph::{Graph, import};

/// A module.
pub(crate) fn module(module: &str) -> Module {
    text::parse(&Source::new("m.mlir", module), &text::Options::default()).unwrap()
}

/// The graph of a module's function `@main`, not simplified.
pub(crate) fn graph(text: &str) -> Graph {
    import(module(text).function("main").unwrap(), &|_| None).unwrap()
}

/// The clusters of a graph on a device that has every kernel.
pub(crate) fn grouped(graph: &Graph) -> Clusters {
    clusters(graph, DeviceKernels { convert_operands: false, compute: &|_| true })
}
