//! Scratch memory of workers.

// Pointers are kept between the instructions of one call.
#![allow(unsafe_code)]

use std::cell::RefCell;

thread_local! {
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch::new()) };
}

/// Calls a function with the scratch memory of the calling thread.
pub(super) fn with_scratch<R>(f: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with_borrow_mut(f)
}

/// A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// The location of a value during a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub(super) data: *const u8,
    /// Bytes from one row to the next, of values that vary with both rows and columns.
    pub(super) row_stride: isize,
}

/// Scratch memory of one worker; it grows as needed and can be reused for any number of calls.
#[derive(Default)]
pub struct Scratch {
    lines: Vec<Line>,
    views: Vec<View>,
}

// SAFETY: the addresses are written before they are read in each call; none is kept from one call to the next.
unsafe impl Send for Scratch {}

impl Scratch {
    /// No memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { lines: Vec::new(), views: Vec::new() }
    }

    /// `bytes` uninitialized bytes, and a view for each of `values` values.
    pub(super) fn parts(&mut self, bytes: usize, values: usize) -> (*mut u8, &mut [View]) {
        let lines = bytes.div_ceil(size_of::<Line>());
        if self.lines.len() < lines {
            self.lines.resize(lines, Line([0; 64]));
        }
        if self.views.len() < values {
            self.views.resize(values, View { data: std::ptr::null(), row_stride: 0 });
        }
        (self.lines.as_mut_ptr().cast(), &mut self.views[..values])
    }
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch")
            .field("bytes", &(self.lines.len() * size_of::<Line>()))
            .finish_non_exhaustive()
    }
}
