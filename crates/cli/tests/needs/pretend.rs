//! A GPU that only pretends: a driver and a compiler of kernels that run them on the host, built with the machine's C++
//! compiler. The program itself cannot tell.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::warpt::{Finished, Warpt, finished};

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

/// The folder of the libraries, or why there are none.
fn libraries() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(build).as_deref().map_err(Clone::clone)
}

fn build() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pretend");
    let folder = root.join("lib64");
    std::fs::create_dir_all(&folder).unwrap();
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let host = format!("-DPRETEND_HOST=\"{TESTS}/../../codegen/tests/kernels/host.h\"");
    for (name, source) in [("libcuda.so.1", "driver.cpp"), ("libnvrtc.so.12", "compiler.cpp")] {
        let made = folder.join(format!("{name}.{}", std::process::id()));
        let built = Command::new(&compiler)
            .args(["-std=c++17", "-O1", "-fPIC", "-shared", &host, "-o"])
            .args([&made, &Path::new(TESTS).join("pretend").join(source)])
            .arg("-ldl")
            .output()
            .map_err(|error| format!("there is no C++ compiler {compiler}: {error}"))?;
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        // Another process of these tests may be at the same.
        std::fs::rename(made, folder.join(name)).unwrap();
    }
    Ok(root)
}

/// Why no GPU can be pretended here.
pub(crate) fn missing() -> Option<String> {
    libraries().err()
}

/// Runs the program with the pretended GPU.
pub(crate) fn run(warpt: &Warpt, arguments: &[&str], variables: &[(&str, &str)]) -> Finished {
    let root = libraries().expect("the test is ignored without it");
    let mut command = warpt.command(arguments);
    command.env("LD_LIBRARY_PATH", root.join("lib64")).env("CUDA_HOME", root);
    command.env("PRETEND_FOLDER", warpt.path("cache")).envs(variables.iter().copied());
    finished(command.output().unwrap())
}
