//! The C interface of UCC 1.x: its structures, and the functions that are used, opened at run time.
//!
//! A structure has all fields of version 1.9. Those that an older library does not know lie at the end, and none is read unless its
//! bit is in the structure's mask.

// Calls a foreign library.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;

use libloading::os::unix::Library;

use crate::{Error, library};

/// File names, best first.
const NAMES: [&str; 2] = ["libucc.so.1", "libucc.so"];

/// The interface that is asked for; a library with a later minor version has it too.
const VERSION: (c_uint, c_uint) = (1, 0);

pub(super) type Status = c_int;
pub(super) const OK: Status = 0;
pub(super) const NO_MESSAGE: Status = -6;

/// Addresses of objects of the library.
pub(super) type Handle = *mut c_void;

/// Element types.
pub(super) const UINT8: u64 = 5 << 3;
pub(super) const FLOAT32: u64 = 11 << 3;
pub(super) const FLOAT64: u64 = 12 << 3;

/// Kinds of collectives.
pub(super) const ALL_GATHER: c_uint = 1 << 0;
pub(super) const BROADCAST: c_uint = 1 << 6;
pub(super) const REDUCE_SCATTER: c_uint = 1 << 12;

const THREAD_MODE: u64 = 1 << 0;
const CONTEXT_OOB: u64 = 1 << 2;
const TEAM_EP: u64 = 1 << 2;
const TEAM_EP_RANGE: u64 = 1 << 4;
const TEAM_SIZE: u64 = 1 << 5;
const TEAM_OOB: u64 = 1 << 7;

#[repr(C)]
pub(super) struct LibParams {
    mask: u64,
    thread_mode: c_int,
    collectives: u64,
    reductions: u64,
    sync: c_int,
}

/// What gathers addresses before the library can do it by itself.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Oob {
    pub(super) all_gather:
        unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut c_void, *mut *mut c_void) -> Status,
    pub(super) test: unsafe extern "C" fn(*mut c_void) -> Status,
    pub(super) free: unsafe extern "C" fn(*mut c_void) -> Status,
    pub(super) info: *mut c_void,
    pub(super) count: u32,
    pub(super) own: u32,
}

#[repr(C)]
struct ContextParams {
    mask: u64,
    kind: c_int,
    sync: c_int,
    oob: Oob,
    id: u64,
    memory: [u64; 2],
}

#[repr(C)]
struct TeamParams {
    mask: u64,
    flags: u64,
    ordering: c_int,
    outstanding: u64,
    ep: u64,
    ep_list: *mut u64,
    ep_range: c_int,
    size: u64,
    sync: c_int,
    oob: Oob,
    connections: [u64; 5],
    memory: [u64; 2],
    map: [u64; 4],
    id: u64,
}

/// Memory that a collective reads or writes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Elements {
    buffer: *mut c_void,
    count: u64,
    datatype: u64,
    /// Zero is the host's.
    memory: c_int,
    /// As large as the other form of this structure.
    rest: u64,
}

impl Elements {
    pub(super) const NONE: Self = Self::new(std::ptr::null_mut(), 0, 0);

    pub(super) const fn new(buffer: *mut c_void, count: u64, datatype: u64) -> Self {
        Self { buffer, count, datatype, memory: 0, rest: 0 }
    }
}

/// A collective. Its reduction is a sum, which is zero.
#[repr(C)]
pub(super) struct Arguments {
    mask: u64,
    kind: c_uint,
    source: Elements,
    target: Elements,
    reduction: c_int,
    flags: u64,
    root: u64,
    error: c_int,
    tag: u16,
    work: *mut c_void,
    callback: [*mut c_void; 2],
    timeout: f64,
    active: [u64; 3],
    handles: [*mut c_void; 2],
}

impl Arguments {
    pub(super) fn new(kind: c_uint, source: Elements, target: Elements, root: usize) -> Self {
        let none = std::ptr::null_mut();
        Self {
            mask: 0,
            kind,
            source,
            target,
            reduction: 0,
            flags: 0,
            root: root as u64,
            error: 0,
            tag: 0,
            work: none,
            callback: [none; 2],
            timeout: 0.0,
            active: [0; 3],
            handles: [none; 2],
        }
    }
}

