//! Pointers that the threads of a pool share.

// The wrapper asserts that its pointer may be shared.
#![allow(unsafe_code)]

/// A pointer that may be sent to other threads. The creator makes sure that tasks do not write what others access.
#[derive(Debug, Clone, Copy)]
pub struct SharedPtr<P>(P);

// SAFETY: sending a pointer is sound; the block that dereferences it is responsible for the access.
unsafe impl<P> Send for SharedPtr<P> {}
// SAFETY: as above.
unsafe impl<P> Sync for SharedPtr<P> {}

impl<P: Copy> SharedPtr<P> {
    /// Wraps a pointer.
    #[must_use]
    pub fn new(pointer: P) -> Self {
        Self(pointer)
    }

    /// The pointer. A method, so that closures capture the wrapper and not the pointer.
    #[must_use]
    pub fn get(self) -> P {
        self.0
    }
}
