//! Clang, which compiles the HIP dialect for AMD devices without ROCm.

use std::process::{Command, Output};

use warpforge_codegen::{Dialect, Kernel, unit};

use crate::tool::{Tool, is_current};

/// The devices that the dialect is for.
pub(crate) const DEVICES: [&str; 4] = ["gfx90a", "gfx942", "gfx1100", "gfx1201"];

/// The newest clang on this machine.
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

/// Why kernels cannot be compiled for a device.
pub(crate) fn missing(device: &str) -> Option<String> {
    let Some(clang) = clang() else { return Some("there is no clang".to_owned()) };
    let (output, _) = compile(&clang, device, "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then(|| format!("{clang} does not compile for {device}: {said}"))
}

/// Compiles kernels for each device, in the trial for it.
pub(crate) fn compiles<'k>(kernels: impl IntoIterator<Item = &'k Kernel>) {
    let source = unit(Dialect::Hip, kernels);
    for device in DEVICES.into_iter().filter(|device| is_current(Tool::Clang(device))) {
        let clang = clang().expect("trials without clang are ignored");
        let (output, source) = compile(&clang, device, &source);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{device}: {said}\n{source}");
    }
}

fn compile(clang: &str, device: &str, text: &str) -> (Output, String) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("kernels.hip");
    std::fs::write(&source, text).unwrap();
    let flags = ["--cuda-device-only", "-nogpulib", "-nogpuinc", "-std=c++17", "-O1", "-S", "-o", "-"];
    let output = Command::new(clang)
        .args(["-x", "hip"])
        .args(flags)
        .arg(format!("--offload-arch={device}"))
        .arg(&source)
        .output()
        .unwrap();
    (output, text.to_owned())
}
