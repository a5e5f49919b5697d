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

/// The elements of a panel, which a kernel loads into vectors.
///
/// # Safety
///
/// As for [`Vector`].
pub(super) unsafe trait PanelElement<V: Vector>: Copy {
    /// Whether a panel starts with a vector of what its columns begin with.
    const LEAD: bool = false;

    /// As many elements as there are lanes.
    unsafe fn load(from: *const Self) -> V;

    /// `row · panel + sum`, of an element of a row in all lanes.
    #[inline(always)]
    unsafe fn multiply_add(row: V, panel: V, sum: V) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { row.multiply_add(panel, sum) }
    }

    /// A sum with what its column begins with.
    #[inline(always)]
    unsafe fn begin(sum: V, _lead: V) -> V {
        sum
    }
}

/// Four bytes of a column: signed ones of the panel, unsigned ones of a row.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Quad(pub(super) i32);

/// The bits of an f8E4M3FN.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Float8(pub(super) u8);

// SAFETY: the vector's own load.
unsafe impl<V: Vector<Element = f32>> PanelElement<V> for f32 {
    #[inline(always)]
    unsafe fn load(from: *const f32) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { V::load(from) }
    }
}

// SAFETY: as above.
unsafe impl<V: Vector<Element = f64>> PanelElement<V> for f64 {
    #[inline(always)]
    unsafe fn load(from: *const f64) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { V::load(from) }
    }
}

// SAFETY: as above.
unsafe impl<V: Vector<Element = i32>> PanelElement<V> for i32 {
    #[inline(always)]
    unsafe fn load(from: *const i32) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { V::load(from) }
    }
}

// SAFETY: as above.
unsafe impl<V: Vector<Element = i64>> PanelElement<V> for i64 {
    #[inline(always)]
    unsafe fn load(from: *const i64) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { V::load(from) }
    }
}

/// Implements [`Vector`] by the intrinsics of an instruction set.
macro_rules! vector {
    ($vector:ty: [$element:ty; $lanes:literal], $zero:ident, $splat:ident, $load:ident, $multiply_add:ident, $store:ident,
     |$from:ident, $read:ident| $load_part:expr, |$to:ident, $written:ident, $value:ident| $store_part:expr) => {
        // SAFETY: inlined into the functions of the same file, which enable the instructions.
        unsafe impl Vector for $vector {
            type Element = $element;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the instruction set is available.
                unsafe { $zero() }
            }

            #[inline(always)]
            unsafe fn splat(from: *const $element) -> Self {
                // SAFETY: the instruction set is available and the pointer is valid.
                unsafe { $splat(*from) }
            }

            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                // SAFETY: as above.
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn load_part($from: *const $element, $read: usize) -> Self {
                // SAFETY: as above; masked elements are not touched.
                unsafe { $load_part }
            }

            #[inline(always)]
            unsafe fn multiply_add(self, other: Self, sum: Self) -> Self {
                // SAFETY: the instruction set is available.
                unsafe { $multiply_add(self, other, sum) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: the instruction set is available and the pointer is valid.
                unsafe { $store(to, self) }
            }

            #[inline(always)]
            unsafe fn store_part(self, $to: *mut $element, $written: usize) {
                let $value = self;
                // SAFETY: as above; masked elements are not touched.
                unsafe { $store_part }
            }
        }
    };
}

pub(super) use vector;
