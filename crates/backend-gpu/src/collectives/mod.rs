//! Collectives between processes on their GPUs, by NCCL or RCCL, which share an interface.
//!
//! [`lower_collectives`] lowers the collectives of a graph to the few forms of the libraries ([`Collective`]) and
//! leaves layouts and reductions to generated kernels. [`Communicators`] holds the communicators of a grid. A
//! collective is an execution step on a stream. Ranks, which are processes of the system, have a communicator among them
//! ([`Communicator::join`]), and all-reduces of gradients in their programs ([`lower_buckets`]).

// Calls a foreign library.
#![allow(unsafe_code)]

mod buckets;
mod collective;
mod communicator;
mod communicators;
mod lower;
mod schedule;

use std::sync::{Arc, OnceLock};

pub(crate) use buckets::{BucketCall, BucketOps, has_buckets, lower_buckets};
pub(crate) use collective::{Collective, CollectiveKind};
pub(crate) use communicator::{Communicator, Reduction};
pub(crate) use communicators::Communicators;
pub(crate) use lower::{CollectiveOps, has_collectives, lower_collectives, single_op};
pub(crate) use schedule::{CollectiveCall, is_deadlock_free};

use crate::driver::{Address, Handle};
use crate::error::{GpuError, Result};
use crate::library::{LibrarySpec, functions};
use crate::vendor::Vendor;
use crate::{cuda, hip};

/// The identifier that ranks of a communicator share.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct UniqueId(pub(crate) [u8; 128]);

functions! {
    /// NCCL and RCCL.
    Functions {
        version(*mut i32) = "ncclGetVersion";
        unique_id(*mut UniqueId) = "ncclGetUniqueId";
        initialise(*mut Handle, i32, UniqueId, i32) = "ncclCommInitRank";
        destroy(Handle) = "ncclCommDestroy";
        abort(Handle) = "ncclCommAbort";
        group_begin() = "ncclGroupStart";
        group_end() = "ncclGroupEnd";
        all_reduce(Address, Address, usize, i32, i32, Handle, Handle) = "ncclAllReduce";
        all_gather(Address, Address, usize, i32, Handle, Handle) = "ncclAllGather";
        reduce_scatter(Address, Address, usize, i32, i32, Handle, Handle) = "ncclReduceScatter";
        broadcast(Address, Address, usize, i32, i32, Handle, Handle) = "ncclBroadcast";
        send(Address, usize, i32, i32, Handle, Handle) = "ncclSend";
        receive(Address, usize, i32, i32, Handle, Handle) = "ncclRecv";
    }
}

/// The first version whose calls can be captured into graphs: 2.11.
const RECORDABLE: i32 = 21_100;

/// NCCL or RCCL.
pub(crate) struct CollectiveLibrary {
    functions: Functions,
    version: i32,
}

impl CollectiveLibrary {
    /// The library of a vendor, opened once per process.
    ///
    /// # Errors
    ///
    /// When it is not installed.
    pub(crate) fn of(vendor: Vendor) -> Result<Arc<Self>> {
        static CUDA: OnceLock<Result<Arc<CollectiveLibrary>>> = OnceLock::new();
        static HIP: OnceLock<Result<Arc<CollectiveLibrary>>> = OnceLock::new();
        let kept = match vendor {
            Vendor::Cuda => &CUDA,
            Vendor::Hip => &HIP,
        };
        kept.get_or_init(|| Self::with(Functions::open(collective_spec(vendor))?)).clone()
    }

    /// Wraps loaded functions.
    pub(crate) fn with(functions: Functions) -> Result<Arc<Self>> {
        let mut version = 0;
        // SAFETY: the address is that of a variable.
        check(unsafe { (functions.version)(&raw mut version) }, "ask for the version of collectives")?;
        Ok(Arc::new(Self { functions, version }))
    }

    /// The version, as its makers write it since 2.9.
    pub(crate) fn version(&self) -> String {
        format!("{}.{}.{}", self.version / 10_000, self.version % 10_000 / 100, self.version % 100)
    }

    /// An identifier for a new communicator.
    pub(crate) fn unique_id(&self) -> Result<UniqueId> {
        let mut id = UniqueId([0; 128]);
        // SAFETY: the address is that of a variable.
        check(unsafe { (self.functions.unique_id)(&raw mut id) }, "make a communicator")?;
        Ok(id)
    }

    /// Whether its calls can be captured.
    fn is_capturable(&self) -> bool {
        self.version >= RECORDABLE
    }
}

/// The library of a vendor.
pub(crate) fn collective_spec(vendor: Vendor) -> &'static LibrarySpec {
    match vendor {
        Vendor::Cuda => &cuda::COLLECTIVES,
        Vendor::Hip => &hip::COLLECTIVES,
    }
}

/// Texts of status codes.
const STATUSES: &[(i32, &str)] = &[
    (1, "the driver failed"),
    (2, "the system failed"),
    (3, "internal error"),
    (4, "an argument does not fit"),
    (5, "wrong use"),
    (6, "another process failed or is gone"),
];

/// Converts a status to a result.
fn check(code: i32, function: &'static str) -> Result<()> {
    GpuError::of_status(code, function, STATUSES, "the collective library gives no further information")
}
