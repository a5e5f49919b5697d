//! The backends that exist.

use std::sync::{Arc, LazyLock};

use warpforge_backend_cpu::Cpu;
use warpforge_backend_gpu::{Gpus, Vendor};
use warpforge_runtime::{Backend, Reference};

/// All backends. A new one is a line here.
#[must_use]
pub fn backends() -> &'static [Arc<dyn Backend>] {
    static ALL: LazyLock<Vec<Arc<dyn Backend>>> = LazyLock::new(|| {
        let gpus = |vendor| Arc::new(Gpus::new(vendor)) as Arc<dyn Backend>;
        vec![Arc::new(Cpu::default()), gpus(Vendor::Cuda), gpus(Vendor::Hip), Arc::new(Reference)]
    });
    &ALL
}
