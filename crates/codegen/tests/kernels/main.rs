//! Emitted kernels: they give on the host what the reference gives, and the compilers of both dialects take them.

mod attention;
mod backward;
mod case;
mod hip;
mod host;
mod loops;
mod nvrtc;
mod part;
mod peak;
mod products;
mod rows;
mod single;