type ReadLibConfig = unsafe extern "C" fn(*const c_char, *const c_char, *mut Handle) -> Status;
type Init = unsafe extern "C" fn(c_uint, c_uint, *const LibParams, Handle, *mut Handle) -> Status;
type ReadConfig = unsafe extern "C" fn(Handle, *const c_char, *mut Handle) -> Status;
type CreateContext = unsafe extern "C" fn(Handle, *const ContextParams, Handle, *mut Handle) -> Status;
type CreateTeam = unsafe extern "C" fn(*mut Handle, u32, *const TeamParams, *mut Handle) -> Status;
type InitCollective = unsafe extern "C" fn(*mut Arguments, *mut *mut Status, Handle) -> Status;
type OfRequest = unsafe extern "C" fn(*mut Status) -> Status;
type OfHandle = unsafe extern "C" fn(Handle) -> Status;
type Release = unsafe extern "C" fn(Handle);

/// The functions of the library, which is never closed: its transports have threads of their own.
pub(super) struct Api {
    read_lib_config: ReadLibConfig,
    release_lib_config: Release,
    init: Init,
    finalize: OfHandle,
    read_config: ReadConfig,
    release_config: Release,
    create_context: CreateContext,
    destroy_context: OfHandle,
    progress: OfHandle,
    post_team: CreateTeam,
    test_team: OfHandle,
    destroy_team: OfHandle,
    init_collective: InitCollective,
    post: OfRequest,
    finalize_collective: OfRequest,
    describe: unsafe extern "C" fn(Status) -> *const c_char,
    _held: ManuallyDrop<Library>,
}

impl Api {
    /// Opens the library.
    pub(super) fn open() -> Result<Self, Error> {
        let opened = library::open(&NAMES).map_err(|reasons| {
            let packages = "Debian's packages are libucc1 and libucc-dev";
            Error::Ucc(format!("its library cannot be opened: {reasons}; {packages}"))
        })?;
        Self::of(opened)
    }

    fn of(library: Library) -> Result<Self, Error> {
        Ok(Self {
            read_lib_config: function(&library, "ucc_lib_config_read")?,
            release_lib_config: function(&library, "ucc_lib_config_release")?,
            init: function(&library, "ucc_init_version")?,
            finalize: function(&library, "ucc_finalize")?,
            read_config: function(&library, "ucc_context_config_read")?,
            release_config: function(&library, "ucc_context_config_release")?,
            create_context: function(&library, "ucc_context_create")?,
            destroy_context: function(&library, "ucc_context_destroy")?,
            progress: function(&library, "ucc_context_progress")?,
            post_team: function(&library, "ucc_team_create_post")?,
            test_team: function(&library, "ucc_team_create_test")?,
            destroy_team: function(&library, "ucc_team_destroy")?,
            init_collective: function(&library, "ucc_collective_init")?,
            post: function(&library, "ucc_collective_post")?,
            finalize_collective: function(&library, "ucc_collective_finalize")?,
            describe: function(&library, "ucc_status_string")?,
            _held: ManuallyDrop::new(library),
        })
    }

    /// The library's configuration, which finds its modules.
    fn config(&self) -> Result<Handle, Error> {
        let (mut config, none) = (std::ptr::null_mut(), std::ptr::null());
        // SAFETY: null asks for the usual prefix of variables and no file; the other pointer is valid for the call.
        self.checked("ucc_lib_config_read", unsafe { (self.read_lib_config)(none, none, &raw mut config) })?;
        Ok(config)
    }

    /// Whether the library has its modules.
    pub(super) fn probe(&self) -> Result<(), Error> {
        let config = self.config()?;
        // SAFETY: the configuration is the library's and not used afterwards.
        unsafe { (self.release_lib_config)(config) };
        Ok(())
    }

