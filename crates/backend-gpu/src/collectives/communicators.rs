//! The communicators of a grid of processes.

use std::collections::HashMap;
use std::sync::Arc;

use warpforge_interp::ProcessId;

use super::{CollectiveLibrary, Communicator};
use crate::driver::Gpu;
use crate::error::{GpuError, Result};

/// A process group, in rank order.
pub(crate) type Group = Vec<ProcessId>;

/// Communicators, by group.
#[derive(Default)]
pub(crate) struct Communicators {
    groups: HashMap<Group, Vec<Arc<Communicator>>>,
}

impl Communicators {
    /// Connects each group. Groups of one need no library: their collectives are copies.
    ///
    /// # Errors
    ///
    /// When a larger group exists and the library is missing or fails to connect it.
    pub(crate) fn new(
        library: &Result<Arc<CollectiveLibrary>>,
        groups: impl IntoIterator<Item = Group>,
        gpu: impl Fn(ProcessId) -> Option<Arc<Gpu>>,
    ) -> Result<Self> {
        let mut communicators = Self::default();
        for group in groups {
            if communicators.groups.contains_key(&group) {
                continue;
            }
            let all = match library {
                Ok(library) => {
                    let gpus: Option<Vec<Arc<Gpu>>> = group.iter().map(|&member| gpu(member)).collect();
                    let missing = || GpuError::Other("a process has no GPU".to_owned());
                    Communicator::connect(library, &gpus.ok_or_else(missing)?)?
                }
                Err(error) if group.len() == 1 => {
                    tracing::debug!(%error, "collectives of a process with itself are copies");
                    Vec::new()
                }
                Err(error) => return Err(error.clone()),
            };
            communicators.groups.insert(group, all);
        }
        Ok(communicators)
    }

    /// The communicator of a rank; `None` for a group of one without a library.
    pub(crate) fn get(&self, group: &[ProcessId], rank: usize) -> Option<Arc<Communicator>> {
        self.groups.get(group)?.get(rank).cloned()
    }

    /// The communicators of all ranks.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Communicator>> {
        self.groups.values().flatten()
    }
}
