//! How UCC's ranks learn each other's addresses: an all-gather over the ring of TCP, called by the library.

// Called by a foreign library.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::c_void;

use super::sys::{self, Oob, Status};
use crate::{Error, Numbers, ProcessGroup as _, TcpGroup};

/// What answers the library; it lies at one address as long as the library has a context.
pub(super) struct Bootstrap {
    rank: u32,
    size: u32,
    /// The ranks over TCP; nothing after the end.
    group: RefCell<Option<TcpGroup>>,
    /// Why an all-gather failed, which the library has a number for only.
    failure: RefCell<Option<Error>>,
}

impl Bootstrap {
    pub(super) fn new(group: TcpGroup) -> Self {
        let (rank, size) = (group.rank() as u32, group.size() as u32);
        Self { rank, size, group: RefCell::new(Some(group)), failure: RefCell::default() }
    }

    /// The functions and numbers that the library is given. They hold the address of this bootstrap.
    pub(super) fn oob(&'static self) -> Oob {
        let info = std::ptr::from_ref(self).cast_mut().cast();
        Oob { all_gather, test: is_done, free: is_done, info, count: self.size, own: self.rank }
    }

    /// An error of the library, or the one of the ranks that is behind it: a connection of the library may break before it is known
    /// who is gone.
    pub(super) fn cause(&self, error: Error) -> Error {
        if matches!(error, Error::Lost { .. }) {
            return error;
        }
        let lost = || self.group.borrow().as_ref().and_then(TcpGroup::cause);
        self.failure.borrow().clone().or_else(lost).unwrap_or(error)
    }

    /// Fails when a rank is known to be gone.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.group.borrow().as_ref().and_then(TcpGroup::lost).map_or(Ok(()), Err)
    }

    /// Waits until all ranks have come here.
    pub(super) fn barrier(&self) -> Result<(), Error> {
        let mut group = self.group.borrow_mut();
        group.as_mut().ok_or(Error::Ended)?.sum(Numbers::F32(&mut [0.0]))
    }

    /// Tells the others that this rank ends, and that this is right.
    pub(super) fn finish(&self) -> Result<(), Error> {
        self.group.borrow_mut().as_mut().ok_or(Error::Ended)?.finish()
    }

    /// Closes the connections. The others miss this rank, unless it said that it ends.
    pub(super) fn close(&self) {
        self.group.borrow_mut().take();
    }
}

/// Gathers as many bytes of each rank. It waits for them, so the request that it gives is complete.
///
/// # Safety
///
/// `own` is valid for reads of `size` bytes, `all` for writes of as many for each rank; `info` is what [`Bootstrap::oob`] gave.
unsafe extern "C" fn all_gather(
    own: *mut c_void,
    all: *mut c_void,
    size: usize,
    info: *mut c_void,
    request: *mut *mut c_void,
) -> Status {
    // SAFETY: `info` is the address of the bootstrap, which outlives all contexts and teams that know it.
    let bootstrap = unsafe { &*info.cast::<Bootstrap>() };
    let Ok(mut group) = bootstrap.group.try_borrow_mut() else { return sys::NO_MESSAGE };
    let Some(group) = group.as_mut() else { return sys::NO_MESSAGE };
    // SAFETY: the library gives as many bytes of its own. It may give the same memory as the target's, so they are copied.
    let own = unsafe { std::slice::from_raw_parts(own.cast::<u8>(), size) }.to_vec();
    // SAFETY: the library gives memory for as many bytes of each rank, which nobody else uses during the call.
    let all = unsafe { std::slice::from_raw_parts_mut(all.cast::<u8>(), size * group.size()) };
    match group.all_gather(&own, all) {
        Ok(()) => {
            // SAFETY: the library gives a valid place for the request; what it holds is handed to `is_done` only.
            unsafe { request.write(info) };
            sys::OK
        }
        Err(error) => {
            bootstrap.failure.borrow_mut().get_or_insert(error);
            sys::NO_MESSAGE
        }
    }
}

/// All requests are complete, and need nothing to be given back.
unsafe extern "C" fn is_done(_request: *mut c_void) -> Status {
    sys::OK
}
