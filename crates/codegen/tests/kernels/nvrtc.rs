//! NVRTC, which compiles for a device without having one.

// A foreign library is called.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr;

use libloading::{Library, Symbol};
use warpforge_codegen::{Dialect, Kernel, unit};

use crate::tool::{Tool, is_current};

type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Text = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;

/// Candidate paths of the library: the loader's search path, CUDA_HOME, a Python environment.
fn candidates() -> Vec<PathBuf> {
    let names = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
    let mut folders = vec![PathBuf::new()];
    if let Some(home) = std::env::var_os("CUDA_HOME") {
        folders.push(PathBuf::from(home).join("lib64"));
    }
    if let Some(environment) = std::env::var_os("VIRTUAL_ENV") {
        let inside = |folder: PathBuf| {
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
        };
        for python in inside(PathBuf::from(environment).join("lib")) {
            folders.extend(inside(python.join("site-packages/nvidia")).map(|package| package.join("lib")));
        }
    }
    folders.iter().flat_map(|folder| names.map(|name| folder.join(name))).collect()
}

fn library() -> Option<Library> {
    // SAFETY: NVIDIA's library does nothing when it is opened but prepare itself.
    candidates().into_iter().find_map(|path| unsafe { Library::new(path) }.ok())
}

/// Why kernels cannot be compiled by NVRTC.
pub(crate) fn missing() -> Option<String> {
    let reason = "NVRTC is not in the loader's search path, CUDA_HOME or VIRTUAL_ENV";
    library().is_none().then(|| reason.to_owned())
}

/// Compiles kernels for sm_90a, in the trial for it.
pub(crate) fn compiles<'k>(kernels: impl IntoIterator<Item = &'k Kernel>) {
    if !is_current(Tool::Nvrtc) {
        return;
    }
    let source = unit(Dialect::Cuda, kernels);
    let library = library().expect("trials without NVRTC are ignored");
    if let Err(log) = compile(&library, &source, "sm_90a") {
        panic!("{log}\n{source}");
    }
}

/// Compiles a source; the log on failure.
pub(crate) fn compile(library: &Library, source: &str, architecture: &str) -> Result<(), String> {
    let text = CString::new(source).unwrap();
    let architecture = CString::new(format!("--gpu-architecture={architecture}")).unwrap();
    // SAFETY: the signatures are those of nvrtc.h, and all pointers live through the calls.
    unsafe {
        let create: Symbol<'_, Create> = library.get(b"nvrtcCreateProgram\0").unwrap();
        let compile: Symbol<'_, Compile> = library.get(b"nvrtcCompileProgram\0").unwrap();
        let log_size: Symbol<'_, Size> = library.get(b"nvrtcGetProgramLogSize\0").unwrap();
        let log: Symbol<'_, Text> = library.get(b"nvrtcGetProgramLog\0").unwrap();
        let destroy: Symbol<'_, Destroy> = library.get(b"nvrtcDestroyProgram\0").unwrap();
        let mut program = ptr::null_mut();
        assert_eq!(
            create(&raw mut program, text.as_ptr(), c"kernels.cu".as_ptr(), 0, ptr::null(), ptr::null()),
            0
        );
        let options = [architecture.as_ptr(), c"--std=c++17".as_ptr(), c"-default-device".as_ptr()];
        let outcome = compile(program, options.len() as c_int, options.as_ptr());
        let mut length = 0;
        log_size(program, &raw mut length);
        let mut said = vec![0u8; length.max(1)];
        log(program, said.as_mut_ptr().cast());
        destroy(&raw mut program);
        if outcome == 0 {
            return Ok(());
        }
        Err(CStr::from_bytes_until_nul(&said)
            .map_or_else(|_| String::new(), |log| log.to_string_lossy().into_owned()))
    }
}
