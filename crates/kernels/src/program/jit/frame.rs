//! What a call of the code gets and keeps: where streams are and how far apart their rows lie, and numbers of the row that
//! is computed.

use super::emit::STREAMS;

/// Bytes from the frame's start to the distances of rows.
pub(super) const STRIDES: usize = 8 * STREAMS.len();

/// Bytes from the frame's start to the numbers of the row.
pub(super) const SCALARS: usize = 2 * STRIDES;

/// Most numbers of a row.
pub(super) const MOST_SCALARS: usize = 48;

/// The memory of one call.
#[repr(C)]
pub(super) struct Frame {
    pub(super) streams: [*mut u8; STREAMS.len()],
    pub(super) strides: [isize; STREAMS.len()],
    scalars: [std::mem::MaybeUninit<f32>; MOST_SCALARS],
}

impl Frame {
    pub(super) fn new() -> Self {
        Self {
            streams: [std::ptr::null_mut(); STREAMS.len()],
            strides: [0; STREAMS.len()],
            scalars: [std::mem::MaybeUninit::uninit(); MOST_SCALARS],
        }
    }
}

/// The code: computes so many rows of so many columns. It changes nothing but the frame's numbers and what is written to
/// streams.
pub(super) type Function = unsafe extern "sysv64" fn(frame: *mut Frame, rows: usize, columns: usize);
