//! Emitted kernels: they give on the host what the reference gives, and the compilers of both dialects take them.

mod case;
mod host;
mod loops;
mod nvrtc;
