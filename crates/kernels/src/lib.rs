//! CPU kernels on raw buffers. They know neither graphs nor memory plans.
//!
//! The instruction set is selected at run time: see [`isa`]. Work is partitioned into tasks for the threads of a
//! [`pool::Pool`]; the number and bounds of tasks depend on the problem alone, so results are bit-identical for any
//! number of threads.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod amx;
pub mod buffer;
pub mod conv;
pub mod data_movement;
mod dispatch;
mod extremes;
pub mod fused_loop;
pub mod gemm;
pub mod isa;
pub mod lane_function;
mod math;
pub mod output_block;
pub mod pool;
mod prefetch;
pub mod reduce;
pub mod regions;
pub mod resample;
pub mod shared_ptr;
pub mod statistics;
pub mod task_timing;
#[cfg(test)]
mod testing;
pub mod window;
