//! Emitted kernels: they give on the host what the reference gives, and the compilers of both dialects take them.

mod attention;
mod attention_gradient;
mod case;
mod gemm;
mod hip;
mod host;
mod loops;
mod nvrtc;
mod opaque;
mod peak;
mod rows;
mod unfused;
