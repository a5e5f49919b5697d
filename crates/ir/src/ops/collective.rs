//! What several processes do together: collectives, point-to-point transfers, feeds and identities.

use crate::table::Trait::{Collective, Deprecated};
use crate::table::{Entry, OpKind, op};
use crate::types::{Dim, ElementType, Type};
use crate::verify::Cx;

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::AllGather)
        .values("operands*: tensor", "results*: tensor")
        .attrs("all_gather_dim: i64, replica_groups: any, channel_handle?: channel, use_global_device_ids?: unit")
        .is(&[Collective])
        .rule(all_gather).doc("Joins the operands of the processes of a group along a dimension."),
    op(OpKind::AllReduce)
        .values("operands*: tensor", "results*: tensor")
        .attrs("replica_groups: any, channel_handle?: channel, use_global_device_ids?: unit")
        .regions("computation")
        .is(&[Collective])
        .rule(all_reduce).doc("Folds the operands of the processes of a group."),
    op(OpKind::AllToAll)
        .values("operands*: tensor", "results*: tensor")
        .attrs(
            "split_dimension: i64, concat_dimension: i64, split_count: i64, replica_groups: any, channel_handle?: channel",
        )
        .is(&[Collective])
        .rule(all_to_all).doc("Splits the operand, sends the parts around a group and joins what arrives."),
    op(OpKind::CollectiveBroadcast)
        .values("operand: tensor", "result: tensor")
        .attrs("replica_groups: any, channel_handle?: channel")
        .is(&[Collective])
        .rule(collective_broadcast).doc("Gives every process of a group the operand of its first."),
    op(OpKind::CollectivePermute)
        .values("operand: tensor", "result: tensor")
        .attrs("source_target_pairs: rows, channel_handle?: channel")
        .is(&[Collective])
        .rule(collective_permute).doc("Sends the operand from sources to targets; who is no target gets zeros."),
    op(OpKind::CrossReplicaSum)
        .values("operand: tensor", "result: tensor")
        .attrs("replica_groups: rows")
        .is(&[Collective, Deprecated])
        .rule(like_operand).doc("Sums the operands of the replicas of a group."),
    op(OpKind::Infeed)
        .values("token: token", "results*: tensor|token|tuple")
        .attrs("infeed_config: str = \"\", layout?: array")
        .rule(ends_with_token).doc("Takes values from the infeed."),
    op(OpKind::Outfeed)
        .values("inputs*: tensor, token: token", "result: token")
        .attrs("outfeed_config: str = \"\"")
        .rule(token_result).doc("Gives values to the outfeed."),
    op(OpKind::PartitionId)
        .values("", "result: 0d uint")
        .text("{attrs} : {results}")
        .is(&[Collective])
        .rule(process_id).doc("The partition of the current process."),
    op(OpKind::Recv)
        .values("token: token", "results*: tensor|token")
        .attrs("channel_handle: channel, is_host_transfer: bool = false, source_target_pairs?: rows")
        .is(&[Collective])
        .rule(ends_with_token).doc("Receives values from a channel."),
    op(OpKind::ReduceScatter)
        .values("operand: tensor", "result: tensor")
        .attrs(
            "scatter_dimension: i64, replica_groups: any, channel_handle?: channel, use_global_device_ids?: unit",
        )
        .regions("computation")
        .is(&[Collective])
        .rule(reduce_scatter).doc("Folds the operands of a group and gives each process its part of the result."),
    op(OpKind::ReplicaId)
        .values("", "result: 0d uint")
        .text("{attrs} : {results}")
        .is(&[Collective])
        .rule(process_id).doc("The replica of the current process."),
    op(OpKind::Send)
        .values("inputs*: tensor, token: token", "result: token")
        .attrs("channel_handle: channel, is_host_transfer: bool = false, source_target_pairs?: rows")
        .is(&[Collective])
        .rule(token_result).doc("Sends values to a channel."),
];

/// Groups of processes: no process twice, filled up with -1 where groups differ in size.
fn check_groups(cx: &mut Cx<'_>, labels: [&'static str; 2]) -> Option<usize> {
    let elements = cx.attr("replica_groups")?.as_elements()?;
    let shape = elements.ty().shape_usize()?;
    let &[_, columns] = shape.as_slice() else {
        cx.fail(labels[0], format!("replica_groups has the rank {}, not 2", shape.len()));
        return None;
    };
    let ids = elements.to_i64s()?;
    let present: Vec<i64> = ids.iter().copied().filter(|id| *id != -1).collect();
    cx.unique(labels[0], "replica_groups", &present);
    let inside = present.iter().all(|id| *id >= 0 && *id < present.len() as i64);
    cx.check(inside, labels[1], || format!("replica_groups are not all of 0 to {}", present.len()));
    Some(columns)
}

