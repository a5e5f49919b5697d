//! The backends that exist.

use std::sync::{Arc, LazyLock};

use warpforge_backend_cpu::Cpu;
use warpforge_runtime::{Backend, Reference};

/// All backends. A new one is a line here.
#[must_use]
pub fn backends() -> &'static [Arc<dyn Backend>] {
    static ALL: LazyLock<Vec<Arc<dyn Backend>>> =
        LazyLock::new(|| vec![Arc::new(Cpu::default()), Arc::new(Reference)]);
    &ALL
}
