//! Memory: streaming kernels and pointer chases over buffers of any size.
