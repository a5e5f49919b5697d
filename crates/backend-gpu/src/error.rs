//! GPU errors.

use std::fmt;
use std::path::PathBuf;

use warpforge_runtime::ErrorKind;

use crate::vendor::Vendor;

/// An error of a GPU, its driver or its libraries.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// A library is not installed.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A library lacks a function: too old or a different library.
    #[error("{library} has no function {symbol}; it is too old or another library of that name")]
    Symbol {
        /// The file that was opened.
        library: String,
        /// The function.
        symbol: &'static str,
    },
    /// The driver is too old.
    #[error("the {vendor} driver supports version {found}, and {needed} is needed; update the driver")]
    OldDriver {
        /// The vendor.
        vendor: &'static str,
        /// The version found.
        found: String,
        /// The version needed.
        needed: String,
    },
    /// No such device.
    #[error("there is no device {number}: the driver shows {count}")]
    NoSuchDevice {
        /// The requested index.
        number: u32,
        /// The number of devices.
        count: u32,
    },
    /// Out of device memory.
    #[error("out of device memory: {needed} bytes are needed, {free} of {total} are free")]
    OutOfMemory {
        /// Bytes requested.
        needed: usize,
        /// Bytes free.
        free: usize,
        /// Bytes in total.
        total: usize,
    },
    /// A generated kernel does not compile.
    #[error("kernel {name} does not compile: {first}; the source is {}, the log {}", source_file.display(), log_file.display())]
    Compile {
        /// The kernel.
        name: String,
        /// The first error of the compiler.
        first: String,
        /// Where the source was kept.
        source_file: PathBuf,
        /// Where the compiler's log was kept.
        log_file: PathBuf,
    },
    /// The context is unusable in this process.
    #[error("the device is lost ({function}: {text}); start the program again")]
    Lost {
        /// The failing call.
        function: &'static str,
        /// The driver's message.
        text: String,
    },
    /// A call failed.
    #[error("{function} failed with code {code}: {text}")]
    Call {
        /// The function.
        function: &'static str,
        /// The status.
        code: i32,
        /// The library's message.
        text: String,
    },
    /// The ranks cannot go on together.
    #[error("{0}")]
    Ranks(String),
    /// Any other error.
    #[error("{0}")]
    Other(String),
}

/// A GPU result.
pub type Result<T> = std::result::Result<T, GpuError>;

impl GpuError {
    /// Converts the status of a library's function: 0 is success, `texts` has those of its other codes.
    pub(crate) fn of_status(
        code: i32,
        function: &'static str,
        texts: &[(i32, &str)],
        otherwise: &str,
    ) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let text = texts.iter().find(|(known, _)| *known == code).map_or(otherwise, |(_, text)| text);
        Err(Self::Call { function, code, text: text.to_owned() })
    }
}

/// A library that was not found, with the names and directories tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Missing {
    /// What the library is for.
    pub what: &'static str,
    /// The names tried.
    pub names: Vec<String>,
    /// The directories tried.
    pub searched: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, names, searched } = self;
        write!(f, "no {what} here: tried {} in {}", names.join(", "), searched.join(", "))
    }
}

/// A device error as a runtime error.
pub(crate) fn runtime_error(vendor: Vendor, error: &GpuError) -> warpforge_runtime::Error {
    ErrorKind::Failed { backend: vendor.name(), reason: error.to_string() }.into()
}
