//! Lowers the collectives of a graph to [`Collective`]; layout changes and reductions around them become graph nodes
//! for generated kernels.

use std::collections::HashMap;
use std::sync::Arc;

use warpforge_fusion::graph::{Builder, OpaqueOp};
use warpforge_fusion::{Graph, Node, NodeId, Op};
use warpforge_interp::Grid;
use warpforge_ir::table::{OpDef, Trait};
use warpforge_ir::{OpKind, OpRef};
use warpforge_tensor::{ElementType, Scalar, Tensor};

use super::collective::{Collective, CollectiveKind, PostOp, PreLayout};
use super::communicators::Group;

/// The collectives of a graph, by opaque operation.
#[derive(Debug, Clone, Default)]
pub(crate) struct CollectiveOps {
    all: Vec<(Arc<OpaqueOp>, Arc<Collective>)>,
}

impl CollectiveOps {
    /// The collective of an operation.
    pub(crate) fn of(&self, opaque: &Arc<OpaqueOp>) -> Option<&Arc<Collective>> {
        self.all.iter().find(|(known, _)| Arc::ptr_eq(known, opaque)).map(|(_, collective)| collective)
    }

    /// The groups, with repetitions.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Group> + '_ {
        self.all.iter().map(|(_, collective)| collective.group.clone()).filter(|group| !group.is_empty())
    }
}

/// Whether a graph has collectives.
pub(crate) fn has_collectives(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| match &node.op {
        Op::Opaque(opaque) => opaque.slice.module.has(Trait::Collective),
        _ => false,
    })
}

/// Lowers the collectives of a process.
///
/// # Errors
///
/// When one of several processes has an operation that only the reference supports; then all must run there.
pub(crate) fn lower_collectives(graph: Graph, grid: &Grid) -> Result<(Graph, CollectiveOps), String> {
    if !has_collectives(&graph) {
        return Ok((graph, CollectiveOps::default()));
    }
    let mut rewrite = Rewrite {
        old: &graph,
        grid,
        builder: Builder::default(),
        made: HashMap::new(),
        replacement: HashMap::new(),
        collectives: CollectiveOps::default(),
        effects: Vec::new(),
    };
    for id in graph.ids() {
        rewrite.node(id)?;
    }
    let Rewrite { mut builder, made, collectives, mut effects, .. } = rewrite;
    builder.set_values(graph.moved_values(|id| made.get(&id).copied()));
    let moved = |ids: &[NodeId]| ids.iter().map(|id| made[id]).collect::<Vec<NodeId>>();
    effects.extend(moved(&graph.effects));
    Ok((builder.finish(moved(&graph.outputs), effects), collectives))
}

/// The replacement of a collective.
enum Replacement {
    /// The replica or partition index.
    ProcessIndex(usize),
    /// A collective: its node and the shapes of its operands.
    Collective(NodeId, Arc<Collective>, Vec<Vec<usize>>),
}

struct Rewrite<'a> {
    old: &'a Graph,
    grid: &'a Grid,
    builder: Builder,
    made: HashMap<NodeId, NodeId>,
    replacement: HashMap<NodeId, Replacement>,
    collectives: CollectiveOps,
    effects: Vec<NodeId>,
}

