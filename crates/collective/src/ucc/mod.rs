//! UCC, opened at run time. Its ranks find each other, and miss each other, over TCP.

// Calls a foreign library.
#![allow(unsafe_code)]

mod oob;
mod sys;

use std::time::Duration;

use self::oob::Bootstrap;
use self::sys::{ALL_GATHER, Api, Arguments, BROADCAST, Elements, Handle, REDUCE_SCATTER};
use crate::tcp::{Lost, Meeting};
use crate::{Error, Numbers, ProcessGroup, TcpGroup};

/// How often a rank asks whether a collective is complete before it lets others have the core.
const SPINS: u32 = 200;
const PAUSE: Duration = Duration::from_micros(50);

/// Bytes of an element, at most: parts of the staging memory are aligned to it.
const WIDEST: usize = size_of::<u64>();

/// Whether UCC can be used: its library and the modules of it.
///
/// # Errors
///
/// The names that were tried, with the reasons.
pub fn find_ucc() -> Result<(), Error> {
    Api::open()?.probe()
}

/// A process group of UCC.
///
/// It is left as it is when it fails or is dropped without an end: the library cannot destroy what waits for ranks that are gone.
pub(crate) struct UccGroup {
    rank: usize,
    size: usize,
    api: Api,
    library: Handle,
    context: Handle,
    team: Handle,
    bootstrap: &'static Bootstrap,
    /// The values of all ranks, and this rank's part of their sums. A collective that was begun may write there at any time, so
    /// after a failure this memory is never given back.
    staging: Vec<u64>,
    part: Vec<u64>,
}

impl UccGroup {
    /// Joins the other ranks in this thread, which is the only one that may use the group.
    pub(crate) fn open(rank: usize, size: usize, meeting: Meeting, lost: Lost) -> Result<Self, Error> {
        // A rank without the library meets the others too, so that they miss it at once and do not wait for it.
        let api = Api::open();
        let group = TcpGroup::open(rank, size, meeting, lost)?;
        // The library may ask it after a failure too.
        let bootstrap: &'static Bootstrap = Box::leak(Box::new(Bootstrap::new(group)));
        let made = api.and_then(|api| Self::start(rank, size, api, bootstrap));
        if made.is_err() {
            bootstrap.close();
        }
        made
    }

    fn start(rank: usize, size: usize, api: Api, bootstrap: &'static Bootstrap) -> Result<Self, Error> {
        let oob = bootstrap.oob();
        let library = api.init()?;
        // SAFETY: the library was made right here, and the bootstrap lives for ever.
        let context = unsafe { api.context(library, oob) }.map_err(|error| bootstrap.cause(error))?;
        // SAFETY: the context was made right here, and the bootstrap lives for ever.
        let team = unsafe { api.team(context, oob) }.map_err(|error| bootstrap.cause(error))?;
        let (staging, part) = (Vec::new(), Vec::new());
        let made = Self { rank, size, api, library, context, team, bootstrap, staging, part };
        // SAFETY: the team was made right here, and nothing has destroyed it.
        made.wait(|api| unsafe { api.is_team_complete(team) })?;
        Ok(made)
    }

    /// Waits until something is complete, or a rank is gone.
    fn wait(&self, mut is_done: impl FnMut(&Api) -> Result<bool, Error>) -> Result<(), Error> {
        let mut spins = 0;
        let mut advance = || -> Result<bool, Error> {
            if is_done(&self.api)? {
                return Ok(true);
            }
            // SAFETY: the context lives as long as this group.
            unsafe { self.api.progress(self.context) }?;
            spins += 1;
            if spins % SPINS == 0 {
                self.bootstrap.check()?;
                std::thread::sleep(PAUSE);
            }
            Ok(false)
        };
        while !advance().map_err(|error| self.bootstrap.cause(error))? {}
        Ok(())
    }

    /// Runs a collective on the staging memory.
    ///
    /// # Safety
    ///
    /// The memory that the arguments name is in `staging` and `part`, which have room for their counts.
    unsafe fn run(&mut self, mut arguments: Arguments) -> Result<(), Error> {
        // SAFETY: the team is complete since `open`; the memory is that of this group, which no one else touches, and which is
        // leaked below when the collective does not end.
        let run = unsafe { self.api.post(self.team, &mut arguments) };
        // SAFETY: the request is asked for until it is complete, and not afterwards.
        let run = run.and_then(|request| self.wait(|api| unsafe { api.is_complete(&request) }));
        if run.is_err() {
            std::mem::forget(std::mem::take(&mut self.staging));
            std::mem::forget(std::mem::take(&mut self.part));
        }
        run
    }

    /// Adds up values. Each part of them is added up by one rank, which gives the others the sums: so all have the same bits, which
    /// the library's own all-reduce does not promise.
    fn reduce<T: bytemuck::Pod>(&mut self, values: &mut [T], datatype: u64) -> Result<(), Error> {
        let each = values.len().div_ceil(self.size);
        let whole = each * self.size;
        if whole == 0 {
            return Ok(());
        }
        let words = |count: usize| (count * size_of::<T>()).div_ceil(WIDEST);
        self.staging.clear();
        self.staging.resize(words(whole), 0);
        self.part.clear();
        self.part.resize(words(each), 0);
        bytemuck::cast_slice_mut::<u64, T>(&mut self.staging)[..values.len()].copy_from_slice(values);
        let all = Elements::new(self.staging.as_mut_ptr().cast(), whole as u64, datatype);
        let part = Elements::new(self.part.as_mut_ptr().cast(), each as u64, datatype);
        // SAFETY: both have room for their counts of the element type; the parts of all ranks are the whole.
        unsafe { self.run(Arguments::new(REDUCE_SCATTER, all, part, 0)) }?;
        // SAFETY: as above.
        unsafe { self.run(Arguments::new(ALL_GATHER, part, all, 0)) }?;
        values.copy_from_slice(&bytemuck::cast_slice::<u64, T>(&self.staging)[..values.len()]);
        Ok(())
    }
}

impl ProcessGroup for UccGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn engine(&self) -> &'static str {
        "UCC"
    }

    fn sum(&mut self, numbers: Numbers<'_>) -> Result<(), Error> {
        match numbers {
            Numbers::F32(values) => self.reduce(values, sys::FLOAT32),
            Numbers::F64(values) => self.reduce(values, sys::FLOAT64),
        }
    }

    fn broadcast(&mut self, bytes: &mut [u8], root: usize) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.staging.clear();
        self.staging.resize(bytes.len().div_ceil(WIDEST), 0);
        bytemuck::cast_slice_mut::<u64, u8>(&mut self.staging)[..bytes.len()].copy_from_slice(bytes);
        let all = Elements::new(self.staging.as_mut_ptr().cast(), bytes.len() as u64, sys::UINT8);
        // SAFETY: the memory has room for as many bytes.
        unsafe { self.run(Arguments::new(BROADCAST, all, Elements::NONE, root)) }?;
        bytes.copy_from_slice(&bytemuck::cast_slice::<u64, u8>(&self.staging)[..bytes.len()]);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.bootstrap.barrier()?;
        let team = self.team;
        // SAFETY: no collective is on its way on any rank since the barrier; the team is not used afterwards.
        self.wait(|api| unsafe { api.is_team_destroyed(team) })?;
        // SAFETY: both were made in `open`, the team is gone, and nothing calls the library afterwards.
        let ended = unsafe { self.api.end(self.library, self.context) };
        ended.map_err(|error| self.bootstrap.cause(error))?;
        self.bootstrap.finish()
    }
}

impl Drop for UccGroup {
    fn drop(&mut self) {
        self.bootstrap.close();
    }
}
