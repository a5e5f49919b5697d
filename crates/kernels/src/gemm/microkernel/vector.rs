//! The vector operations of a micro-kernel.

/// A SIMD vector.
///
/// # Safety
///
/// All functions of an implementation may be called only where its instruction set is available, and must be inlined
/// into a function that enables them.
pub(super) unsafe trait Vector: Copy {
    /// The type of the elements.
    type Element: Copy;
    /// How many there are.
    const LANES: usize;

    /// All zero.
    unsafe fn zero() -> Self;
    /// The element at the address, in all lanes.
    unsafe fn splat(from: *const Self::Element) -> Self;
    /// As many elements as there are lanes.
    unsafe fn load(from: *const Self::Element) -> Self;
    /// The first `count` elements, which are not all; the rest is zero.
    unsafe fn load_part(from: *const Self::Element, count: usize) -> Self;
    /// `self · other + sum`.
    unsafe fn multiply_add(self, other: Self, sum: Self) -> Self;
    /// Writes all elements.
    unsafe fn store(self, to: *mut Self::Element);
    /// Writes the first `count` elements, which are not all.
    unsafe fn store_part(self, to: *mut Self::Element, count: usize);
}
