//! Compiles kernel sources with the vendor's run-time compiler, with an on-disk cache.

mod cache;

use std::ffi::{CString, c_char};
use std::sync::{Arc, OnceLock};

use self::cache::kernels;
use super::functions::Handle;
use super::properties::Properties;
use crate::disk_cache;
use crate::error::{GpuError, Result};
use crate::library::{Library, functions};
use crate::vendor::Vendor;
use crate::{cuda, hip};

functions! {
    /// NVRTC and hiprtc.
    Functions {
        version(*mut i32, *mut i32) = "nvrtcVersion", "hiprtcVersion";
        create(*mut Handle, *const c_char, *const c_char, i32, *const *const c_char, *const *const c_char)
            = "nvrtcCreateProgram", "hiprtcCreateProgram";
        compile(Handle, i32, *const *const c_char) = "nvrtcCompileProgram", "hiprtcCompileProgram";
        code_size(Handle, *mut usize) = "nvrtcGetCUBINSize", "hiprtcGetCodeSize";
        code(Handle, *mut c_char) = "nvrtcGetCUBIN", "hiprtcGetCode";
        log_size(Handle, *mut usize) = "nvrtcGetProgramLogSize", "hiprtcGetProgramLogSize";
        log(Handle, *mut c_char) = "nvrtcGetProgramLog", "hiprtcGetProgramLog";
        destroy(*mut Handle) = "nvrtcDestroyProgram", "hiprtcDestroyProgram";
    }
}

/// A vendor's compiler.
pub(crate) struct Compiler {
    vendor: Vendor,
    functions: Functions,
    version: (i32, i32),
    headers: Option<String>,
}

impl Compiler {
    /// The compiler of a vendor, opened once per process.
    ///
    /// # Errors
    ///
    /// When it is not installed.
    pub(crate) fn of(vendor: Vendor) -> Result<Arc<Self>> {
        static CUDA: OnceLock<Result<Arc<Compiler>>> = OnceLock::new();
        static HIP: OnceLock<Result<Arc<Compiler>>> = OnceLock::new();
        let (kept, spec) = match vendor {
            Vendor::Cuda => (&CUDA, &cuda::COMPILER),
            Vendor::Hip => (&HIP, &hip::COMPILER),
        };
        let open = || {
            let headers = Library::open(spec)?.headers().map(|folder| folder.display().to_string());
            Self::new(vendor, Functions::open(spec)?, headers).map(Arc::new)
        };
        kept.get_or_init(open).clone()
    }

    /// Wraps loaded functions.
    pub(crate) fn new(vendor: Vendor, functions: Functions, headers: Option<String>) -> Result<Self> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the addresses are those of variables.
        check(unsafe { (functions.version)(&raw mut major, &raw mut minor) }, "version")?;
        Ok(Self { vendor, functions, version: (major, minor), headers })
    }

    /// The options for a device.
    fn options(&self, properties: &Properties) -> Vec<String> {
        let (major, minor) = properties.capability;
        let mut options = vec!["--std=c++17".to_owned()];
        if self.vendor == Vendor::Cuda {
            // From Hopper on, some instructions need the architecture-specific target.
            let letter = if major >= 9 { "a" } else { "" };
            options.push(format!("--gpu-architecture=sm_{major}{minor}{letter}"));
            options.push("-default-device".to_owned());
            options.extend(self.headers.as_ref().map(|folder| format!("--include-path={folder}")));
        }
        options
    }

    /// Machine code for a device, cached or compiled.
    ///
    /// # Errors
    ///
    /// When compilation fails; source and log are kept.
    pub(crate) fn compile(&self, name: &str, source: &str, properties: &Properties) -> Result<Vec<u8>> {
        let options = self.options(properties);
        let stamp = format!("{} {:?} {} {:?}", self.vendor.name(), self.version, properties.name, options);
        let key = disk_cache::key(&[&stamp, source]);
        let kernels = kernels();
        if let Some(code) = kernels.load(&key) {
            return Ok(code);
        }
        match self.compile_now(name, source, &options)? {
            Ok(code) => {
                kernels.keep(&key, &code);
                Ok(code)
            }
            Err(log) => {
                let (source_file, log_file) = cache::keep_failure(&key, source, &log);
                let complaint =
                    log.lines().find(|line| line.contains("error")).or_else(|| log.lines().next());
                let first = complaint.unwrap_or("the compiler says nothing").to_owned();
                Err(GpuError::Compile { name: name.to_owned(), first, source_file, log_file })
            }
        }
    }

    /// The machine code, or the compiler log.
    fn compile_now(
        &self,
        name: &str,
        source: &str,
        options: &[String],
    ) -> Result<std::result::Result<Vec<u8>, String>> {
        let text = |text: &str| {
            CString::new(text).map_err(|_| GpuError::Other("a source has a zero byte in it".to_owned()))
        };
        let (source, name) = (text(source)?, text(&format!("{name}.cu"))?);
        let options = options.iter().map(|option| text(option)).collect::<Result<Vec<_>>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = i32::try_from(pointers.len()).unwrap_or(0);
        let functions = &self.functions;
        let mut program: Handle = std::ptr::null_mut();
        // SAFETY: texts end in zero; the addresses are those of variables; buffers have the sizes asked for first.
        unsafe {
            let none = std::ptr::null();
            check(
                (functions.create)(&raw mut program, source.as_ptr(), name.as_ptr(), 0, none, none),
                "create program",
            )?;
            let compiled = (functions.compile)(program, count, pointers.as_ptr());
            let read = |size: unsafe extern "C" fn(Handle, *mut usize) -> i32,
                        get: unsafe extern "C" fn(Handle, *mut c_char) -> i32|
             -> Result<Vec<u8>> {
                let mut bytes = 0;
                check(size(program, &raw mut bytes), "size of what the compiler gives")?;
                let mut data = vec![0u8; bytes];
                check(get(program, data.as_mut_ptr().cast()), "what the compiler gives")?;
                Ok(data)
            };
            let outcome = if compiled == 0 {
                read(functions.code_size, functions.code).map(Ok)
            } else {
                let log = read(functions.log_size, functions.log).unwrap_or_default();
                let log = String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned();
                Ok(Err(if log.is_empty() { format!("the compiler answers {compiled}") } else { log }))
            };
            (functions.destroy)(&raw mut program);
            outcome
        }
    }
}

fn check(code: i32, function: &'static str) -> Result<()> {
    GpuError::of_status(code, function, &[], "the run-time compiler gives no further information")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hopper() -> Properties {
        Properties {
            name: "test".to_owned(),
            guid: None,
            capability: (9, 0),
            multiprocessors: 132,
            shared_bytes: 232_448,
        }
    }

    #[test]
    fn sources_compile_and_errors_are_logged() {
        let compiler = match Compiler::of(Vendor::Cuda) {
            Ok(compiler) => compiler,
            Err(reason) => {
                eprintln!("skipped: {reason}");
                return;
            }
        };
        let options = compiler.options(&hopper());
        let good = "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }";
        let code = compiler.compile_now("twice", good, &options).unwrap().unwrap();
        assert_eq!(&code[..4], b"\x7fELF");
        let log = compiler.compile_now("bad", "void f() { nobody_knows(); }", &options).unwrap().unwrap_err();
        assert!(log.contains("nobody_knows"), "{log}");
    }
}
