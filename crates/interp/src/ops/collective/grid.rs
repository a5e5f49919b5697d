//! Which processes of a grid an operation brings together.

use warpforge_ir::attr::Attribute;
use warpforge_ir::{OpKind, OpRef};

use crate::cx::missing;
use crate::error::{Result, invalid};
use crate::machine::ProcessId;

/// Which processes a row of ids names.
#[derive(Clone, Copy)]
enum Strategy {
    /// Replicas, for each partition on its own.
    CrossReplica,
    /// Partitions, for each replica on its own.
    CrossPartition,
    /// Replicas with all their partitions.
    CrossReplicaAndPartition,
    /// Processes, counted through.
    FlattenedIds,
}

impl Strategy {
    /// How an operation reads its rows.
    fn of(op: OpRef<'_>) -> Result<Self> {
        let global = op.attr_bool("use_global_device_ids").unwrap_or(false);
        match op.kind() {
            Some(OpKind::CrossReplicaSum) => Ok(Self::CrossReplica),
            Some(OpKind::AllGather | OpKind::AllReduce | OpKind::ReduceScatter) => {
                Self::of_reduction(op, global)
            }
            Some(OpKind::CollectiveReduce) if global => Self::of_reduction(op, global),
            _ if channel_id(op) > 0 => Ok(Self::CrossPartition),
            _ => Ok(Self::CrossReplica),
        }
    }

    fn of_reduction(op: OpRef<'_>, global: bool) -> Result<Self> {
        match (channel_id(op) > 0, global) {
            (false, false) => Ok(Self::CrossReplica),
            (true, false) => Ok(Self::CrossReplicaAndPartition),
            (true, true) => Ok(Self::FlattenedIds),
            (false, true) => Err(invalid("use_global_device_ids needs a channel")),
        }
    }
}

/// The channel of an operation; 0 where it has none.
pub(super) fn channel_id(op: OpRef<'_>) -> i64 {
    match op.attr("channel_handle") {
        Some(Attribute::Channel(channel)) => channel.handle,
        _ => 0,
    }
}

/// Processes in replicas and partitions, seen from one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// How many replicas.
    pub replicas: usize,
    /// How many partitions each.
    pub partitions: usize,
    /// The process that looks.
    pub me: ProcessId,
}

impl Grid {
    /// A process on its own.
    pub const ALONE: Self = Self { replicas: 1, partitions: 1, me: ProcessId { replica: 0, partition: 0 } };

    /// How many processes there are.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.replicas.saturating_mul(self.partitions)
    }

    /// The group of the process at an operation, in the operation's order; `None` when it is in none.
    ///
    /// # Errors
    ///
    /// When the operation's groups cannot be read, or name processes outside the grid.
    pub fn group(&self, op: OpRef<'_>) -> Result<Option<Vec<ProcessId>>> {
        let (rows, strategy) = (rows(op, "replica_groups")?, Strategy::of(op)?);
        if rows.iter().all(Vec::is_empty) {
            let count = match strategy {
                Strategy::CrossPartition => self.partitions,
                Strategy::FlattenedIds => self.replicas * self.partitions,
                Strategy::CrossReplica | Strategy::CrossReplicaAndPartition => self.replicas,
            };
            return self.members(&(0..count as i64).collect::<Vec<_>>(), strategy).map(Some);
        }
        for row in &rows {
            let members = self.members(row, strategy)?;
            if members.contains(&self.me) {
                return Ok(Some(members));
            }
        }
        Ok(None)
    }

    /// The sources and targets of an operation, as far as they concern the process's own replica or partition.
    ///
    /// # Errors
    ///
    /// When the operation's pairs cannot be read, or name processes outside the grid.
    pub fn pairs(&self, op: OpRef<'_>) -> Result<Vec<(ProcessId, ProcessId)>> {
        let strategy = Strategy::of(op)?;
        let pair = |row: Vec<i64>| match self.members(&row, strategy)?.as_slice() {
            &[source, target] => Ok((source, target)),
            _ => Err(invalid("a pair does not have a source and a target")),
        };
        rows(op, "source_target_pairs")?.into_iter().map(pair).collect()
    }

    /// The processes that a row of ids names from where the process stands.
    fn members(&self, row: &[i64], strategy: Strategy) -> Result<Vec<ProcessId>> {
        // Rows of different lengths are filled up with -1.
        let ids = row.iter().filter_map(|&id| usize::try_from(id).ok());
        let members: Vec<ProcessId> = match strategy {
            Strategy::CrossReplica => ids.map(|replica| ProcessId { replica, ..self.me }).collect(),
            Strategy::CrossPartition => ids.map(|partition| ProcessId { partition, ..self.me }).collect(),
            Strategy::CrossReplicaAndPartition => {
                let ids: Vec<usize> = ids.collect();
                let grid = (0..self.partitions).flat_map(|p| ids.iter().map(move |&r| (r, p)));
                grid.map(|(replica, partition)| ProcessId { replica, partition }).collect()
            }
            Strategy::FlattenedIds => ids
                .map(|id| ProcessId { replica: id / self.partitions, partition: id % self.partitions })
                .collect(),
        };
        if members.iter().any(|member| member.replica >= self.replicas || member.partition >= self.partitions)
        {
            return Err(invalid(format!(
                "{row:?} names a process outside the {} x {} grid",
                self.replicas, self.partitions
            )));
        }
        Ok(members)
    }
}

fn rows(op: OpRef<'_>, name: &str) -> Result<Vec<Vec<i64>>> {
    if let Some(Attribute::MeshAxes(axes)) = op.attr(name) {
        return axes.groups(op.module()).map_err(|error| invalid(error.to_string()));
    }
    op.attr_rows(name).ok_or_else(|| missing(name))
}
