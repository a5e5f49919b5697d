//! What several processes do together: collectives, point-to-point transfers, feeds and identities.

use super::reduction::{Reducer, check_reducer};
use crate::attr::{Attribute, MeshAxes, MeshRef};
use crate::table::Trait::{Collective, Deprecated};
use crate::table::{Entry, OpKind, op};
use crate::types::{Dim, Element, ElementType, TensorType, Type};
use crate::verify::{Cx, compatible};

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::AllGather)
        .values("operands*: tensor", "results*: tensor")
        .attrs("all_gather_dim: i64, replica_groups: groups, channel_handle?: channel, use_global_device_ids?: unit")
        .is(&[Collective])
        .rule(all_gather).doc("Joins the operands of the processes of a group along a dimension."),
    op(OpKind::AllReduce)
        .values("operands*: tensor", "results*: tensor")
        .attrs("replica_groups: groups, channel_handle?: channel, use_global_device_ids?: unit")
        .regions("computation")
        .is(&[Collective])
        .rule(all_reduce).doc("Reduces the operands of the processes of a group."),
    op(OpKind::AllToAll)
        .values("operands*: tensor", "results*: tensor")
        .attrs(
            "split_dimension: i64, concat_dimension: i64, split_count: i64, replica_groups: groups, channel_handle?: channel",
        )
        .is(&[Collective])
        .rule(all_to_all).doc("Splits the operand, sends the parts around a group and joins what arrives."),
    op(OpKind::CollectiveBroadcast)
        .values("operand*: tensor", "result*: tensor")
        .attrs("replica_groups: groups, channel_handle?: channel, has_dynamic_root?: unit")
        .is(&[Collective])
        .rule(collective_broadcast).doc("Gives every process of a group the operands of one of them."),
    op(OpKind::CollectivePermute)
        .values("operand: tensor", "result: tensor")
        .attrs("source_target_pairs: rows, channel_handle?: channel")
        .is(&[Collective])
        .rule(collective_permute).doc("Sends the operand from sources to targets; who is no target gets zeros."),
    op(OpKind::CollectiveReduce)
        .values("operands*: tensor", "results*: tensor")
        .attrs(
            "replica_groups: groups, channel_handle?: channel, use_global_device_ids?: unit, has_dynamic_root?: unit",
        )
        .regions("computation")
        .is(&[Collective])
        .rule(collective_reduce).doc("Reduces the operands of the processes of a group for one of them; the others get zeros."),
    op(OpKind::CrossReplicaSum)
        .values("operand: tensor", "result: tensor")
        .attrs("replica_groups: rows")
        .is(&[Collective, Deprecated])
        .rule(cross_replica_sum).doc("Sums the operands of the replicas of a group."),
    op(OpKind::Infeed)
        .values("token: token", "results*: static tensor|axisquant|token")
        .attrs("infeed_config: str = \"\", layout?: array")
        .rule(infeed).doc("Takes values from the infeed."),
    op(OpKind::Outfeed)
        .values("inputs*: tensor|axisquant, token: token", "result: token")
        .attrs("outfeed_config: str = \"\"")
        .rule(token_result).doc("Gives values to the outfeed."),
    op(OpKind::PartitionId)
        .values("", "result: u32")
        .text("{attrs} : {results}")
        .is(&[Collective])
        .rule(process_id).doc("The partition of the current process."),
    op(OpKind::Recv)
        .values("token: token", "results*: static tensor|axisquant|token")
        .attrs("channel_handle: channel, is_host_transfer: bool = false, source_target_pairs?: rows")
        .is(&[Collective])
        .rule(recv).doc("Receives values from a channel."),
    op(OpKind::ReduceScatter)
        .values("operand: tensor", "result: tensor")
        .attrs(
            "scatter_dimension: i64, replica_groups: groups, channel_handle?: channel, use_global_device_ids?: unit",
        )
        .regions("computation")
        .is(&[Collective])
        .rule(reduce_scatter).doc("Reduces the operands of a group and gives each process its part of the result."),
    op(OpKind::ReplicaId)
        .values("", "result: u32")
        .text("{attrs} : {results}")
        .is(&[Collective])
        .rule(process_id).doc("The replica of the current process."),
    op(OpKind::Send)
        .values("inputs*: tensor|axisquant, token: token", "result: token")
        .attrs("channel_handle: channel, is_host_transfer: bool = false, source_target_pairs?: rows")
        .is(&[Collective])
        .rule(send).doc("Sends values to a channel."),
];

