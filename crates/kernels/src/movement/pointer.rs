//! Pointers that the threads of a pool share.

/// A pointer that may go to other threads. Whoever makes one sees to it that pieces do not write what others touch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared<P>(P);

// SAFETY: a pointer is a number; what makes an access sound is the business of the block that does it.
unsafe impl<P> Send for Shared<P> {}
// SAFETY: as above.
unsafe impl<P> Sync for Shared<P> {}

impl<P: Copy> Shared<P> {
    pub(crate) fn new(pointer: P) -> Self {
        Self(pointer)
    }

    /// The pointer. A method, so that closures capture the wrapper and not the pointer.
    pub(crate) fn get(self) -> P {
        self.0
    }
}
