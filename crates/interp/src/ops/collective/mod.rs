//! What several processes do together: collectives, point-to-point transfers, feeds and identities.

mod grid;

use warpforge_ir::OpKind;
use warpforge_tensor::{Scalar, Tensor};

use grid::channel_id;

use super::Evaluator;
use super::shape::{concatenated, sliced};
use crate::Value;
use crate::cx::{Cx, one};
use crate::error::{Result, invalid, unsupported};
use crate::machine::ProcessId;

pub use grid::Grid;

pub(super) fn evaluator(kind: OpKind) -> Option<Evaluator> {
    Some(match kind {
        OpKind::AllGather => all_gather,
        OpKind::AllReduce => all_reduce,
        OpKind::AllToAll => all_to_all,
        OpKind::CollectiveBroadcast => collective_broadcast,
        OpKind::CollectivePermute => collective_permute,
        OpKind::CollectiveReduce => collective_reduce,
        OpKind::CrossReplicaSum => cross_replica_sum,
        OpKind::Infeed => infeed,
        OpKind::Outfeed => outfeed,
        OpKind::PartitionId => partition_id,
        OpKind::Recv => recv,
        OpKind::ReduceScatter => reduce_scatter,
        OpKind::ReplicaId => replica_id,
        OpKind::Send => send,
        _ => return None,
    })
}

/// The grid and the current process in it; outside a parallel run, a grid of one.
fn grid(cx: &Cx<'_, '_, '_>) -> Grid {
    cx.machine.process.as_ref().map_or(Grid::ALONE, |process| Grid {
        replicas: process.mesh.replicas,
        partitions: process.mesh.partitions,
        me: process.id,
    })
}

/// Gives the operands to the group and takes those of all members, in order.
fn exchange(cx: &mut Cx<'_, '_, '_>, group: &[ProcessId]) -> Result<Vec<Vec<Value>>> {
    let values = cx.operands.clone();
    match &mut cx.machine.process {
        Some(process) => process.exchange(cx.op.id(), group, values),
        None => Ok(vec![values]),
    }
}

/// The group that the current process must be in, and its place there.
fn own_group(cx: &Cx<'_, '_, '_>) -> Result<(Vec<ProcessId>, usize)> {
    let grid = grid(cx);
    let group = grid.group(cx.op)?;
    let group = group.ok_or_else(|| invalid("the process is in none of the replica groups"))?;
    let place = group
        .iter()
        .position(|member| *member == grid.me)
        .ok_or_else(|| invalid("the process is in no group"))?;
    Ok((group, place))
}

fn tensors_of(values: &[Vec<Value>], operand: usize) -> Result<Vec<Tensor>> {
    let pick = |member: &Vec<Value>| -> Result<Tensor> {
        Ok(member.get(operand).ok_or_else(|| invalid("a process gave too little"))?.as_tensor()?.clone())
    };
    values.iter().map(pick).collect()
}

fn all_gather(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (group, _) = own_group(cx)?;
    let given = exchange(cx, &group)?;
    let gathered = |operand: usize| {
        let parts = tensors_of(&given, operand)?;
        let axis = cx.axis("all_gather_dim", cx.tensor(operand)?.shape().rank())?;
        Ok(Value::Tensor(concatenated(&parts, axis)?))
    };
    (0..cx.operands.len()).map(gathered).collect()
}

/// Reduces tensors element by element with the computation of the first region.
fn reduced(cx: &mut Cx<'_, '_, '_>, parts: &[Tensor]) -> Result<Tensor> {
    let mut body = cx.body(0)?;
    let element = *cx.body_elements(0)?.first().ok_or_else(|| invalid("the computation gives nothing"))?;
    let (first, rest) = parts.split_first().ok_or_else(|| invalid("an empty group"))?;
    let mut sums = Tensor::from_scalars(element, first.shape().clone(), first.iter())?;
    for part in rest {
        if part.shape() != first.shape() {
            return Err(invalid("the processes give tensors of different shapes"));
        }
        for position in 0..sums.len() {
            let sum = body.apply_one(cx.machine, &[sums.get(position), part.get(position)])?;
            sums.set(position, sum);
        }
    }
    Ok(sums)
}

fn all_reduce(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (group, _) = own_group(cx)?;
    let given = exchange(cx, &group)?;
    let mut results = Vec::new();
    for operand in 0..cx.operands.len() {
        results.push(reduced(cx, &tensors_of(&given, operand)?)?.into());
    }
    Ok(results)
}

fn cross_replica_sum(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (group, _) = own_group(cx)?;
    let parts = tensors_of(&exchange(cx, &group)?, 0)?;
    let element = cx.result_element(0)?;
    let add = crate::scalar::binary(OpKind::Add, element).ok_or_else(|| unsupported("sums of this type"))?;
    let (first, rest) = parts.split_first().ok_or_else(|| invalid("an empty group"))?;
    let mut sums = first.clone();
    for part in rest {
        for position in 0..sums.len().min(part.len()) {
            let sum = add(sums.get(position), part.get(position));
            sums.set(position, sum);
        }
    }
    one(sums)
}

/// Part `index` of `count` equal parts along a dimension.
fn part(tensor: &Tensor, axis: usize, index: usize, count: usize) -> Result<Tensor> {
    let mut dims = tensor.dims().to_vec();
    if count == 0 || !dims[axis].is_multiple_of(count) {
        return Err(invalid(format!("a dimension of size {} cannot be split into {count}", dims[axis])));
    }
    dims[axis] /= count;
    let mut starts = vec![0; dims.len()];
    starts[axis] = index * dims[axis];
    let steps = vec![1; dims.len()];
    sliced(tensor, warpforge_tensor::Shape::new(dims)?, &starts, &steps)
}

