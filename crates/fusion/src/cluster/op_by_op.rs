//! One cluster for each node, every value in memory: what the correctness tier runs.

use super::{Body, BodyOp, BodyStep, Cluster, Clusters, Contraction, DeviceKernels, Kind, Operand};
use crate::graph::{Graph, NodeId, Op};
use crate::view::View;

/// The clusters of a graph, operation by operation.
///
/// # Errors
///
/// When a layout cannot be described by strides: what it is.
pub(crate) fn op_by_op(graph: &Graph, kernels: DeviceKernels<'_>) -> Result<Clusters, String> {
    let mut clusters = Vec::new();
    for id in graph.ids() {
        if let Some(kind) = kind(graph, id)? {
            let mut cluster = Cluster { kind, output: id, nodes: vec![id] };
            if matches!(cluster.kind, Kind::Dot(_)) && !(kernels.compute)(&cluster) {
                let whole = |&input: &NodeId| whole(graph, input);
                cluster.kind = Kind::Unfused(graph.node(id).inputs.iter().map(whole).collect());
            }
            clusters.push(cluster);
        }
    }
    let outputs = graph.outputs.iter().map(|&id| whole(graph, id)).collect();
    Ok(Clusters { clusters, outputs })
}

fn whole(graph: &Graph, id: NodeId) -> Operand {
    Operand { value: id, view: View::dense(&graph.node(id).dims) }
}

fn kind(graph: &Graph, id: NodeId) -> Result<Option<Kind>, String> {
    let node = graph.node(id);
    let inputs = || node.inputs.iter().map(|&input| whole(graph, input)).collect::<Vec<_>>();
    let both = || -> Result<[Operand; 2], String> {
        <[Operand; 2]>::try_from(inputs()).map_err(|_| "a contraction has not two operands".to_owned())
    };
    let body = |op: BodyOp| looped(graph, id, op, &inputs());
    Ok(Some(match &node.op {
        Op::Argument(_) | Op::Constant(_) | Op::Result(_) => return Ok(None),
        Op::Elementwise(kind) => Kind::Loop(body(BodyOp::Elementwise(*kind))),
        Op::Compare(direction, order) => Kind::Loop(body(BodyOp::Compare(*direction, *order))),
        Op::Iota(dimension) => {
            let mut view = View { offset: 0, dims: node.dims.clone(), strides: vec![0; node.dims.len()] };
            view.strides[*dimension] = 1;
            Kind::Loop(looped(graph, id, BodyOp::Iota(view), &[]))
        }
        Op::Layout(step) => {
            let mut operand = whole(graph, node.inputs[0]);
            let seen = operand.view.after(step);
            operand.view = seen.ok_or_else(|| format!("{} has no strides", node.op.name()))?;
            Kind::Loop(copied(graph, id, operand))
        }
        Op::Reduce(reduction, axes) => {
            let input = whole(graph, node.inputs[0]);
            let mut body =
                looped(graph, node.inputs[0], BodyOp::Reduce(*reduction), std::slice::from_ref(&input));
            body.reduced = (0..input.view.dims.len()).map(|at| axes.contains(&at)).collect();
            let mut strides = View::dense(&node.dims).strides.into_iter();
            let kept =
                body.reduced.iter().map(|&reduced| if reduced { 0 } else { strides.next().unwrap_or(0) });
            body.output = View { offset: 0, dims: body.dims.clone(), strides: kept.collect() };
            if let Some(step) = body.steps.last_mut() {
                step.element = node.element;
            }
            Kind::Loop(body)
        }
        Op::Dot(_) => Kind::Dot(Contraction { node: id, operands: both()?, weights: None, epilogue: None }),
        Op::Conv(_) => Kind::Conv(Contraction { node: id, operands: both()?, weights: None, epilogue: None }),
        _ => Kind::Unfused(inputs()),
    }))
}

/// One operation on each element of a node's domain.
fn looped(graph: &Graph, id: NodeId, op: BodyOp, inputs: &[Operand]) -> Body {
    let node = graph.node(id);
    let mut steps: Vec<BodyStep> = inputs
        .iter()
        .enumerate()
        .map(|(at, input)| BodyStep {
            op: BodyOp::Load(at),
            inputs: Vec::new(),
            element: graph.node(input.value).element,
        })
        .collect();
    steps.push(BodyStep { op, inputs: (0..inputs.len()).collect(), element: node.element });
    Body {
        dims: node.dims.clone(),
        reduced: vec![false; node.dims.len()],
        loads: inputs.to_vec(),
        steps,
        output: View::dense(&node.dims),
        also: Vec::new(),
    }
}

/// The elements of a view, in order.
fn copied(graph: &Graph, id: NodeId, operand: Operand) -> Body {
    let node = graph.node(id);
    Body {
        dims: node.dims.clone(),
        reduced: vec![false; node.dims.len()],
        steps: vec![BodyStep { op: BodyOp::Load(0), inputs: Vec::new(), element: node.element }],
        loads: vec![operand],
        output: View::dense(&node.dims),
        also: Vec::new(),
    }
}
