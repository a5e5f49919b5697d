//! The collectives of a process's graph in the forms of [`Exchange`], with what is done to elements before and after as
//! nodes of the graph, for generated kernels.

use std::collections::HashMap;
use std::sync::Arc;

use warpforge_fusion::graph::{Builder, OpaqueOp};
use warpforge_fusion::{Graph, Node, NodeId, Op};
use warpforge_interp::Grid;
use warpforge_ir::table::{OpDef, Trait};
use warpforge_ir::{OpKind, OpRef};
use warpforge_tensor::{ElementType, Scalar, Tensor};

use super::exchange::{After, Before, Exchange, Kind};
use super::world::Group;

/// The exchanges of a graph, each known by the operation that was cut out for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exchanges {
    all: Vec<(Arc<OpaqueOp>, Arc<Exchange>)>,
}

impl Exchanges {
    /// The exchange that an operation is.
    pub(crate) fn of(&self, part: &Arc<OpaqueOp>) -> Option<&Arc<Exchange>> {
        self.all.iter().find(|(known, _)| Arc::ptr_eq(known, part)).map(|(_, exchange)| exchange)
    }

    /// The groups that meet; some more than once.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Group> + '_ {
        self.all.iter().map(|(_, exchange)| exchange.group.clone()).filter(|group| !group.is_empty())
    }
}

/// Whether a graph has collectives.
pub(crate) fn any(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| match &node.op {
        Op::Opaque(part) => part.slice.module.has(Trait::Collective),
        _ => false,
    })
}

/// Brings the collectives of a process into the libraries' forms.
///
/// # Errors
///
/// When one of several processes has an operation that only the reference can run: those must run there together.
pub(crate) fn prepare(graph: Graph, grid: &Grid) -> Result<(Graph, Exchanges), String> {
    if !any(&graph) {
        return Ok((graph, Exchanges::default()));
    }
    let mut rewrite = Rewrite {
        old: &graph,
        grid,
        builder: Builder::default(),
        made: HashMap::new(),
        instead: HashMap::new(),
        exchanges: Exchanges::default(),
        effects: Vec::new(),
    };
    for id in graph.ids() {
        rewrite.node(id)?;
    }
    let Rewrite { builder, made, exchanges, mut effects, .. } = rewrite;
    let moved = |ids: &[NodeId]| ids.iter().map(|id| made[id]).collect::<Vec<NodeId>>();
    effects.extend(moved(&graph.effects));
    Ok((builder.finish(moved(&graph.outputs), effects), exchanges))
}

/// What stands for a collective in the new graph.
enum Instead {
    /// The numbers of the process.
    Number(usize),
    /// An exchange: its node, and the sizes of its operands.
    Exchange(NodeId, Arc<Exchange>, Vec<Vec<usize>>),
}

struct Rewrite<'a> {
    old: &'a Graph,
    grid: &'a Grid,
    builder: Builder,
    made: HashMap<NodeId, NodeId>,
    instead: HashMap<NodeId, Instead>,
    exchanges: Exchanges,
    effects: Vec<NodeId>,
}

