//! The driver of a GPU: devices, memory, streams, events, modules and graphs.

// Calls the driver.
#![allow(unsafe_code)]

mod constants;
mod functions;
mod memory;
mod module;
mod staging;
mod stream;
pub(crate) mod tensor_map;

use std::ffi::{CStr, c_char};
use std::sync::{Arc, Mutex, OnceLock};

pub(crate) use constants::Uploads;
pub(crate) use functions::{Address, Functions, Handle};
pub(crate) use memory::{Buffer, Pinned};
pub(crate) use module::{Function, Module};
pub(crate) use staging::Staging;
pub(crate) use stream::{Event, Graph, Stream};

use crate::compiler::Compiler;
use crate::error::{GpuError, Result};
use crate::library::{LibrarySpec, Vendor};
use crate::{cuda, hip};

/// An initialised driver.
#[derive(Clone)]
pub(crate) struct Driver {
    pub(crate) vendor: Vendor,
    pub(crate) functions: Functions,
    count: u32,
}

impl Driver {
    /// The driver of a vendor, initialised once per process.
    ///
    /// # Errors
    ///
    /// When it is missing, too old or fails to initialise.
    pub(crate) fn of(vendor: Vendor) -> Result<&'static Self> {
        static CUDA: OnceLock<Result<Driver>> = OnceLock::new();
        static HIP: OnceLock<Result<Driver>> = OnceLock::new();
        let (kept, spec): (_, &LibrarySpec) = match vendor {
            Vendor::Cuda => (&CUDA, &cuda::DRIVER),
            Vendor::Hip => (&HIP, &hip::DRIVER),
        };
        let driver = kept.get_or_init(|| Self::start(vendor, Functions::open(spec)?));
        driver.as_ref().map_err(Clone::clone)
    }

    /// Initialises a driver.
    pub(crate) fn start(vendor: Vendor, functions: Functions) -> Result<Self> {
        let mut driver = Self { vendor, functions, count: 0 };
        let (mut version, mut count) = (0, 0);
        // SAFETY: the addresses are those of variables.
        unsafe {
            driver.check((functions.init)(0), "init")?;
            driver.check((functions.driver_version)(&raw mut version), "driver_version")?;
            driver.check((functions.device_count)(&raw mut count), "device_count")?;
        }
        let needed = if vendor == Vendor::Cuda { cuda::OLDEST } else { hip::OLDEST };
        if version < needed {
            let text = |version: i32| match vendor {
                Vendor::Cuda => format!("{}.{}", version / 1000, version % 1000 / 10),
                Vendor::Hip => format!("{}.{}", version / 10_000_000, version / 100_000 % 100),
            };
            let (found, needed) = (text(version), text(needed));
            return Err(GpuError::OldDriver { vendor: vendor.name(), found, needed });
        }
        driver.count = u32::try_from(count).unwrap_or(0);
        Ok(driver)
    }

    /// The number of devices.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Converts a status to a result.
    pub(crate) fn check(&self, code: i32, function: &'static str) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: the driver gives the address of a text of its own, or none.
        let text = unsafe {
            (self.functions.error_text)(code, &raw mut text);
            if text.is_null() {
                "the driver says no more".to_owned()
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            }
        };
        // Errors that make a context unusable.
        const LOST: [i32; 12] = [214, 220, 700, 702, 710, 714, 715, 716, 717, 718, 719, 999];
        if LOST.contains(&code) {
            return Err(GpuError::Lost { function, text });
        }
        Err(GpuError::Call { function, code, text })
    }
}

/// Driver constants of device attributes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes {
    pub(crate) major: i32,
    pub(crate) minor: i32,
    pub(crate) multiprocessors: i32,
    pub(crate) shared_bytes: i32,
}

/// Device properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Properties {
    /// Its name.
    pub(crate) name: String,
    /// The identifier that the vendor's management tools use, if available.
    pub(crate) guid: Option<String>,
    /// Compute capability.
    pub(crate) capability: (u32, u32),
    /// Its multiprocessors.
    pub(crate) multiprocessors: u32,
    /// Maximum dynamic shared memory per block in bytes.
    pub(crate) shared_bytes: u32,
}

