//! Devices of several ranks, connected without their hosts: the contract of NCCL, RCCL and their kind.
//!
//! Ranks are processes that meet by an engine of the host. What a [`DeviceCollectives`] says of each is compared there; where all
//! fit, rank 0 makes an id, and each rank connects with it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::Result;

/// A device that can be connected to those of other ranks.
pub trait DeviceCollectives: Send + Sync {
    /// The version of the library: only equal ones connect.
    fn version(&self) -> String;

    /// What tells the device from all others, on this machine and elsewhere; `None` where nobody knows.
    fn device(&self) -> Option<String>;

    /// An id for a new group, made by one of its ranks.
    ///
    /// # Errors
    ///
    /// When the library fails.
    fn new_id(&self) -> Result<Vec<u8>>;

    /// Connects this device with those of the other ranks, which do the same at the same time. `failed` is asked now and then why
    /// they will not.
    ///
    /// # Errors
    ///
    /// When the library fails, or `failed` gives a reason.
    fn connect(
        &self,
        id: &[u8],
        place: RankPlace,
        failed: &dyn Fn() -> Option<String>,
    ) -> Result<Arc<dyn DeviceGroup>>;
}

/// A rank among how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankPlace {
    /// This one, from 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
}

/// A device that is connected to those of other ranks.
pub trait DeviceGroup: Any + fmt::Debug + Send + Sync {
    /// Ends what is under way: runs that wait for other ranks fail with this reason, now and later. Does not block.
    fn abort(&self, reason: &str);

    /// Says that all ranks are done with the group. One that is dropped without is aborted, because other ranks may never end.
    fn finish(&self);

    /// For the backend that made it.
    fn as_any(&self) -> &dyn Any;
}