impl Rewrite<'_> {
    fn node(&mut self, id: NodeId) -> Result<(), String> {
        let node = self.old.node(id).clone();
        self.builder.origin = node.origin;
        let new = match &node.op {
            Op::Opaque(part) => match self.collective(part, &node)? {
                Some(instead) => {
                    if let Instead::Exchange(new, ..) = &instead {
                        self.made.insert(id, *new);
                    }
                    self.instead.insert(id, instead);
                    return Ok(());
                }
                None => self.copy(node),
            },
            &Op::Result(at) if self.instead.contains_key(&node.inputs[0]) => self.result(at, &node)?,
            _ => self.copy(node),
        };
        self.made.insert(id, new);
        Ok(())
    }

    fn copy(&mut self, node: Node) -> NodeId {
        let inputs = node.inputs.iter().map(|input| self.made[input]).collect();
        self.builder.add(node.op, inputs, node.element, node.dims)
    }

    /// What an operation becomes, when processes do it together.
    fn collective(&mut self, part: &Arc<OpaqueOp>, node: &Node) -> Result<Option<Instead>, String> {
        let Some(op) = single(part).filter(|op| is_collective(*op)) else {
            // The reference knows nothing of other processes while it computes one operation.
            return match self.grid.processes() > 1 && part.slice.module.has(Trait::Collective) {
                true => Err(format!("{} has a collective inside", part.name)),
                false => Ok(None),
            };
        };
        match op.kind() {
            Some(OpKind::ReplicaId) => return Ok(Some(Instead::Number(self.grid.me.replica))),
            Some(OpKind::PartitionId) => return Ok(Some(Instead::Number(self.grid.me.partition))),
            _ => {}
        }
        let exchange = match Exchange::of(op, self.grid) {
            Ok(exchange) => Arc::new(exchange),
            // A process on its own is what the reference takes itself for.
            Err(_) if self.grid.processes() == 1 => return Ok(None),
            Err(reason) => return Err(reason),
        };
        let mut operands = Vec::new();
        for &at in &part.operands {
            let input = node.inputs.get(at).and_then(|input| self.made.get(input)).copied();
            let input = input.ok_or_else(|| format!("{} lacks an operand", exchange.name))?;
            operands.push(self.before(&exchange, input)?);
        }
        let sizes = operands.iter().map(|&id| self.builder.node(id).dims.clone()).collect();
        let new = self.builder.raw(Op::Opaque(Arc::clone(part)), operands, ElementType::Bool, vec![0]);
        self.effects.push(new);
        self.exchanges.all.push((Arc::clone(part), Arc::clone(&exchange)));
        Ok(Some(Instead::Exchange(new, exchange, sizes)))
    }

    fn before(&mut self, exchange: &Exchange, input: NodeId) -> Result<NodeId, String> {
        let Before::Split(axis) = exchange.before else { return Ok(input) };
        let (mut dims, parts) = (self.builder.node(input).dims.clone(), exchange.group.len());
        let whole = dims.get(axis).copied().filter(|size| size.is_multiple_of(parts));
        let whole = whole.ok_or_else(|| format!("{}: {dims:?} has no {parts} parts", exchange.name))?;
        dims[axis] = whole / parts;
        dims.insert(axis, parts);
        let split = self.builder.reshape(input, dims.clone());
        let others = (0..dims.len()).filter(|&at| at != axis);
        Ok(self.builder.transpose(split, std::iter::once(axis).chain(others).collect()))
    }

    fn result(&mut self, at: usize, node: &Node) -> Result<NodeId, String> {
        let (new, exchange, sizes) = match &self.instead[&node.inputs[0]] {
            Instead::Number(number) => {
                let number = Tensor::scalar(node.element, Scalar::Int(*number as i128));
                return Ok(self.builder.constant(number.map_err(|error| error.to_string())?));
            }
            Instead::Exchange(new, exchange, sizes) => (*new, Arc::clone(exchange), sizes.get(at).cloned()),
        };
        let own = sizes.ok_or_else(|| format!("{} gives more than it takes", exchange.name))?;
        let dims = match &exchange.kind {
            Kind::Gather => std::iter::once(exchange.group.len()).chain(own).collect(),
            Kind::ReduceScatter(_) => own.get(1..).unwrap_or_default().to_vec(),
            _ => own,
        };
        let given = self.builder.raw(Op::Result(at), vec![new], node.element, dims.clone());
        // What nobody reads is still written.
        self.effects.push(given);
        let last = match exchange.after {
            After::Same => given,
            After::ReduceKind(fold) => {
                let reduced = dims.get(1..).unwrap_or_default().to_vec();
                self.builder.add(Op::Reduce(fold, vec![0]), vec![given], node.element, reduced)
            }
            After::Join(axis) => {
                let fits = axis + 1 < dims.len() && dims.iter().product::<usize>() == node.len();
                if !fits {
                    return Err(format!("{} does not give {:?}", exchange.name, node.dims));
                }
                let moved = (1..=axis).chain([0]).chain(axis + 1..dims.len()).collect();
                let side_by_side = self.builder.transpose(given, moved);
                self.builder.reshape(side_by_side, node.dims.clone())
            }
        };
        match self.builder.node(last).dims == node.dims {
            true => Ok(last),
            false => Err(format!("{} does not give {:?}", exchange.name, node.dims)),
        }
    }
}

/// The one operation that was cut out.
pub(crate) fn single(part: &OpaqueOp) -> Option<OpRef<'_>> {
    let module = &part.slice.module;
    let mut ops = module.ops_in(module.function(&part.function)?.body()?);
    let first = ops.next()?;
    ops.next()?.def().is_some_and(OpDef::is_terminator).then_some(first)
}

fn is_collective(op: OpRef<'_>) -> bool {
    op.def().is_some_and(|def| def.is(Trait::Collective))
}
