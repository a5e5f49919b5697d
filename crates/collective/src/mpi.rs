//! MPI, opened at run time: Open MPI and MPICH, whose binary interfaces differ.

// Calls a foreign library.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

use libloading::{Library, Symbol};

use crate::{Error, Numbers, ProcessGroup};

/// Which implementation of MPI started this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MpiLibrary {
    /// Open MPI: handles are addresses of objects in the library.
    OpenMpi,
    /// MPICH and its relatives (Intel MPI, MVAPICH): handles are numbers.
    Mpich,
}

impl MpiLibrary {
    /// File names, best first.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::OpenMpi => &["libmpi.so.40", "libmpi.so"],
            Self::Mpich => &["libmpich.so.12", "libmpi.so.12", "libmpich.so"],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
        }
    }
}

/// What is added up or handed around at once; MPI counts with 32 bits.
const MOST: usize = 1 << 28;

/// A handle: an address of Open MPI, a number of 32 bits of MPICH. On all machines that MPICH runs on, a number travels in the same
/// register as an address, and only its lower half is read.
type Handle = *mut c_void;

type AllReduce = unsafe extern "C" fn(*const c_void, *mut c_void, c_int, Handle, Handle, Handle) -> c_int;
type Broadcast = unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, Handle) -> c_int;
type InitThread = unsafe extern "C" fn(*mut c_int, *mut c_void, c_int, *mut c_int) -> c_int;
type Finalize = unsafe extern "C" fn() -> c_int;
type Place = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;

/// The handles and constants of an implementation.
#[derive(Clone, Copy)]
struct Constants {
    world: Handle,
    float: Handle,
    double: Handle,
    byte: Handle,
    sum: Handle,
    in_place: *const c_void,
}

/// The ranks that `mpirun` started. A rank that dies ends all others: `mpirun` sees to it.
pub(crate) struct MpiGroup {
    library: MpiLibrary,
    rank: usize,
    size: usize,
    constants: Constants,
    all_reduce: AllReduce,
    broadcast: Broadcast,
    finalize: Finalize,
    /// Held while its functions are used. Never closed: MPI has threads of its own.
    _held: std::mem::ManuallyDrop<Library>,
}

impl MpiGroup {
    /// Starts MPI in this thread, which is the only one that may use it.
    pub(crate) fn open(library: MpiLibrary) -> Result<Self, Error> {
        let held = load(library)?;
        let constants = match library {
            MpiLibrary::OpenMpi => Constants {
                world: address(&held, "ompi_mpi_comm_world")?,
                float: address(&held, "ompi_mpi_float")?,
                double: address(&held, "ompi_mpi_double")?,
                byte: address(&held, "ompi_mpi_byte")?,
                sum: address(&held, "ompi_mpi_op_sum")?,
                in_place: std::ptr::without_provenance(1),
            },
            // The numbers of MPICH's common binary interface.
            MpiLibrary::Mpich => Constants {
                world: std::ptr::without_provenance_mut(0x4400_0000),
                float: std::ptr::without_provenance_mut(0x4c00_040a),
                double: std::ptr::without_provenance_mut(0x4c00_080b),
                byte: std::ptr::without_provenance_mut(0x4c00_010d),
                sum: std::ptr::without_provenance_mut(0x5800_0003),
                in_place: std::ptr::without_provenance(usize::MAX),
            },
        };
        let initialise: InitThread = function(&held, "MPI_Init_thread")?;
        let (rank_of, size_of): (Place, Place) =
            (function(&held, "MPI_Comm_rank")?, function(&held, "MPI_Comm_size")?);
        const FUNNELED: c_int = 1;
        let (mut rank, mut size, mut given) = (0, 0, 0);
        // SAFETY: MPI allows null for the program's arguments; the other pointer is valid for the call.
        checked("MPI_Init_thread", unsafe {
            initialise(std::ptr::null_mut(), std::ptr::null_mut(), FUNNELED, &raw mut given)
        })?;
        // SAFETY: MPI is initialised, the handle is that of its world, and the pointers are valid for the calls.
        let codes =
            unsafe { [rank_of(constants.world, &raw mut rank), size_of(constants.world, &raw mut size)] };
        codes.into_iter().try_for_each(|code| checked("MPI_Comm_rank", code))?;
        let (Ok(rank), Ok(size)) = (usize::try_from(rank), usize::try_from(size)) else {
            return Err(Error::Mpi(format!("rank {rank} of {size} makes no sense")));
        };
        Ok(Self {
            library,
            rank,
            size,
            constants,
            all_reduce: function(&held, "MPI_Allreduce")?,
            broadcast: function(&held, "MPI_Bcast")?,
            finalize: function(&held, "MPI_Finalize")?,
            _held: std::mem::ManuallyDrop::new(held),
        })
    }

