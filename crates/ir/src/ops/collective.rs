//! What several processes do together: collectives, point-to-point transfers, feeds and identities.

use crate::table::Trait::{Collective, Deprecated};
use crate::table::{Entry, OpKind, op};

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::AllGather)
        .values("operands*: tensor", "results*: tensor")
        .attrs("all_gather_dim: i64, replica_groups: any, channel_handle?: channel, use_global_device_ids?: unit")
        .is(&[Collective])
        .doc("Joins the operands of the processes of a group along a dimension."),
    op(OpKind::AllReduce)
        .values("operands*: tensor", "results*: tensor")
        .attrs("replica_groups: any, channel_handle?: channel, use_global_device_ids?: unit")
        .regions("computation")
        .is(&[Collective])
        .doc("Folds the operands of the processes of a group."),
    op(OpKind::AllToAll)
        .values("operands*: tensor", "results*: tensor")
        .attrs(
            "split_dimension: i64, concat_dimension: i64, split_count: i64, replica_groups: any, channel_handle?: channel",
        )
        .is(&[Collective])
        .doc("Splits the operand, sends the parts around a group and joins what arrives."),
    op(OpKind::CollectiveBroadcast)
        .values("operand: tensor", "result: tensor")
        .attrs("replica_groups: any, channel_handle?: channel")
        .is(&[Collective])
        .doc("Gives every process of a group the operand of its first."),
    op(OpKind::CollectivePermute)
        .values("operand: tensor", "result: tensor")
        .attrs("source_target_pairs: rows, channel_handle?: channel")
        .is(&[Collective])
        .doc("Sends the operand from sources to targets; who is no target gets zeros."),
    op(OpKind::CrossReplicaSum)
        .values("operand: tensor", "result: tensor")
        .attrs("replica_groups: rows")
        .is(&[Collective, Deprecated])
        .doc("Sums the operands of the replicas of a group."),
    op(OpKind::Infeed)
        .values("token: token", "results*: tensor|token|tuple")
        .attrs("infeed_config: str = \"\", layout?: array")
        .doc("Takes values from the infeed."),
    op(OpKind::Outfeed)
        .values("inputs*: tensor, token: token", "result: token")
        .attrs("outfeed_config: str = \"\"")
        .doc("Gives values to the outfeed."),
    op(OpKind::PartitionId)
        .values("", "result: 0d uint")
        .text("{attrs} : {results}")
        .is(&[Collective])
        .doc("The partition of the current process."),
    op(OpKind::Recv)
        .values("token: token", "results*: tensor|token")
        .attrs("channel_handle: channel, is_host_transfer: bool = false, source_target_pairs?: rows")
        .is(&[Collective])
        .doc("Receives values from a channel."),
    op(OpKind::ReduceScatter)
        .values("operand: tensor", "result: tensor")
        .attrs(
            "scatter_dimension: i64, replica_groups: any, channel_handle?: channel, use_global_device_ids?: unit",
        )
        .regions("computation")
        .is(&[Collective])
        .doc("Folds the operands of a group and gives each process its part of the result."),
    op(OpKind::ReplicaId)
        .values("", "result: 0d uint")
        .text("{attrs} : {results}")
        .is(&[Collective])
        .doc("The replica of the current process."),
    op(OpKind::Send)
        .values("inputs*: tensor, token: token", "result: token")
        .attrs("channel_handle: channel, is_host_transfer: bool = false, source_target_pairs?: rows")
        .is(&[Collective])
        .doc("Sends values to a channel."),
];

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