    /// Starts the library for calls of one thread.
    pub(super) fn init(&self) -> Result<Handle, Error> {
        let (config, mut library) = (self.config()?, std::ptr::null_mut());
        let params = LibParams { mask: THREAD_MODE, thread_mode: 0, collectives: 0, reductions: 0, sync: 0 };
        let (major, minor) = VERSION;
        // SAFETY: the pointers are valid for the call, the configuration is the library's.
        let status = unsafe { (self.init)(major, minor, &raw const params, config, &raw mut library) };
        // SAFETY: the configuration is the library's and not used afterwards.
        unsafe { (self.release_lib_config)(config) };
        self.checked("ucc_init_version", status)?;
        Ok(library)
    }

    /// Makes a context, which gathers addresses by `oob`.
    ///
    /// # Safety
    ///
    /// The library is a live one of this interface. What `oob` points to outlives the context.
    pub(super) unsafe fn context(&self, library: Handle, oob: Oob) -> Result<Handle, Error> {
        let (mut config, mut context) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the library is live as the caller says; null asks for no file; the other pointer is valid for the call.
        let status = unsafe { (self.read_config)(library, std::ptr::null(), &raw mut config) };
        self.checked("ucc_context_config_read", status)?;
        let params = ContextParams { mask: CONTEXT_OOB, kind: 0, sync: 0, oob, id: 0, memory: [0; 2] };
        // SAFETY: the handles are live, the pointers are valid for the call, and what they name outlives the context.
        let status = unsafe { (self.create_context)(library, &raw const params, config, &raw mut context) };
        // SAFETY: the configuration is the library's and not used afterwards.
        unsafe { (self.release_config)(config) };
        self.checked("ucc_context_create", status)?;
        Ok(context)
    }

    /// Begins to make a team of all ranks, whose places are those of `oob`.
    ///
    /// # Safety
    ///
    /// The context is live. What `oob` points to outlives the team.
    pub(super) unsafe fn team(&self, mut context: Handle, oob: Oob) -> Result<Handle, Error> {
        let mut team = std::ptr::null_mut();
        let params = TeamParams {
            mask: TEAM_EP | TEAM_EP_RANGE | TEAM_SIZE | TEAM_OOB,
            flags: 0,
            ordering: 0,
            outstanding: 0,
            ep: u64::from(oob.own),
            ep_list: std::ptr::null_mut(),
            ep_range: 0,
            size: u64::from(oob.count),
            sync: 0,
            oob,
            connections: [0; 5],
            memory: [0; 2],
            map: [0; 4],
            id: 0,
        };
        // SAFETY: the context is live, the pointers are valid for the call, and what they name outlives the team.
        let status = unsafe { (self.post_team)(&raw mut context, 1, &raw const params, &raw mut team) };
        self.checked("ucc_team_create_post", status)?;
        Ok(team)
    }

    /// Whether a team is complete.
    ///
    /// # Safety
    ///
    /// The team is one that [`Api::team`] made and nothing has destroyed.
    pub(super) unsafe fn is_team_complete(&self, team: Handle) -> Result<bool, Error> {
        // SAFETY: the team is live, as the caller says.
        self.done("ucc_team_create_test", unsafe { (self.test_team)(team) })
    }

    /// Begins a collective.
    ///
    /// # Safety
    ///
    /// The team is live and complete. The memory that the arguments name is that of their counts and element types, and nobody
    /// touches it before the request is complete.
    pub(super) unsafe fn post(&self, team: Handle, arguments: &mut Arguments) -> Result<Request, Error> {
        let mut request = std::ptr::null_mut();
        // SAFETY: the team is live and the pointers are valid for the call, which copies the arguments.
        let status = unsafe { (self.init_collective)(arguments, &raw mut request, team) };
        self.checked("ucc_collective_init", status)?;
        // SAFETY: the request was made before and not posted yet.
        self.checked("ucc_collective_post", unsafe { (self.post)(request) })?;
        Ok(Request(request))
    }

    /// Whether a collective is complete; if so, its request is given back.
    ///
    /// # Safety
    ///
    /// The request is one of [`Api::post`] that was not complete before.
    pub(super) unsafe fn is_complete(&self, request: &Request) -> Result<bool, Error> {
        // SAFETY: a request begins with its status, which the library may change between two calls of it.
        let status = unsafe { request.0.read_volatile() };
        let done = self.done("a collective", status)?;
        if done {
            // SAFETY: the request is complete and not used afterwards.
            self.checked("ucc_collective_finalize", unsafe { (self.finalize_collective)(request.0) })?;
        }
        Ok(done)
    }

