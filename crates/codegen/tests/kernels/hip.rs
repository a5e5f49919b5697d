//! Clang, where it is found: it compiles the HIP dialect for AMD's devices without ROCm.

use std::process::Command;

use warpforge_codegen::{Dialect, Kernel, unit};

/// The devices that the dialect is for.
const DEVICES: [&str; 4] = ["gfx90a", "gfx942", "gfx1100", "gfx1201"];

/// The newest clang that is found.
fn clang() -> Option<String> {
    let names = std::env::var("CLANG")
        .ok()
        .into_iter()
        .chain((14..=22).rev().map(|version| format!("clang-{version}")));
    let works = |name: &String| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    names.chain(["clang".to_owned()]).find(works)
}

/// Compiles kernels for the devices that clang knows; says which it did not, or that there is no clang.
pub(crate) fn compiles<'k>(kernels: impl IntoIterator<Item = &'k Kernel>) {
    let Some(clang) = clang() else {
        eprintln!("skipped: there is no clang to compile the HIP dialect with");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("kernels.hip");
    std::fs::write(&source, unit(Dialect::Hip, kernels)).unwrap();
    for device in DEVICES {
        let output = Command::new(&clang)
            .args([
                "-x",
                "hip",
                "--cuda-device-only",
                "-nogpulib",
                "-nogpuinc",
                "-std=c++17",
                "-O1",
                "-S",
                "-o",
                "-",
            ])
            .arg(format!("--offload-arch={device}"))
            .arg(&source)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("invalid target ID") || said.contains("unsupported CUDA gpu architecture") {
            eprintln!("skipped: {clang} does not know {device}");
            continue;
        }
        assert!(output.status.success(), "{device}: {said}\n{}", std::fs::read_to_string(&source).unwrap());
    }
}
