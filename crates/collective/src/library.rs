//! Libraries of engines, opened at run time by one of several names.

// Loads foreign libraries.
#![allow(unsafe_code)]

use std::error::Error as _;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

/// The first of these that can be opened; else the names with the loader's reasons.
pub(crate) fn open(names: &[&str]) -> Result<Library, String> {
    let mut reasons = Vec::new();
    for name in names {
        // Plug-ins of these libraries find functions among the global ones.
        // SAFETY: loading runs the library's initialisers, which for MPI and UCC have no requirements.
        match unsafe { Library::open(Some(*name), RTLD_NOW | RTLD_GLOBAL) } {
            Ok(found) => return Ok(found),
            Err(error) => {
                let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                reasons.push(format!("{name} ({reason})"));
            }
        }
    }
    Err(reasons.join(", "))
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_names_that_were_tried_are_listed() {
        let said = super::open(&["libwarpforge-none.so.1", "libwarpforge-none.so"]).err().unwrap();
        assert!(
            said.contains("libwarpforge-none.so.1 (") && said.contains("libwarpforge-none.so ("),
            "{said}"
        );
        assert!(said.contains("No such file"), "{said}");
    }
}
