//! Clusters: which nodes one kernel computes together.

mod attach;
mod attention;
mod attention_gradient;
mod body;
mod contraction;
mod cost;
mod epilogue_form;
mod grow;
mod hoist;
mod join_loops;
mod join_rows;
mod kind;
mod machine;
mod op_by_op;
mod operand;
mod place;
mod split_dims;
mod state;

pub use attention::{Attention, DataMask, DeferredDivision, Mask, Softmax, Visible, ZeroRows};
pub(crate) use attention_gradient::fuse_attention_gradients;
pub use attention_gradient::{AttentionGradient, Gradient, SoftmaxGradient};
pub use body::{Body, BodyOp, BodyStep, Load, Stored};
pub use contraction::{Activation, Contraction, Epilogue, EpilogueForm, ReluMask};
pub use cost::Cost;
pub(crate) use cost::unfused;
pub(crate) use hoist::hoist;
pub use hoist::{HoistLimits, Hoisting};
pub(crate) use join_loops::join_loops;
pub(crate) use join_rows::join_rows;
pub use kind::{Cluster, Clusters, Kind};
pub use machine::Machine;
pub(crate) use op_by_op::op_by_op;
pub use operand::{Operand, single_stride};
pub(crate) use state::DeviceKernels;
use state::State;

use crate::graph::Graph;

/// Groups the nodes of a graph.
#[must_use]
pub(crate) fn clusters<'g>(graph: &'g Graph, kernels: DeviceKernels<'g>) -> Clusters {
    let mut state = State::new(graph, kernels);
    let outputs: Vec<Operand> = graph.outputs.iter().map(|&id| state.dense_operand(id)).collect();
    for &id in &graph.effects {
        state.needed[id.index()] = true;
    }
    for id in graph.ids().rev() {
        if state.needed[id.index()] {
            state.place(id);
        }
    }
    let mut clusters: Vec<Cluster> = state.clusters.into_iter().rev().collect();
    attach::attach(graph, &mut clusters, &outputs, kernels.machine);
    attention::join(graph, &mut clusters, &outputs, kernels.machine);
    Clusters { clusters, outputs }
}

/// The graph with a kernel for each operation, every value in memory; nothing where strides cannot describe a layout.
#[must_use]
pub fn op_by_op_clusters(graph: &Graph) -> Option<Clusters> {
    let kernels = DeviceKernels {
        convert_operands: false,
        quantized_weights: false,
        compute: &|_| true,
        strided_image: &|_| false,
        shortest_row: 1,
        machine: None,
    };
    op_by_op(graph, kernels).ok()
}
