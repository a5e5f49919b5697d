//! The driver of a vendor.

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use super::functions::Functions;
use crate::error::{GpuError, Result};
use crate::library::LibrarySpec;
use crate::vendor::Vendor;
use crate::{cuda, hip};

/// An initialised driver.
#[derive(Clone)]
pub(crate) struct Driver {
    pub(crate) vendor: Vendor,
    pub(crate) functions: Functions,
    pub(super) count: u32,
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
                "the driver gives no further information".to_owned()
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