/// What is asked of groups of processes, and by which constraints.
struct Groups {
    /// No process is in two groups.
    unique: &'static str,
    /// Processes are numbered from zero without a gap.
    complete: &'static str,
    /// Global numbers of devices need a channel.
    channel: Option<&'static str>,
    /// Groups must be of one size, so that nothing fills them up.
    uniform: bool,
    /// The smallest number of a channel that counts as one.
    first_channel: i64,
}

/// Whether something is said by an attribute's being there.
fn is_set(cx: &Cx<'_>, name: &str) -> bool {
    matches!(cx.attr(name), Some(Attribute::Unit | Attribute::Bool(true)))
}

/// Global numbers of devices need a channel, numbered from `first`.
fn check_channel_of_devices(cx: &mut Cx<'_>, label: &'static str, first: i64) {
    let channel = match cx.attr("channel_handle") {
        Some(Attribute::Channel(channel)) => channel.handle,
        _ => 0,
    };
    cx.check(!is_set(cx, "use_global_device_ids") || channel >= first, label, || {
        format!("with use_global_device_ids the channel cannot be {channel}")
    });
}

/// Checks groups of processes; their number and size where they are listed.
fn check_groups(cx: &mut Cx<'_>, groups: &Groups) -> Option<(usize, usize)> {
    let global = is_set(cx, "use_global_device_ids");
    if let Some(label) = groups.channel {
        check_channel_of_devices(cx, label, groups.first_channel);
    }
    let attr = cx.attr("replica_groups")?;
    if let Attribute::MeshAxes(axes) = attr {
        return check_mesh_axes(cx, axes, groups.unique);
    }
    let elements = attr.as_elements()?;
    let shape = elements.ty().shape_usize()?;
    let &[rows, columns] = shape.as_slice() else {
        cx.fail(groups.unique, format!("replica_groups has the rank {}, not 2", shape.len()));
        return None;
    };
    let ids = elements.to_i64s()?;
    cx.check(!(global && ids.is_empty()), groups.unique, || {
        "with use_global_device_ids, replica_groups cannot be empty".to_owned()
    });
    let present: Vec<i64> = ids.iter().copied().filter(|id| *id != -1).collect();
    cx.check(!groups.uniform || present.len() == ids.len(), groups.complete, || {
        "-1 in replica_groups: the groups must be of one size".to_owned()
    });
    cx.unique(groups.unique, "replica_groups", &present);
    let inside = present.iter().all(|id| (0..present.len() as i64).contains(id));
    cx.check(inside, groups.complete, || {
        format!("replica_groups are not all of 0 to {}", present.len().saturating_sub(1))
    });
    Some((rows, columns))
}

/// Checks groups that are given as axes of a mesh; their number and size where the mesh is given with them. A mesh that
/// is named is checked with the symbols of the module.
fn check_mesh_axes(cx: &mut Cx<'_>, axes: &MeshAxes, label: &'static str) -> Option<(usize, usize)> {
    let MeshRef::Mesh(mesh) = &axes.mesh else { return None };
    match mesh.groups(&axes.axes) {
        Ok(groups) => Some((groups.len(), groups.first().map_or(0, Vec::len))),
        Err(error) => {
            cx.fail(label, error.to_string());
            None
        }
    }
}

fn all_gather(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let axis = cx.i64("all_gather_dim")?;
    let groups =
        Groups { unique: "C2", complete: "C4", channel: Some("C5"), uniform: true, first_channel: 0 };
    check_groups(cx, &groups);
    let operands = cx.tensors(0..cx.operands().len())?;
    cx.check(!operands.is_empty(), "I1", || "there must be at least one operand".to_owned());
    let results = cx.given_results().map(<[_]>::len);
    cx.check(results.is_none_or(|count| count == operands.len()), "C6", || {
        "there is not one result for each operand".to_owned()
    });
    for (index, operand) in operands.iter().enumerate() {
        if !cx.in_rank("C1", "all_gather_dim", &[axis], operand.rank()) {
            return None;
        }
        let Some(result) = cx.result(index) else { continue };
        cx.same_elements("C6", "operands and results", operand, result);
        check_parts(cx, "C6", operand, result, axis as usize);
    }
    None
}

/// One dimension of the whole is a multiple of that of the part, the others are the same.
fn check_parts(cx: &mut Cx<'_>, label: &'static str, part: &TensorType, whole: &TensorType, axis: usize) {
    if !cx.same_count(label, "the rank of a result", whole.rank(), part.rank()) {
        return;
    }
    for (d, (from, to)) in part.dims().iter().zip(whole.dims()).enumerate() {
        let fits = match (from.size(), to.size()) {
            (Some(0), _) if d == axis => false,
            (Some(from), Some(to)) if d == axis => to % from == 0,
            _ => d == axis || compatible::same_size(*from, *to),
        };
        cx.check(fits, label, || format!("dimension {d} of {whole} does not come from {part}"));
    }
}

