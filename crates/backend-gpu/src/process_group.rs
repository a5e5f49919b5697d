//! Collectives and process grids of a program, as lowering sees them.

use std::sync::Arc;

use warpforge_fusion::Op;
use warpforge_fusion::graph::OpaqueOp;

use crate::collectives::{BucketCall, BucketOps, Collective, CollectiveOps, Communicators};
use crate::ranks::RankGroup;

/// The index of a grid of compiled processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GridId(pub(crate) usize);

/// Collectives and process grids of a program.
#[derive(Default)]
pub(crate) struct ProcessGroup {
    pub(crate) collectives: CollectiveOps,
    pub(crate) communicators: Arc<Communicators>,
    /// The device among those of other ranks, and the calls between them.
    pub(crate) ranks: Option<RankGroup>,
    pub(crate) buckets: BucketOps,
    /// Operations that start a grid, or why the reference runs them.
    pub(crate) grids: Vec<(Arc<OpaqueOp>, Result<GridId, String>)>,
}

/// An operation that involves several processes.
pub(crate) enum GroupOp<'a> {
    /// A collective of this process.
    Collective(&'a Arc<Collective>),
    /// A part of an all-reduce between ranks.
    Bucket(BucketCall),
    /// A grid that this process starts and waits for.
    Grid(GridId),
    /// Left to the reference, with the reason.
    Reference(&'a str),
}

impl ProcessGroup {
    /// The group operation of a node.
    pub(crate) fn of(&self, op: &Op) -> Option<GroupOp<'_>> {
        let Op::Opaque(opaque) = op else { return None };
        let bucket = || self.buckets.iter().find(|(known, _)| Arc::ptr_eq(known, opaque));
        let collective = self.collectives.of(opaque).map(GroupOp::Collective);
        let collective = collective.or_else(|| Some(GroupOp::Bucket(bucket()?.1)));
        let grid = || self.grids.iter().find(|(known, _)| Arc::ptr_eq(known, opaque));
        collective.or_else(|| {
            Some(match &grid()?.1 {
                Ok(grid) => GroupOp::Grid(*grid),
                Err(reason) => GroupOp::Reference(reason),
            })
        })
    }

    /// The communicators.
    pub(crate) fn communicators(&self) -> &Communicators {
        &self.communicators
    }
}
