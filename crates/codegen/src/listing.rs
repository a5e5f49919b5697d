//! Lists all kernels of a program as one translation unit with comments.

use std::collections::HashSet;
use std::fmt::Write as _;

use warpforge_fusion::pipeline::Plan;
use warpforge_fusion::{Node, NodeId, Op};

use crate::emit::emit;
use crate::kernel::{Argument, Kernel};
use crate::options::Options;
use crate::packed_codes::{grouped_codes, packed_codes, with_packed_codes};
use crate::prelude::prelude;

/// The prelude, then the kernels of each cluster, or the reason that there are none.
#[must_use]
pub fn listing(plan: &Plan, options: &Options) -> String {
    let Plan { graph, clusters, .. } = plan;
    let mut text = prelude(options.dialect).to_owned();
    let mut known = HashSet::new();
    for (number, cluster) in clusters.clusters.iter().enumerate() {
        let node = graph.node(cluster.output);
        let dims: Vec<String> = node.dims.iter().map(|dim| format!("{dim}x")).collect();
        let _ = writeln!(
            text,
            "\n// #{number} -> %{} tensor<{}{}>",
            cluster.output.0,
            dims.concat(),
            node.element
        );
        if let Some(provenance) = plan.provenance(cluster) {
            let _ = writeln!(text, "// computes {}", provenance.replace(char::is_control, " "));
        }
        let emitted = match grouped_codes(cluster).and_then(|codes| packed_codes(graph.constant(codes)?)) {
            Some(words) => {
                let mut graph = graph.clone();
                let id = NodeId(graph.nodes.len() as u32);
                let (element, dims) = (words.element_type(), words.dims().to_vec());
                graph.nodes.push(Node {
                    op: Op::Constant(words),
                    inputs: Vec::new(),
                    element,
                    dims,
                    origin: None,
                });
                emit(&graph, &with_packed_codes(cluster, id), options)
            }
            None => emit(graph, cluster, options),
        };
        match emitted {
            Err(unsupported) => {
                let _ = writeln!(text, "// {unsupported}");
            }
            Ok(emitted) => {
                for (at, bytes) in emitted.scratch.iter().enumerate() {
                    let _ = writeln!(text, "// scratch {at}: {bytes} bytes");
                }
                for kernel in &emitted.kernels {
                    let _ = writeln!(text, "// {}", launch(kernel));
                    if known.insert(kernel.name.clone()) {
                        text.push_str(&kernel.source);
                    }
                }
            }
        }
    }
    text
}

fn launch(kernel: &Kernel) -> String {
    let arguments: Vec<String> = kernel
        .arguments
        .iter()
        .map(|argument| match argument {
            Argument::Value(id) => format!("%{}", id.0),
            Argument::TensorMap(map) => format!("map of %{}", map.value.0),
            Argument::Output(id) => format!("out %{}", id.0),
            Argument::Scratch(at) => format!("scratch {at}"),
            Argument::Salt => "salt".to_owned(),
        })
        .collect();
    let Kernel { name, title, grid, block, shared_bytes, flops, bytes, .. } = kernel;
    format!(
        "{title}: {name}({}), {} blocks of {} threads, {shared_bytes} bytes of shared memory, {flops} FLOP, {bytes} bytes",
        arguments.join(", "),
        grid[0],
        block[0]
    )
}