/// A computation on scalars of each operand's kind; the elements that it returns.
fn check_computation(cx: &mut Cx<'_>, operands: &[&TensorType], label: &'static str) -> Option<Element> {
    for operand in operands {
        let init = [operand.with_dims([])];
        let reducer = Reducer { inputs: &[*operand], inits: &init, allowed: &[] };
        if !check_reducer(cx, 0, &reducer, label) {
            return None;
        }
    }
    cx.region(0).returned().first()?.element().cloned()
}

fn all_reduce(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let groups =
        Groups { unique: "C1", complete: "C3", channel: Some("C4"), uniform: false, first_channel: 1 };
    check_groups(cx, &groups);
    let operands = cx.tensors(0..cx.operands().len())?;
    cx.check(!operands.is_empty(), "I1", || "there must be at least one operand".to_owned());
    let element = check_computation(cx, &operands, "C5")?;
    let types = operands.iter().map(|operand| Type::Tensor(operand.with_element(element.clone()))).collect();
    cx.gives(["C6", "C7"], types)
}

fn all_to_all(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (split, concat) = (cx.i64("split_dimension")?, cx.i64("concat_dimension")?);
    let count = cx.i64("split_count")?;
    cx.check(count > 0, "C4", || format!("split_count {count} is not positive"));
    let groups = Groups { unique: "C5", complete: "C7", channel: None, uniform: true, first_channel: 0 };
    if let Some((rows, columns)) = check_groups(cx, &groups) {
        cx.check(rows == 0 || columns as i64 == count, "C8", || {
            format!("the groups have {columns} processes where split_count is {count}")
        });
    }
    let operands = cx.tensors(0..cx.operands().len())?;
    cx.check(!operands.is_empty(), "I1", || "there must be at least one operand".to_owned());
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
        let scale = |dim: Dim, f: fn(u64, u64) -> Option<u64>| match dim {
            Dim::Static(size) => f(size, count).map_or(Dim::Dynamic, Dim::Static),
            Dim::Bounded(bound) => f(bound, count).map_or(Dim::Dynamic, Dim::Bounded),
            Dim::Dynamic => Dim::Dynamic,
        };
        dims[split as usize] = scale(dims[split as usize], u64::checked_div);
        dims[concat as usize] = scale(dims[concat as usize], u64::checked_mul);
        types.push(Type::Tensor(operand.with_dims(dims)));
    }
    cx.gives("C9", types)
}

/// Results of the operands' types.
fn like_operands(cx: &mut Cx<'_>, label: &'static str) -> Option<Vec<Type>> {
    let types = cx.operands().iter().map(|ty| (*ty).clone()).collect();
    cx.gives(label, types)
}

fn cross_replica_sum(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    like_operands(cx, "results")
}

/// Checks groups that need not name every process.
fn check_some_groups(cx: &mut Cx<'_>) -> Option<()> {
    let attr = cx.attr("replica_groups")?;
    if let Attribute::MeshAxes(axes) = attr {
        check_mesh_axes(cx, axes, "C1");
        return Some(());
    }
    let elements = attr.as_elements()?;
    let rank = elements.ty().rank();
    cx.check(rank == 2, "I2", || format!("replica_groups has the rank {rank}, not 2"));
    let ids = elements.to_i64s()?;
    cx.unique("C1", "replica_groups", &ids);
    cx.check(ids.iter().all(|id| *id >= 0), "C2", || "a process is negative".to_owned());
    Some(())
}

/// The operands that are sent. With `has_dynamic_root`, the last operand is none of them: it has the place of the root
/// in its group, for each of the others.
fn sent_operands<'a>(cx: &mut Cx<'a>, label: &'static str) -> Option<Vec<&'a TensorType>> {
    let dynamic = is_set(cx, "has_dynamic_root");
    let count = cx.operands().len().saturating_sub(usize::from(dynamic));
    if !cx.check(count > 0, label, || "there is no operand to send".to_owned()) {
        return None;
    }
    if let Some(roots) = cx.tensor(count).filter(|_| dynamic) {
        let wanted = TensorType::fixed(&[count as u64], ElementType::I32);
        cx.check(*roots == wanted, label, || format!("the roots are {roots}, not {wanted}"));
    }
    cx.tensors(0..count)
}

