//! What several processes do together, each on its GPU: by NCCL or RCCL, whose interfaces are the same.
//!
//! [`prepare`] brings the collectives of a process's graph into the few forms that the libraries have ([`Exchange`]) and
//! leaves layouts and folds around them to generated kernels. [`World`] has the communicators of a grid. What a
//! process does at an exchange is a step like others on its stream.

// The library is foreign.
#![allow(unsafe_code)]

mod communicator;
mod exchange;
mod prepare;
mod schedule;
mod world;

use std::sync::{Arc, OnceLock};

pub(crate) use communicator::Communicator;
pub(crate) use exchange::{Exchange, Kind};
pub(crate) use prepare::{Exchanges, any, prepare, single};
pub(crate) use schedule::{Meeting, meets};
pub(crate) use world::World;

use crate::driver::{Address, Handle};
use crate::error::{GpuError, Result};
use crate::library::{Vendor, functions};
use crate::{cuda, hip};

/// What ranks of a communicator know each other by.
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

/// The oldest version whose calls can be recorded with the kernels around them: 2.11.
const RECORDABLE: i32 = 21_100;

/// A vendor's library of collectives.
pub(crate) struct Collectives {
    functions: Functions,
    version: i32,
}

impl Collectives {
    /// The library of a vendor; opened once a process.
    ///
    /// # Errors
    ///
    /// When there is none on this machine.
    pub(crate) fn of(vendor: Vendor) -> Result<Arc<Self>> {
        static CUDA: OnceLock<Result<Arc<Collectives>>> = OnceLock::new();
        static HIP: OnceLock<Result<Arc<Collectives>>> = OnceLock::new();
        let (kept, wanted) = match vendor {
            Vendor::Cuda => (&CUDA, &cuda::COLLECTIVES),
            Vendor::Hip => (&HIP, &hip::COLLECTIVES),
        };
        kept.get_or_init(|| Self::with(Functions::open(wanted)?)).clone()
    }

    /// The library by its functions.
    pub(crate) fn with(functions: Functions) -> Result<Arc<Self>> {
        let mut version = 0;
        // SAFETY: the address is that of a variable.
        check(unsafe { (functions.version)(&raw mut version) }, "ask for the version of collectives")?;
        Ok(Arc::new(Self { functions, version }))
    }

    /// Whether its calls can be recorded.
    fn is_recordable(&self) -> bool {
        self.version >= RECORDABLE
    }
}

/// Turns a status into a result.
fn check(code: i32, function: &'static str) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let text = match code {
        1 => "the driver failed",
        2 => "the system failed",
        3 => "internal error",
        4 => "an argument does not fit",
        5 => "wrong use",
        6 => "another process failed or is gone",
        _ => "the library of collectives says no more",
    };
    Err(GpuError::Call { function, code, text: text.to_owned() })
}
