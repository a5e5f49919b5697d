//! The frame of a call: pointers and row strides of streams, and per-row scalars.

use super::abi::STREAMS;

/// Bytes from the frame's start to the distances of rows.
pub(super) const STRIDES: usize = 8 * STREAMS.len();

/// Bytes from the frame's start to the per-row scalars.
pub(super) const SCALARS: usize = 2 * STRIDES;

/// Maximum per-row scalars.
pub(super) const MAX_SCALARS: usize = 48;

/// The memory of one call.
#[repr(C)]
pub(super) struct Frame {
    pub(super) streams: [*mut u8; STREAMS.len()],
    pub(super) strides: [isize; STREAMS.len()],
    scalars: [std::mem::MaybeUninit<f32>; MAX_SCALARS],
}

impl Frame {
    pub(super) fn new() -> Self {
        Self {
            streams: [std::ptr::null_mut(); STREAMS.len()],
            strides: [0; STREAMS.len()],
            scalars: [std::mem::MaybeUninit::uninit(); MAX_SCALARS],
        }
    }
}

/// The compiled function: computes `rows` rows of `columns` columns. It writes only the scalars of the frame and the
/// streams.
pub(super) type EntryPoint = unsafe extern "sysv64" fn(frame: *mut Frame, rows: usize, columns: usize);