fn collective_broadcast(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    check_some_groups(cx);
    let label = if is_set(cx, "has_dynamic_root") { "C4" } else { "C3" };
    let types = sent_operands(cx, label)?.into_iter().map(|ty| Type::Tensor(ty.clone())).collect();
    cx.gives(label, types)
}

fn collective_reduce(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    check_some_groups(cx);
    check_channel_of_devices(cx, "I3", 1);
    let operands = sent_operands(cx, "C3")?;
    let element = check_computation(cx, &operands, "C4")?;
    let types = operands.iter().map(|operand| Type::Tensor(operand.with_element(element.clone()))).collect();
    cx.gives(["C3", "C4"], types)
}

/// Pairs of processes: no source and no target twice.
fn check_pairs(cx: &mut Cx<'_>, name: &str) -> Option<()> {
    let pairs = cx.attr(name)?.as_elements()?;
    let shape = pairs.ty().shape_usize()?;
    if !cx.check(shape.len() == 2 && shape[1] == 2, "C1", || format!("{name} has the shape {shape:?}")) {
        return None;
    }
    let flat = pairs.to_i64s()?;
    let pick = |offset: usize| -> Vec<i64> { flat.iter().skip(offset).step_by(2).copied().collect() };
    cx.unique("C2", "sources", &pick(0));
    cx.unique("C3", "targets", &pick(1));
    cx.check(flat.iter().all(|id| *id >= 0), "C4", || format!("a process of {name} is negative"));
    Some(())
}

fn collective_permute(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    check_pairs(cx, "source_target_pairs");
    like_operands(cx, "C5")
}

fn reduce_scatter(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (operand, axis) = (cx.tensor(0)?, cx.i64("scatter_dimension")?);
    let groups =
        Groups { unique: "C3", complete: "C5", channel: Some("C6"), uniform: true, first_channel: 1 };
    check_groups(cx, &groups);
    cx.in_rank("C2", "scatter_dimension", &[axis], operand.rank());
    let element = check_computation(cx, &[operand], "C7");
    if cx.is_broken() {
        return None;
    }
    let result = cx.result(0)?;
    check_parts(cx, "C8", result, operand, axis as usize);
    let given = operand.dims().get(axis as usize).and_then(|dim| dim.size());
    cx.check(given != Some(0), "C8", || format!("dimension {axis} of {operand} is empty"));
    cx.check(Some(result.element()) == element.as_ref(), "C9", || {
        format!("{result} has not the elements that the computation returns")
    });
    None
}

fn process_id(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    cx.gives("result", vec![Type::tensor(&[], ElementType::U32)])
}

fn token_result(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    cx.gives("result", vec![Type::Token])
}

/// What a channel must be for a transfer among devices, and for one with the host.
fn check_channel(cx: &mut Cx<'_>, host: (i64, &str)) -> Option<()> {
    /// A channel from device to device.
    const DEVICES: i64 = 1;
    let Attribute::Channel(channel) = cx.attr("channel_handle")? else { return None };
    let transfer = cx.attr("is_host_transfer")?.as_bool()?;
    let (wanted, name) = if transfer { host } else { (DEVICES, "DEVICE_TO_DEVICE") };
    cx.check(channel.kind == wanted, "C1", || {
        format!("the channel has the type {} where {wanted} ({name}) is needed", channel.kind)
    });
    Some(())
}

fn send(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    check_channel(cx, (2, "DEVICE_TO_HOST"));
    token_result(cx)
}

fn recv(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    check_channel(cx, (3, "HOST_TO_DEVICE"));
    ends_with_token(cx, ["C2", "C3", "C4"]);
    None
}

/// Of several results, the last is the token and the others are tensors.
fn ends_with_token(cx: &mut Cx<'_>, labels: [&'static str; 3]) {
    let results = cx.results().to_vec();
    let Some((last, rest)) = results.split_last() else {
        cx.fail(labels[0], "there must be at least one result");
        return;
    };
    cx.check(rest.iter().all(|ty| ty.is_tensor()), labels[1], || {
        "all results but the last must be tensors".to_owned()
    });
    cx.check(**last == Type::Token, labels[2], || "the last result must be a token".to_owned());
}

fn infeed(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    ends_with_token(cx, ["C1", "C2", "C3"]);
    let layouts = cx.attr("layout")?.as_array()?;
    let tensors = cx.results().len().saturating_sub(1);
    cx.same_count("I3", "layouts", layouts.len(), tensors);
    let integers = |layout: &Attribute| {
        layout.as_array().is_some_and(|list| list.iter().all(|item| item.as_i64().is_some()))
    };
    cx.check(layouts.iter().all(integers), "I3", || "a layout is a list of integers".to_owned());
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
