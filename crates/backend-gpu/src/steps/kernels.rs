//! The generated kernels of a program, each compiled and loaded once.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use warpforge_codegen::{Dialect, Kernel, unit};

use crate::driver::{Function, Gpu, Module};
use crate::error::{GpuError, Result};
use crate::vendor::Vendor;

/// The dialect of a vendor.
pub(crate) fn dialect(vendor: Vendor) -> Dialect {
    match vendor {
        Vendor::Cuda => Dialect::Cuda,
        Vendor::Hip => Dialect::Hip,
    }
}

/// Loaded kernels, by name.
pub(crate) struct LoadedKernels {
    functions: HashMap<String, Function>,
}

impl LoadedKernels {
    /// Compiles and loads kernels in parallel.
    ///
    /// # Errors
    ///
    /// When one does not compile, or there is no compiler.
    pub(crate) fn new<'k>(gpu: &Arc<Gpu>, all: impl Iterator<Item = &'k Kernel>) -> Result<Self> {
        let mut different: HashMap<&str, &Kernel> = HashMap::new();
        for kernel in all {
            different.entry(&kernel.name).or_insert(kernel);
        }
        if different.is_empty() {
            return Ok(Self { functions: HashMap::new() });
        }
        let vendor = gpu.driver.vendor;
        let compiler = gpu.compiler()?;
        let wanted: Vec<&Kernel> = different.into_values().collect();
        let (next, made) = (AtomicUsize::new(0), Mutex::new(HashMap::new()));
        let failure: Mutex<Option<GpuError>> = Mutex::new(None);
        let work = || {
            while let Some(kernel) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                let source = unit(dialect(vendor), [*kernel]);
                let loaded = compiler
                    .compile(&kernel.name, &source, &gpu.properties)
                    .and_then(|code| Module::load(gpu, &code))
                    .and_then(|module| module.function(&kernel.name, kernel.shared_bytes));
                match loaded {
                    Ok(function) => {
                        made.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .insert(kernel.name.clone(), function);
                    }
                    Err(error) => {
                        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        return;
                    }
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(wanted.len());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(Self { functions: made.into_inner().unwrap_or_else(PoisonError::into_inner) }),
        }
    }

    /// A loaded kernel.
    pub(crate) fn function(&self, kernel: &Kernel) -> Result<Function> {
        let found = self.functions.get(&kernel.name).cloned();
        found.ok_or_else(|| GpuError::Other(format!("{} was not compiled", kernel.name)))
    }
}