fn all_gather(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let axis = cx.i64("all_gather_dim")?;
    check_groups(cx, ["C2", "C4"]);
    let operands = cx.tensors(0..cx.operands().len())?;
    for (index, operand) in operands.iter().enumerate() {
        cx.in_rank("C1", "all_gather_dim", &[axis], operand.rank());
        let Some(result) = cx.result(index) else { continue };
        cx.same_elements("C6", "operands and results", operand, result);
        if !cx.same_count("C6", "the rank of a result", result.rank(), operand.rank()) || cx.is_broken() {
            continue;
        }
        for (d, (from, to)) in operand.dims().iter().zip(result.dims()).enumerate() {
            let fits = if d as i64 == axis {
                from.size()
                    .zip(to.size())
                    .is_none_or(|(from, to)| from == 0 && to == 0 || from > 0 && to % from == 0)
            } else {
                from.compatible(*to)
            };
            cx.check(fits, "C6", || format!("dimension {d} of {result} does not come from {operand}"));
        }
    }
    None
}

fn all_reduce(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    check_groups(cx, ["C1", "C3"]);
    let operands = cx.tensors(0..cx.operands().len())?;
    for (index, operand) in operands.iter().enumerate() {
        super::reduction::check_reducer(cx, 0, &[operand], ["C5", "C6"]);
        if let Some(result) = cx.result(index) {
            cx.same_shape("C6", "operands and results", operand, result);
        }
    }
    None
}

fn all_to_all(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (split, concat) = (cx.i64("split_dimension")?, cx.i64("concat_dimension")?);
    let count = cx.i64("split_count")?;
    check_groups(cx, ["C5", "C7"]);
    cx.check(count > 0, "C4", || format!("split_count {count} is not positive"));
    let operands = cx.tensors(0..cx.operands().len())?;
    let mut types = Vec::new();
    for operand in operands {
        cx.in_rank("C1", "split_dimension", &[split], operand.rank());
        cx.in_rank("C3", "concat_dimension", &[concat], operand.rank());
        if cx.is_broken() {
            return None;
        }
        let mut dims = operand.dims().to_vec();
        let count = count as u64;
        let divides = dims[split as usize].size().is_none_or(|size| size % count == 0);
        cx.check(divides, "C2", || format!("dimension {split} of {operand} is no multiple of {count}"));
        let scale = |dim: Dim, f: fn(u64, u64) -> Option<u64>| {
            dim.size().and_then(|size| f(size, count)).map_or(Dim::Dynamic, Dim::Static)
        };
        dims[split as usize] = scale(dims[split as usize], u64::checked_div);
        dims[concat as usize] = scale(dims[concat as usize], u64::checked_mul);
        types.push(Type::Tensor(operand.with_dims(dims)));
    }
    cx.gives("C9", types)
}

fn like_operand(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let operand = cx.tensor(0)?;
    cx.gives("C3", vec![Type::Tensor(operand.clone())])
}

fn collective_broadcast(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    check_groups(cx, ["C1", "C2"]);
    like_operand(cx)
}

fn collective_permute(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let pairs = cx.attr("source_target_pairs")?.as_elements()?;
    let shape = pairs.ty().shape_usize()?;
    if !cx.check(shape.len() == 2 && shape[1] == 2, "C1", || {
        format!("source_target_pairs has the shape {shape:?}")
    }) {
        return None;
    }
    let flat = pairs.to_i64s()?;
    let pick = |offset: usize| -> Vec<i64> { flat.iter().skip(offset).step_by(2).copied().collect() };
    cx.unique("C2", "sources", &pick(0));
    cx.unique("C3", "targets", &pick(1));
    cx.check(flat.iter().all(|id| *id >= 0), "C4", || {
        "a process of source_target_pairs is negative".to_owned()
    });
    like_operand(cx)
}

fn reduce_scatter(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, axis) = (cx.tensor(0)?, cx.i64("scatter_dimension")?);
    check_groups(cx, ["C3", "C5"]);
    cx.in_rank("C2", "scatter_dimension", &[axis], operand.rank());
    super::reduction::check_reducer(cx, 0, &[operand], ["C7", "C8"]);
    if cx.is_broken() {
        return None;
    }
    let result = cx.result(0)?;
    if cx.same_count("C8", "the rank of the result", result.rank(), operand.rank()) {
        for (d, (from, to)) in operand.dims().iter().zip(result.dims()).enumerate() {
            let fits = if d as i64 == axis {
                from.size().zip(to.size()).is_none_or(|(from, to)| to > 0 && from % to == 0)
            } else {
                from.compatible(*to)
            };
            cx.check(fits, "C8", || format!("dimension {d} of {result} does not come from {operand}"));
        }
    }
    None
}

fn process_id(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    cx.gives("C1", vec![Type::tensor(&[], ElementType::U32)])
}

fn token_result(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    cx.gives("C1", vec![Type::Token])
}

/// Of several results, the last is the token.
fn ends_with_token(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let count = cx.results().len();
    let token = cx.results().last().is_some_and(|ty| **ty == Type::Token);
    cx.check(count >= 1 && token, "C1", || "the last result must be a token".to_owned());
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Trait::Pure;

    #[test]
    fn what_communicates_is_not_pure() {
        for entry in ENTRIES {
            assert!(!entry.kind.def().is(Pure), "{}", entry.kind.name());
        }
    }
}