/// The identifier in the vendor's format: NVIDIA formats the bytes, AMD's are text.
fn guid(vendor: Vendor, uuid: [u8; 16]) -> String {
    match vendor {
        Vendor::Cuda => {
            let groups = [0..4, 4..6, 6..8, 8..10, 10..16];
            let text = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let groups = groups.map(|group| text(&uuid[group]));
            format!("GPU-{}", groups.join("-"))
        }
        Vendor::Hip => String::from_utf8_lossy(&uuid).trim_end_matches('\0').to_owned(),
    }
}

/// A device with its context and memory pool.
pub(crate) struct Gpu {
    pub(crate) driver: Driver,
    pub(crate) properties: Properties,
    context: Handle,
    pool: Mutex<memory::Pool>,
    constants: Mutex<constants::Constants>,
    compiler: OnceLock<Result<Arc<Compiler>>>,
}

// SAFETY: the driver may be called from any thread; the context is made current before each use.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// Opens a device.
    ///
    /// # Errors
    ///
    /// When there is no such device, or the driver fails.
    pub(crate) fn open(driver: &Driver, number: u32) -> Result<Arc<Self>> {
        let no_such = GpuError::NoSuchDevice { number, count: driver.count };
        let index = i32::try_from(number).map_err(|_| no_such.clone())?;
        if number >= driver.count {
            return Err(no_such);
        }
        let functions = &driver.functions;
        let mut device = 0;
        let mut context = std::ptr::null_mut();
        let mut name = [0 as c_char; 256];
        // SAFETY: the addresses are those of variables of these sizes.
        let name = unsafe {
            driver.check((functions.device_get)(&raw mut device, index), "device_get")?;
            driver.check((functions.device_name)(name.as_mut_ptr(), 255, device), "device_name")?;
            driver.check((functions.context_retain)(&raw mut context, device), "context_retain")?;
            CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
        };
        let numbers = if driver.vendor == Vendor::Cuda { cuda::ATTRIBUTES } else { hip::ATTRIBUTES };
        let attribute = |number: i32| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the address is that of a variable.
            let code = unsafe { (functions.device_attribute)(&raw mut value, number, device) };
            driver.check(code, "device_attribute")?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let mut uuid = [0; 16];
        // SAFETY: the address is that of a variable.
        let told = unsafe { (functions.device_uuid)(&raw mut uuid, device) } == 0;
        let properties = Properties {
            name,
            guid: told.then(|| guid(driver.vendor, uuid)),
            capability: (attribute(numbers.major)?, attribute(numbers.minor)?),
            multiprocessors: attribute(numbers.multiprocessors)?,
            shared_bytes: attribute(numbers.shared_bytes)?,
        };
        let (pool, constants) = (Mutex::default(), Mutex::default());
        let compiler = OnceLock::new();
        Ok(Arc::new(Self { driver: driver.clone(), properties, context, pool, constants, compiler }))
    }

    /// Makes the context current on this thread.
    pub(crate) fn enter(&self) -> Result<()> {
        // SAFETY: the context lives as long as the process.
        self.check(unsafe { (self.driver.functions.context_set)(self.context) }, "context_set")
    }

    /// Converts a status to a result.
    pub(crate) fn check(&self, code: i32, function: &'static str) -> Result<()> {
        self.driver.check(code, function)
    }

    /// The run-time compiler.
    ///
    /// # Errors
    ///
    /// When it is not installed.
    pub(crate) fn compiler(&self) -> Result<Arc<Compiler>> {
        self.compiler.get_or_init(|| Compiler::of(self.driver.vendor)).clone()
    }

    /// Replaces the compiler.
    #[cfg(test)]
    pub(crate) fn use_compiler(&self, compiler: Compiler) {
        let _ = self.compiler.set(Ok(Arc::new(compiler)));
    }

    /// Free and total bytes.
    pub(crate) fn memory(&self) -> Result<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the addresses are those of variables.
        let code = unsafe { (self.driver.functions.memory_info)(&raw mut free, &raw mut total) };
        self.check(code, "memory_info")?;
        Ok((free, total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_identifiers_match_vendor_tools() {
        let bytes = std::array::from_fn(|at| at as u8);
        assert_eq!(guid(Vendor::Cuda, bytes), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
        assert_eq!(guid(Vendor::Hip, *b"8f3c0d6e21aa4b57"), "8f3c0d6e21aa4b57");
    }
}