    /// Adds up values in place.
    fn reduce<T>(&self, values: &mut [T], datatype: Handle) -> Result<(), Error> {
        for part in values.chunks_mut(MOST) {
            let Constants { world, sum, in_place, .. } = self.constants;
            let count = part.len() as c_int;
            // SAFETY: the pointer is valid for `count` elements of the datatype; the handles are those of this library.
            checked("MPI_Allreduce", unsafe {
                (self.all_reduce)(in_place, part.as_mut_ptr().cast(), count, datatype, sum, world)
            })?;
        }
        Ok(())
    }
}

impl ProcessGroup for MpiGroup {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn engine(&self) -> &'static str {
        self.library.name()
    }

    fn sum(&mut self, numbers: Numbers<'_>) -> Result<(), Error> {
        match numbers {
            Numbers::F32(values) => self.reduce(values, self.constants.float),
            Numbers::F64(values) => self.reduce(values, self.constants.double),
        }
    }

    fn broadcast(&mut self, bytes: &mut [u8], root: usize) -> Result<(), Error> {
        for part in bytes.chunks_mut(MOST) {
            let (count, root) = (part.len() as c_int, root as c_int);
            let Constants { world, byte, .. } = self.constants;
            // SAFETY: the pointer is valid for `count` bytes; the handles are those of this library.
            checked("MPI_Bcast", unsafe {
                (self.broadcast)(part.as_mut_ptr().cast(), count, byte, root, world)
            })?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Error> {
        // SAFETY: MPI is initialised, and nothing of it is called afterwards.
        checked("MPI_Finalize", unsafe { (self.finalize)() })
    }
}

fn load(library: MpiLibrary) -> Result<Library, Error> {
    crate::library::open(library.names()).map(Library::from).map_err(|reasons| {
        let name = library.name();
        Error::Mpi(format!("this process was started by {name}, whose library cannot be opened: {reasons}"))
    })
}

fn function<T: Copy>(library: &Library, name: &str) -> Result<T, Error> {
    // SAFETY: every caller asks for the type that the MPI standard gives the function of that name.
    let symbol: Result<Symbol<'_, T>, _> = unsafe { library.get(name.as_bytes()) };
    symbol.map(|symbol| *symbol).map_err(|error| Error::Mpi(format!("{name}: {error}")))
}

/// The address of an object in the library.
fn address(library: &Library, name: &str) -> Result<Handle, Error> {
    // SAFETY: only the address is taken; the object is not read.
    let symbol: Result<Symbol<'_, Handle>, _> = unsafe { library.get(name.as_bytes()) };
    let symbol = symbol.map_err(|error| Error::Mpi(format!("{name}: {error}")))?;
    // SAFETY: the library is never closed, so the address stays valid.
    let address = unsafe { symbol.try_as_raw_ptr() };
    address.ok_or_else(|| Error::Mpi(format!("{name} has no address")))
}

fn checked(name: &str, code: c_int) -> Result<(), Error> {
    match code {
        0 => Ok(()),
        _ => Err(Error::Mpi(format!("{name} gave the error {code}"))),
    }
}
