//! Libraries opened at run time: by which names, in which places, and what to say when one is not there.

// Functions of foreign libraries are looked up by name.
#![allow(unsafe_code)]

mod places;

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

use libloading::os::unix::{Library as Opened, RTLD_LOCAL, RTLD_NOW};

use crate::error::{GpuError, Result};

/// Whose GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// NVIDIA, by CUDA.
    Cuda,
    /// AMD, by HIP.
    Hip,
}

impl Vendor {
    /// The word for its devices.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Vendor::Cuda => "cuda",
            Vendor::Hip => "hip",
        }
    }
}

/// A library that is not on this machine: what it was looked for by, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Missing {
    /// What the library is for.
    pub what: &'static str,
    /// The names tried.
    pub names: Vec<String>,
    /// The places tried.
    pub places: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, names, places } = self;
        write!(f, "no {what} here: tried {} in {}", names.join(", "), places.join(", "))
    }
}

/// A library by its possible names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// What it is for.
    pub(crate) what: &'static str,
    /// File names, the best first.
    pub(crate) names: &'static [&'static str],
    /// Whose.
    pub(crate) vendor: Vendor,
    /// Whether it comes with the driver: then only the loader knows where it is.
    pub(crate) driver: bool,
}

/// A library that was found. It stays open while the process lives: drivers do not bear being closed.
pub(crate) struct Library {
    opened: std::mem::ManuallyDrop<Opened>,
    path: PathBuf,
}

impl Library {
    /// Opens a library.
    ///
    /// # Errors
    ///
    /// When it is in none of the places.
    pub(crate) fn open(wanted: &Wanted) -> std::result::Result<Self, Missing> {
        Self::open_in(wanted, &if wanted.driver { Vec::new() } else { places::folders(wanted.vendor) })
    }

    fn open_in(wanted: &Wanted, folders: &[PathBuf]) -> std::result::Result<Self, Missing> {
        // Folders first: a library of an environment that was chosen beats one that happens to be installed.
        for folder in folders {
            for name in wanted.names {
                let path = folder.join(name);
                if let Some(found) = path.is_file().then(|| Self::at(path.as_os_str())).flatten() {
                    return Ok(found);
                }
            }
        }
        if let Some(found) = wanted.names.iter().find_map(|name| Self::at(OsStr::new(name))) {
            return Ok(found);
        }
        let mut places = vec!["the loader's path".to_owned()];
        places.extend(folders.iter().map(|folder| folder.display().to_string()));
        let names = wanted.names.iter().map(|&name| name.to_owned()).collect();
        Err(Missing { what: wanted.what, names, places })
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

    /// The folder of headers beside the library's folder, where there is one.
    pub(crate) fn headers(&self) -> Option<PathBuf> {
        let folder = self.path.parent()?.parent()?.join("include");
        folder.is_dir().then_some(folder)
    }
}

/// Declares a table of foreign functions, each with its name at both vendors, or at the one that has it. All return a
/// status.
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
            /// Opens a library, which stays open, and finds all functions in it.
            pub(crate) fn open(wanted: &crate::library::Wanted) -> crate::error::Result<Self> {
                Self::load(&crate::library::Library::open(wanted)?, wanted.vendor)
            }

            /// Finds all functions in a library.
            pub(crate) fn load(
                library: &crate::library::Library,
                vendor: crate::library::Vendor,
            ) -> crate::error::Result<Self> {
                use crate::library::Vendor;
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

    const NONE: Wanted = Wanted {
        what: "library of nobody",
        names: &["libnobody_has_this.so.1", "libnobody_has_this.so"],
        vendor: Vendor::Cuda,
        driver: false,
    };

    #[test]
    fn a_missing_library_says_what_was_tried() {
        let missing = Library::open_in(&NONE, &[PathBuf::from("/nowhere/lib")]).err().unwrap();
        assert_eq!(
            missing.to_string(),
            "no library of nobody here: tried libnobody_has_this.so.1, libnobody_has_this.so in the loader's path, \
             /nowhere/lib"
        );
    }

    #[test]
    fn a_file_that_is_no_library_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("libnobody_has_this.so"), "text").unwrap();
        assert!(Library::open_in(&NONE, &[folder.path().to_owned()]).is_err());
    }

    #[test]
    fn a_function_that_is_not_there_is_named() {
        let libm = Wanted { names: &["libm.so.6"], ..NONE };
        let library = Library::open_in(&libm, &[]).unwrap();
        // SAFETY: the function is never called.
        let found = unsafe { library.function::<extern "C" fn()>("no_such_function") };
        assert!(found.err().unwrap().to_string().contains("no_such_function"));
        // SAFETY: as above.
        assert!(unsafe { library.function::<extern "C" fn(f64) -> f64>("cos") }.is_ok());
    }
}
