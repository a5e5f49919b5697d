//! The GPUs of a grid of processes and what connects them.

use std::collections::HashMap;
use std::sync::Arc;

use warpforge_interp::ProcessId;

use super::{Collectives, Communicator};
use crate::driver::Gpu;
use crate::error::{GpuError, Result};

/// A group of processes, in the order that they count themselves in.
pub(crate) type Group = Vec<ProcessId>;

/// The communicators of a program, by their groups.
#[derive(Default)]
pub(crate) struct World {
    groups: HashMap<Group, Vec<Arc<Communicator>>>,
}

impl World {
    /// Connects the processes of each group. Groups of one need no library: without it their exchanges are copies.
    ///
    /// # Errors
    ///
    /// When a group of several is there and the library is not, or it cannot connect them.
    pub(crate) fn new(
        library: &Result<Arc<Collectives>>,
        groups: impl IntoIterator<Item = Group>,
        gpu: impl Fn(ProcessId) -> Option<Arc<Gpu>>,
    ) -> Result<Self> {
        let mut world = Self::default();
        for group in groups {
            if world.groups.contains_key(&group) {
                continue;
            }
            let ends = match library {
                Ok(library) => {
                    let gpus: Option<Vec<Arc<Gpu>>> = group.iter().map(|&member| gpu(member)).collect();
                    let missing = || GpuError::Other("a process has no GPU".to_owned());
                    Communicator::connect(library, &gpus.ok_or_else(missing)?)?
                }
                Err(error) if group.len() == 1 => {
                    tracing::debug!(%error, "exchanges of a process with itself are copies");
                    Vec::new()
                }
                Err(error) => return Err(error.clone()),
            };
            world.groups.insert(group, ends);
        }
        Ok(world)
    }

    /// The end of a process at a place of a group; `None` where it is alone there and no library is at hand.
    pub(crate) fn end(&self, group: &[ProcessId], place: usize) -> Option<Arc<Communicator>> {
        self.groups.get(group)?.get(place).cloned()
    }

    /// All ends of all groups.
    pub(crate) fn ends(&self) -> impl Iterator<Item = &Arc<Communicator>> {
        self.groups.values().flatten()
    }
}