fn reduce_scatter(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (group, place) = own_group(cx)?;
    let given = exchange(cx, &group)?;
    let sums = reduced(cx, &tensors_of(&given, 0)?)?;
    let axis = cx.axis("scatter_dimension", sums.shape().rank())?;
    one(part(&sums, axis, place, group.len())?)
}

fn all_to_all(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (group, place) = own_group(cx)?;
    let given = exchange(cx, &group)?;
    let count = usize::try_from(cx.i64("split_count")?).unwrap_or(0);
    let exchanged = |operand: usize| {
        let rank = cx.tensor(operand)?.shape().rank();
        let (split, concat) = (cx.axis("split_dimension", rank)?, cx.axis("concat_dimension", rank)?);
        let parts = tensors_of(&given, operand)?;
        let parts =
            parts.iter().map(|tensor| part(tensor, split, place, count)).collect::<Result<Vec<_>>>()?;
        Ok(Value::Tensor(concatenated(&parts, concat)?))
    };
    (0..cx.operands.len()).map(exchanged).collect()
}

/// What a process gets that nobody sends anything: zeros, one for each result.
fn zeros(cx: &Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    (0..cx.op.result_count()).map(|result| zero(cx, result)).collect()
}

/// Zeros in the shape of an operand and with the elements of its result.
fn zero(cx: &Cx<'_, '_, '_>, operand: usize) -> Result<Value> {
    let shape = cx.tensor(operand)?.shape().clone();
    Ok(Tensor::zeros(cx.result_element(operand)?, shape)?.into())
}

/// The place of the root in a group, for each operand that is sent: the first, unless the last operand says otherwise.
fn roots(cx: &Cx<'_, '_, '_>, group: &[ProcessId]) -> Result<Vec<usize>> {
    let count = cx.op.result_count();
    if !cx.op.attr_bool("has_dynamic_root").unwrap_or(false) {
        return Ok(vec![0; count]);
    }
    let places = cx.tensor(count)?;
    let place = |index: usize| {
        let place = (index < places.len()).then(|| places.get(index).to_i128());
        let place = place.and_then(|place| usize::try_from(place).ok());
        place
            .filter(|&place| place < group.len())
            .ok_or_else(|| invalid(format!("a group of {} processes has no such root", group.len())))
    };
    (0..count).map(place).collect()
}

fn collective_broadcast(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let Some(group) = grid(cx).group(cx.op)? else { return zeros(cx) };
    let roots = roots(cx, &group)?;
    let given = exchange(cx, &group)?;
    let from_root = |(operand, root): (usize, usize)| {
        Ok(Value::Tensor(tensors_of(&given[root..=root], operand)?.swap_remove(0)))
    };
    roots.into_iter().enumerate().map(from_root).collect()
}

fn collective_reduce(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let grid = grid(cx);
    let Some(group) = grid.group(cx.op)? else { return zeros(cx) };
    let roots = roots(cx, &group)?;
    let given = exchange(cx, &group)?;
    let mut results = Vec::new();
    for (operand, root) in roots.into_iter().enumerate() {
        results.push(match group[root] == grid.me {
            true => reduced(cx, &tensors_of(&given, operand)?)?.into(),
            false => zero(cx, operand)?,
        });
    }
    Ok(results)
}

fn collective_permute(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let grid = grid(cx);
    let pairs = grid.pairs(cx.op)?;
    let mut involved: Vec<ProcessId> = pairs.iter().flat_map(|&(source, target)| [source, target]).collect();
    involved.sort_unstable();
    involved.dedup();
    if !involved.contains(&grid.me) {
        return zeros(cx);
    }
    let given = exchange(cx, &involved)?;
    let source = pairs.iter().find(|(_, target)| *target == grid.me).map(|(source, _)| *source);
    match source.and_then(|source| involved.iter().position(|member| *member == source)) {
        Some(place) => one(tensors_of(&given[place..=place], 0)?.swap_remove(0)),
        None => zeros(cx),
    }
}

fn identity(cx: &Cx<'_, '_, '_>, id: usize) -> Result<Vec<Value>> {
    one(Tensor::scalar(cx.result_element(0)?, Scalar::Int(id as i128))?)
}

fn replica_id(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    identity(cx, grid(cx).me.replica)
}

fn partition_id(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    identity(cx, grid(cx).me.partition)
}

fn infeed(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let queue = cx.machine.shared.infeed.lock();
    let fed = queue.unwrap_or_else(std::sync::PoisonError::into_inner).pop_front();
    let mut values = fed.ok_or_else(|| invalid("the infeed is empty"))?;
    values.push(Value::Token);
    Ok(values)
}

/// Nobody listens to the outfeed of a simulation.
#[allow(clippy::unnecessary_wraps)] // The shape of an evaluator.
fn outfeed(_: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    Ok(vec![Value::Token])
}

fn send(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let channel = channel_id(cx.op);
    // The last operand is the token.
    cx.operands.pop();
    let values = std::mem::take(&mut cx.operands);
    match &mut cx.machine.process {
        Some(process) => process.send(channel, values),
        None => return Err(unsupported("sending outside a parallel run")),
    }
    Ok(vec![Value::Token])
}

fn recv(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let channel = channel_id(cx.op);
    let process =
        cx.machine.process.as_mut().ok_or_else(|| unsupported("receiving outside a parallel run"))?;
    let mut values = process.receive(channel)?;
    values.push(Value::Token);
    Ok(values)
}
