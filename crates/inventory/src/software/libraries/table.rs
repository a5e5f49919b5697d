//! The libraries that are looked for.

/// A library and where its version stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// The name shown.
    pub(super) name: &'static str,
    /// The file's name up to `.so`.
    pub(super) stem: &'static str,
    /// Whether the version behind `.so` is the release; for the others it is only the ABI version.
    pub(super) release_in_file: bool,
    /// The name of its pkg-config file or CMake package.
    pub(super) config: Option<&'static str>,
    /// The name of NVIDIA's Python package of it, between `nvidia-` and `-cu12`.
    pub(super) wheel: Option<&'static str>,
    /// How the names of Debian's packages of it begin.
    pub(super) debian: Option<&'static str>,
}

const fn released(name: &'static str, stem: &'static str) -> Known {
    Known { name, stem, release_in_file: true, config: None, wheel: None, debian: None }
}

const fn nvidia(name: &'static str, stem: &'static str, wheel: &'static str) -> Known {
    Known { wheel: Some(wheel), ..released(name, stem) }
}

const fn configured(
    name: &'static str,
    stem: &'static str,
    config: &'static str,
    debian: Option<&'static str>,
) -> Known {
    Known { name, stem, release_in_file: false, config: Some(config), wheel: None, debian }
}

/// The libraries, in the order shown: NVIDIA's, AMD's, CPU arithmetic, communication, other runtimes.
pub(super) const LIBRARIES: &[Known] = &[
    nvidia("CUDA runtime", "libcudart", "cuda-runtime"),
    nvidia("NVRTC", "libnvrtc", "cuda-nvrtc"),
    nvidia("cuBLAS", "libcublas", "cublas"),
    nvidia("cuDNN", "libcudnn", "cudnn"),
    nvidia("cuFFT", "libcufft", "cufft"),
    nvidia("cuSPARSE", "libcusparse", "cusparse"),
    nvidia("cuSPARSELt", "libcusparseLt", "cusparselt"),
    nvidia("cuSOLVER", "libcusolver", "cusolver"),
    released("cuTENSOR", "libcutensor"),
    nvidia("NCCL", "libnccl", "nccl"),
    nvidia("NVSHMEM", "libnvshmem_host", "nvshmem"),
    released("TensorRT", "libnvinfer"),
    configured("HIP runtime", "libamdhip64", "hip", Some("libamdhip64")),
    configured("rocBLAS", "librocblas", "rocblas", None),
    configured("hipBLAS", "libhipblas", "hipblas", None),
    configured("hipBLASLt", "libhipblaslt", "hipblaslt", None),
    configured("rocFFT", "librocfft", "rocfft", None),
    configured("rocSPARSE", "librocsparse", "rocsparse", None),
    configured("MIOpen", "libMIOpen", "miopen", None),
    configured("MIGraphX", "libmigraphx", "migraphx", None),
    configured("RCCL", "librccl", "rccl", None),
    configured("oneDNN", "libdnnl", "dnnl", Some("libdnnl")),
    configured("oneMKL", "libmkl_rt", "mkl", Some("libmkl-rt")),
    configured("oneCCL", "libccl", "oneCCL", None),
    configured("OpenBLAS", "libopenblas", "openblas", Some("libopenblas0")),
    configured("BLIS", "libblis", "blis", Some("libblis")),
    configured("FFTW", "libfftw3", "fftw3", Some("libfftw3-double")),
    configured("Open MPI", "libopen-rte", "ompi", Some("libopenmpi")),
    configured("Open MPI", "libopen-pal", "ompi", Some("libopenmpi")),
    configured("MPICH", "libmpich", "mpich", Some("libmpich")),
    configured("UCX", "libucp", "ucx", Some("libucx")),
    configured("UCC", "libucc", "ucc", Some("libucc")),
    configured("libfabric", "libfabric", "libfabric", Some("libfabric")),
    configured("TBB", "libtbb", "tbb", Some("libtbb1")),
    released("ONNX Runtime", "libonnxruntime"),
    released("Vulkan loader", "libvulkan"),
    configured("OpenCL loader", "libOpenCL", "OpenCL", Some("ocl-icd-libopencl1")),
    released("Level Zero loader", "libze_loader"),
];
