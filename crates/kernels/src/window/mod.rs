//! Window operations: `reduce_window` (pooling), its gradient, depthwise convolution, and cumulative reductions.
//!
//! As in [`data_movement`](crate::data_movement), an operation is planned once and run on many buffers. Arrays are
//! row-major. Trailing dimensions that windows do not span, such as the channels of an image, are the lanes of the
//! inner loops; where there are none, the windows of a row are.

// Buffers are pointers, because the threads of a pool share them.
#![allow(unsafe_code)]

mod axis;
mod cumulative;
mod depthwise;
mod depthwise_kernel;
mod phases;
mod reduce_window;
mod run_selection;
mod select_and_scatter;
mod selection;
#[cfg(test)]
mod tests;

pub use axis::WindowAxis;
pub use cumulative::Cumulative;
pub use depthwise::Depthwise;
pub use reduce_window::ReduceWindow;
pub use select_and_scatter::SelectAndScatter;
