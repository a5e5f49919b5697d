//! Libraries that are loaded at run time: names, search path, and errors.

// Functions of foreign libraries are looked up by name.
#![allow(unsafe_code)]

mod search_path;

use std::ffi::OsStr;
use std::path::PathBuf;

use libloading::os::unix::{Library as Opened, RTLD_LOCAL, RTLD_NOW};

pub use crate::error::Missing;
pub use crate::vendor::Vendor;

use crate::error::{GpuError, Result};

/// A library to load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LibrarySpec {
    /// What it is for.
    pub(crate) what: &'static str,
    /// File names, the best first.
    pub(crate) names: &'static [&'static str],
    /// The vendor.
    pub(crate) vendor: Vendor,
    /// Whether it belongs to the driver and is found by the loader alone.
    pub(crate) driver: bool,
}

impl LibrarySpec {
    /// A library that is installed beside the driver.
    pub(crate) const fn new(vendor: Vendor, what: &'static str, names: &'static [&'static str]) -> Self {
        Self { what, names, vendor, driver: false }
    }
}

/// A loaded library. It is never unloaded: drivers do not support that.
pub(crate) struct Library {
    opened: std::mem::ManuallyDrop<Opened>,
    path: PathBuf,
}

impl Library {
    /// Loads a library.
    ///
    /// # Errors
    ///
    /// When it is not found.
    pub(crate) fn open(spec: &LibrarySpec) -> std::result::Result<Self, Missing> {
        Self::open_in(spec, &if spec.driver { Vec::new() } else { search_path::folders(spec.vendor) })
    }

    fn open_in(spec: &LibrarySpec, folders: &[PathBuf]) -> std::result::Result<Self, Missing> {
        // Directories first: a selected environment takes precedence over an installed library.
        for folder in folders {
            for name in spec.names {
                let path = folder.join(name);
                if let Some(found) = path.is_file().then(|| Self::at(path.as_os_str())).flatten() {
                    return Ok(found);
                }
            }
        }
        if let Some(found) = spec.names.iter().find_map(|name| Self::at(OsStr::new(name))) {
            return Ok(found);
        }
        let mut searched = vec!["the loader's path".to_owned()];
        searched.extend(folders.iter().map(|folder| folder.display().to_string()));
        let names = spec.names.iter().map(|&name| name.to_owned()).collect();
        Err(Missing { what: spec.what, names, searched })
    }

    fn at(path: &OsStr) -> Option<Self> {
        // SAFETY: the vendors' libraries may be initialised at any time from any thread.
        let opened = unsafe { Opened::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        match opened {
            Ok(opened) => {
                tracing::debug!(library = %path.display(), "opened");
                Some(Self { opened: std::mem::ManuallyDrop::new(opened), path: path.into() })
            }
            Err(error) => {
                tracing::debug!(library = %path.display(), %error, "not opened");
                None
            }
        }
    }

    /// A function of the library.
    ///
    /// # Safety
    ///
    /// `F` is a pointer to a function with the signature that the library's documentation gives.
    ///
    /// # Errors
    ///
    /// When the library has no such function.
    pub(crate) unsafe fn function<F: Copy>(&self, symbol: &'static str) -> Result<F> {
        // SAFETY: as the caller promises.
        let found = unsafe { self.opened.get::<F>(symbol) };
        let missing = |_| GpuError::Symbol { library: self.path.display().to_string(), symbol };
        found.map(|function| *function).map_err(missing)
    }

    /// The `include` directory of its installation, if there is one.
    pub(crate) fn headers(&self) -> Option<PathBuf> {
        let folder = self.path.parent()?.parent()?.join("include");
        folder.is_dir().then_some(folder)
    }
}

/// Declares a table of foreign functions with their names per vendor. All return a status.
macro_rules! functions {
    ($(#[$doc:meta])* $name:ident { $( $(#[$field_doc:meta])* $field:ident($($arg:ty),* $(,)?) = $only:literal; )* }) => {
        crate::library::functions! {
            $(#[$doc])* $name { $( $(#[$field_doc])* $field($($arg),*) = $only, $only; )* }
        }
    };
    ($(#[$doc:meta])* $name:ident { $( $(#[$field_doc:meta])* $field:ident($($arg:ty),* $(,)?) = $cuda:literal, $hip:literal; )* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name {
            $( $(#[$field_doc])* pub(crate) $field: unsafe extern "C" fn($($arg),*) -> i32, )*
        }

        impl $name {
            /// Loads a library and resolves all functions.
            pub(crate) fn open(spec: &crate::library::LibrarySpec) -> crate::error::Result<Self> {
                Self::load(&crate::library::Library::open(spec)?, spec.vendor)
            }

            /// Resolves all functions of a library.
            pub(crate) fn load(
                library: &crate::library::Library,
                vendor: crate::library::Vendor,
            ) -> crate::error::Result<Self> {
                use crate::vendor::Vendor;
                // SAFETY: the signatures are those of the vendors' headers.
                unsafe {
                    Ok(Self {
                        $( $field: library.function(match vendor {
                            Vendor::Cuda => $cuda,
                            Vendor::Hip => $hip,
                        })?, )*
                    })
                }
            }
        }
    };
}
pub(crate) use functions;

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: LibrarySpec = LibrarySpec {
        what: "library of nobody",
        names: &["libnobody_has_this.so.1", "libnobody_has_this.so"],
        vendor: Vendor::Cuda,
        driver: false,
    };

    #[test]
    fn a_missing_library_lists_what_was_tried() {
        let missing = Library::open_in(&NONE, &[PathBuf::from("/nowhere/lib")]).err().unwrap();
        assert_eq!(
            missing.to_string(),
            "no library of nobody here: tried libnobody_has_this.so.1, libnobody_has_this.so in the loader's path, \
             /nowhere/lib"
        );
    }

    #[test]
    fn a_file_that_is_not_a_library_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("libnobody_has_this.so"), "text").unwrap();
        assert!(Library::open_in(&NONE, &[folder.path().to_owned()]).is_err());
    }

    #[test]
    fn a_missing_function_is_named() {
        let libm = LibrarySpec { names: &["libm.so.6"], ..NONE };
        let library = Library::open_in(&libm, &[]).unwrap();
        // SAFETY: the function is never called.
        let found = unsafe { library.function::<extern "C" fn()>("no_such_function") };
        assert!(found.err().unwrap().to_string().contains("no_such_function"));
        // SAFETY: as above.
        assert!(unsafe { library.function::<extern "C" fn(f64) -> f64>("cos") }.is_ok());
    }
}
