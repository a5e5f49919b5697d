//! Memory of values outside the block of a run: tensors that kernels read and write, and buffers that become tensors.

// Kernels take addresses; a buffer that a kernel has written becomes a tensor.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, Weak};

use warpforge_kernels::buffer::AlignedBuffer;
use warpforge_tensor::Tensor;

/// Alignment of every value: a cache line.
pub(crate) const LINE: usize = 64;

/// Free buffers, by size.
pub(crate) type SpareBuffers = Mutex<HashMap<usize, Vec<AlignedBuffer>>>;

/// A cache line to read from.
#[repr(align(64))]
struct Line([u8; LINE]);

/// Data of empty tensors: a loop over rows without columns may still form an address of an element.
static NOTHING: Line = Line([0; LINE]);

/// The address of a tensor; readable even if the tensor is empty.
pub(crate) fn readable(tensor: &Tensor) -> *const u8 {
    match tensor.bytes() {
        [] => NOTHING.0.as_ptr(),
        bytes => bytes.as_ptr(),
    }
}

/// The address of a value of the state, which nobody else shares.
pub(crate) fn writable(tensor: &mut Tensor) -> *mut u8 {
    match tensor.bytes_mut() {
        // Nothing is written to an empty value.
        [] => NOTHING.0.as_ptr().cast_mut(),
        bytes => bytes.as_mut_ptr(),
    }
}

/// A buffer that a kernel has written. It returns to the free buffers when the last tensor that shares it is dropped.
pub(crate) struct WrittenBuffer {
    block: Option<AlignedBuffer>,
    bytes: usize,
    home: Weak<SpareBuffers>,
}

impl WrittenBuffer {
    /// # Safety
    ///
    /// The buffer has so many bytes, and all of them are written.
    pub(crate) unsafe fn new(block: AlignedBuffer, bytes: usize, home: Weak<SpareBuffers>) -> Self {
        Self { block: Some(block), bytes, home }
    }
}

impl AsRef<[u8]> for WrittenBuffer {
    fn as_ref(&self) -> &[u8] {
        match &self.block {
            // SAFETY: `new` asks for it.
            Some(block) => unsafe { std::slice::from_raw_parts(block.as_ptr(), self.bytes) },
            None => &[],
        }
    }
}

impl Drop for WrittenBuffer {
    fn drop(&mut self) {
        if let (Some(home), Some(block)) = (self.home.upgrade(), self.block.take()) {
            home.lock().unwrap_or_else(PoisonError::into_inner).entry(self.bytes).or_default().push(block);
        }
    }
}
