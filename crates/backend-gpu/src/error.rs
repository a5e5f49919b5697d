//! What can go wrong between a program and a GPU.

use std::path::PathBuf;

use crate::library::Missing;

/// An error of a GPU, its driver or its libraries.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// A library is not on this machine.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A library is there and lacks a function: it is too old or something else.
    #[error("{library} has no function {symbol}; it is too old or another library of that name")]
    Symbol {
        /// The file that was opened.
        library: String,
        /// The function.
        symbol: &'static str,
    },
    /// The driver is older than what it must serve.
    #[error("the {vendor} driver supports version {found}, and {needed} is needed; update the driver")]
    OldDriver {
        /// Whose driver.
        vendor: &'static str,
        /// What it supports.
        found: String,
        /// What is needed.
        needed: String,
    },
    /// There is no device of that number.
    #[error("there is no device {number}: the driver shows {count}")]
    NoSuchDevice {
        /// The number asked for.
        number: u32,
        /// How many there are.
        count: u32,
    },
    /// The device has not so much memory left.
    #[error("out of device memory: {needed} bytes are needed, {free} of {total} are free")]
    OutOfMemory {
        /// Bytes asked for.
        needed: usize,
        /// Bytes that are free.
        free: usize,
        /// Bytes that the device has.
        total: usize,
    },
    /// A generated kernel does not compile.
    #[error("kernel {name} does not compile: {first}; the source is {}, the log {}", source_file.display(), log_file.display())]
    Compile {
        /// The kernel.
        name: String,
        /// The first complaint of the compiler.
        first: String,
        /// Where the source was kept.
        source_file: PathBuf,
        /// Where the compiler's log was kept.
        log_file: PathBuf,
    },
    /// The device does not answer any more, or a kernel broke it for this process.
    #[error("the device is lost ({function}: {text}); start the program again")]
    Lost {
        /// The call that said so.
        function: &'static str,
        /// The driver's words.
        text: String,
    },
    /// A call failed.
    #[error("{function} failed with code {code}: {text}")]
    Call {
        /// The function.
        function: &'static str,
        /// What it answered.
        code: i32,
        /// The library's words.
        text: String,
    },
    /// Something else does not fit.
    #[error("{0}")]
    Other(String),
}

/// The result of something here.
pub type Result<T> = std::result::Result<T, GpuError>;