    /// Lets everything that is on its way go on.
    ///
    /// # Safety
    ///
    /// The context is live.
    pub(super) unsafe fn progress(&self, context: Handle) -> Result<(), Error> {
        // SAFETY: the context is live, as the caller says.
        self.done("ucc_context_progress", unsafe { (self.progress)(context) }).map(drop)
    }

    /// Whether a team is destroyed.
    ///
    /// # Safety
    ///
    /// The team is live and has no collective on its way; it is not used after the answer is yes.
    pub(super) unsafe fn is_team_destroyed(&self, team: Handle) -> Result<bool, Error> {
        // SAFETY: the team is live and idle, as the caller says.
        self.done("ucc_team_destroy", unsafe { (self.destroy_team)(team) })
    }

    /// Ends a context and its library.
    ///
    /// # Safety
    ///
    /// Both are live, have no team, and are not used afterwards.
    pub(super) unsafe fn end(&self, library: Handle, context: Handle) -> Result<(), Error> {
        // SAFETY: the context is live and has no team, as the caller says.
        self.checked("ucc_context_destroy", unsafe { (self.destroy_context)(context) })?;
        // SAFETY: the library is live and has no context any more.
        self.checked("ucc_finalize", unsafe { (self.finalize)(library) })
    }

    /// An error of a function that is complete when it returns.
    fn checked(&self, name: &str, status: Status) -> Result<(), Error> {
        if status >= OK {
            return Ok(());
        }
        // SAFETY: the function takes any number and gives a text that is part of the library, or null.
        let text = unsafe { (self.describe)(status) };
        let text = match text.is_null() {
            true => "no text".into(),
            // SAFETY: the text ends with a zero and is never changed.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy(),
        };
        Err(Error::Ucc(format!("{name} gave the error {status} ({text})")))
    }

    /// Whether what a function tells of is complete.
    fn done(&self, name: &str, status: Status) -> Result<bool, Error> {
        self.checked(name, status).map(|()| status == OK)
    }
}

/// A collective on its way: the address of its status.
pub(super) struct Request(*mut Status);

fn function<T: Copy>(library: &Library, name: &str) -> Result<T, Error> {
    // SAFETY: every caller asks for the type that UCC's header gives the function of that name.
    let symbol = unsafe { library.get::<T>(name.as_bytes()) };
    symbol.map(|symbol| *symbol).map_err(|error| Error::Ucc(format!("{name}: {error}")))
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// The sizes and offsets that a C compiler gives the structures of UCC 1.9's header on 64-bit machines.
    #[test]
    fn structures_have_the_layout_of_the_header() {
        let sizes = [
            size_of::<LibParams>(),
            size_of::<Oob>(),
            size_of::<ContextParams>(),
            size_of::<TeamParams>(),
            size_of::<Elements>(),
            size_of::<Arguments>(),
        ];
        assert_eq!(sizes, [40, 40, 80, 208, 40, 200]);
        assert_eq!((offset_of!(LibParams, thread_mode), offset_of!(LibParams, sync)), (8, 32));
        assert_eq!((offset_of!(ContextParams, oob), offset_of!(ContextParams, id)), (16, 56));
        let team = [
            offset_of!(TeamParams, ordering),
            offset_of!(TeamParams, ep),
            offset_of!(TeamParams, ep_range),
            offset_of!(TeamParams, size),
            offset_of!(TeamParams, oob),
            offset_of!(TeamParams, map),
            offset_of!(TeamParams, id),
        ];
        assert_eq!(team, [16, 32, 48, 56, 72, 168, 200]);
        let arguments = [
            offset_of!(Arguments, kind),
            offset_of!(Arguments, source),
            offset_of!(Arguments, target),
            offset_of!(Arguments, reduction),
            offset_of!(Arguments, flags),
            offset_of!(Arguments, root),
            offset_of!(Arguments, tag),
            offset_of!(Arguments, callback),
            offset_of!(Arguments, active),
        ];
        assert_eq!(arguments, [8, 16, 56, 96, 104, 112, 124, 136, 160]);
    }
}
