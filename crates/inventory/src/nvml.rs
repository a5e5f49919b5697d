//! NVIDIA's management library, opened at run time once a process.

use std::sync::OnceLock;

use nvml_wrapper::Nvml;

/// The library, or why it cannot be used here.
pub(crate) fn nvml() -> Result<&'static Nvml, String> {
    static NVML: OnceLock<Result<Nvml, String>> = OnceLock::new();
    NVML.get_or_init(open).as_ref().map_err(Clone::clone)
}

fn open() -> Result<Nvml, String> {
    let names = ["libnvidia-ml.so.1", "libnvidia-ml.so"];
    let mut tried = Vec::new();
    for name in names {
        match Nvml::builder().lib_path(name.as_ref()).init() {
            Ok(nvml) => return Ok(nvml),
            Err(error) => tried.push(format!("{name}: {error}")),
        }
    }
    Err(tried.join("; "))
}