impl Rewrite<'_> {
    fn node(&mut self, id: NodeId) -> Result<(), String> {
        let node = self.old.node(id).clone();
        self.builder.origin = node.origin;
        let new = match &node.op {
            Op::Opaque(opaque) => match self.collective(opaque, &node)? {
                Some(replacement) => {
                    if let Replacement::Collective(new, ..) = &replacement {
                        self.made.insert(id, *new);
                    }
                    self.replacement.insert(id, replacement);
                    return Ok(());
                }
                None => self.copy(node),
            },
            &Op::Result(at) if self.replacement.contains_key(&node.inputs[0]) => self.result(at, &node)?,
            _ => self.copy(node),
        };
        self.made.insert(id, new);
        Ok(())
    }

    fn copy(&mut self, node: Node) -> NodeId {
        let inputs = node.inputs.iter().map(|input| self.made[input]).collect();
        self.builder.add(node.op, inputs, node.element, node.dims)
    }

    /// Lowers an operation, where it is a collective.
    fn collective(&mut self, opaque: &Arc<OpaqueOp>, node: &Node) -> Result<Option<Replacement>, String> {
        let Some(op) = single_op(opaque).filter(|op| is_collective(*op)) else {
            // The reference evaluates single operations without other processes.
            return match self.grid.processes() > 1 && opaque.slice.module.has(Trait::Collective) {
                true => Err(format!("{} has a collective inside", opaque.name)),
                false => Ok(None),
            };
        };
        match op.kind() {
            Some(OpKind::ReplicaId) => return Ok(Some(Replacement::ProcessIndex(self.grid.me.replica))),
            Some(OpKind::PartitionId) => return Ok(Some(Replacement::ProcessIndex(self.grid.me.partition))),
            _ => {}
        }
        let collective = match Collective::of(op, self.grid) {
            Ok(collective) => Arc::new(collective),
            // The reference treats a single process like this.
            Err(_) if self.grid.processes() == 1 => return Ok(None),
            Err(reason) => return Err(reason),
        };
        let mut operands = Vec::new();
        for &at in &opaque.operands {
            let input = node.inputs.get(at).and_then(|input| self.made.get(input)).copied();
            let input = input.ok_or_else(|| format!("{} lacks an operand", collective.name))?;
            operands.push(self.before(&collective, input)?);
        }
        let sizes = operands.iter().map(|&id| self.builder.node(id).dims.clone()).collect();
        let new = self.builder.raw(Op::Opaque(Arc::clone(opaque)), operands, ElementType::Bool, vec![0]);
        self.effects.push(new);
        self.collectives.all.push((Arc::clone(opaque), Arc::clone(&collective)));
        Ok(Some(Replacement::Collective(new, collective, sizes)))
    }

    fn before(&mut self, collective: &Collective, input: NodeId) -> Result<NodeId, String> {
        let PreLayout::Split(axis) = collective.before else { return Ok(input) };
        let (mut dims, parts) = (self.builder.node(input).dims.clone(), collective.group.len());
        let whole = dims.get(axis).copied().filter(|size| size.is_multiple_of(parts));
        let whole = whole.ok_or_else(|| format!("{}: {dims:?} has no {parts} parts", collective.name))?;
        dims[axis] = whole / parts;
        dims.insert(axis, parts);
        let split = self.builder.reshape(input, dims.clone());
        let others = (0..dims.len()).filter(|&at| at != axis);
        Ok(self.builder.transpose(split, std::iter::once(axis).chain(others).collect()))
    }

    fn result(&mut self, at: usize, node: &Node) -> Result<NodeId, String> {
        let (new, collective, sizes) = match &self.replacement[&node.inputs[0]] {
            Replacement::ProcessIndex(number) => {
                let number = Tensor::scalar(node.element, Scalar::Int(*number as i128));
                return Ok(self.builder.constant(number.map_err(|error| error.to_string())?));
            }
            Replacement::Collective(new, collective, sizes) => {
                (*new, Arc::clone(collective), sizes.get(at).cloned())
            }
        };
        let own = sizes.ok_or_else(|| format!("{} gives more than it takes", collective.name))?;
        let dims = match &collective.kind {
            CollectiveKind::AllGather => std::iter::once(collective.group.len()).chain(own).collect(),
            CollectiveKind::ReduceScatter(_) => own.get(1..).unwrap_or_default().to_vec(),
            _ => own,
        };
        let given = self.builder.raw(Op::Result(at), vec![new], node.element, dims.clone());
        // Results without uses are written as well.
        self.effects.push(given);
        let last = match collective.after {
            PostOp::Same => given,
            PostOp::Reduce(kind) => {
                let reduced = dims.get(1..).unwrap_or_default().to_vec();
                self.builder.add(Op::Reduce(kind, vec![0]), vec![given], node.element, reduced)
            }
            PostOp::Join(axis) => {
                let fits = axis + 1 < dims.len() && dims.iter().product::<usize>() == node.len();
                if !fits {
                    return Err(format!("{} does not give {:?}", collective.name, node.dims));
                }
                let moved = (1..=axis).chain([0]).chain(axis + 1..dims.len()).collect();
                let side_by_side = self.builder.transpose(given, moved);
                self.builder.reshape(side_by_side, node.dims.clone())
            }
        };
        match self.builder.node(last).dims == node.dims {
            true => Ok(last),
            false => Err(format!("{} does not give {:?}", collective.name, node.dims)),
        }
    }
}

/// The only operation of a slice.
pub(crate) fn single_op(opaque: &OpaqueOp) -> Option<OpRef<'_>> {
    let module = &opaque.slice.module;
    let mut ops = module.ops_in(module.function(&opaque.function)?.body()?);
    let first = ops.next()?;
    ops.next()?.def().is_some_and(OpDef::is_terminator).then_some(first)
}

fn is_collective(op: OpRef<'_>) -> bool {
    op.def().is_some_and(|def| def.is(Trait::Collective))
}
