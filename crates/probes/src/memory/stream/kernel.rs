//! The four kernels, for each instruction set and kind of store.

#![allow(unsafe_code)]

use super::vector::Vector;

/// The factor of scale and triad, √2 − 1: after a pass over all four kernels the first array is what it was before, so
/// values neither grow nor shrink, however often the kernels run.
pub const FACTOR: f64 = std::f64::consts::SQRT_2 - 1.0;

/// What is computed for each element of three arrays `a`, `b` and `c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// `c = a`
    Copy,
    /// `b = factor * c`
    Scale,
    /// `c = a + b`
    Add,
    /// `a = b + factor * c`
    Triad,
}

impl Kernel {
    /// All of them, in STREAM's order.
    pub const ALL: [Self; 4] = [Self::Copy, Self::Scale, Self::Add, Self::Triad];

    /// The name used in parameters and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Scale => "scale",
            Self::Add => "add",
            Self::Triad => "triad",
        }
    }

    /// The bytes that an element moves as STREAM counts them: eight for each array read or written. A line that is
    /// read only because a part of it is written is not counted.
    #[must_use]
    pub fn bytes_per_element(self) -> usize {
        match self {
            Self::Copy | Self::Scale => 16,
            Self::Add | Self::Triad => 24,
        }
    }
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// Into the caches, which read the line first: what a compiler makes of a loop.
    Ordinary,
    /// Past the caches, without reading the line.
    Nontemporal,
}

impl Stores {
    /// The name used in parameters and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary",
            Self::Nontemporal => "nontemporal",
        }
    }
}

/// The instructions a kernel is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// 512-bit vectors of x86.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256-bit vectors of x86 with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 128-bit vectors of ARM.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// What the compiler chooses.
    Portable,
}

impl InstructionSet {
    /// Those this processor has, the widest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                sets.push(Self::Avx512);
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                sets.push(Self::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            sets.push(Self::Neon);
        }
        sets.push(Self::Portable);
        sets
    }

    /// Those with vectors, the widest first; what the compiler chooses where there is none. The widest are not always the fastest.
    #[must_use]
    pub fn vectors() -> Vec<Self> {
        let mut sets = Self::available();
        if sets.len() > 1 {
            sets.retain(|&set| set != Self::Portable);
        }
        sets
    }

    fn has_nontemporal_stores(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::Avx2 => true,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => false,
            Self::Portable => false,
        }
    }
}

/// Writes `to[i]` from `x[i]` and `y[i]`, all of the given length, so many times.
type Pass = unsafe fn(to: *mut f64, x: *const f64, y: *const f64, length: usize, passes: u64);

/// One kernel, ready to run on this processor.
#[derive(Debug, Clone, Copy)]
pub struct Routine {
    kernel: Kernel,
    pass: Pass,
}

impl Routine {
    /// The kernel in the widest instructions that the processor has; `None` if those have no such stores.
    #[must_use]
    pub fn widest(kernel: Kernel, stores: Stores) -> Option<Self> {
        Self::new(kernel, stores, *InstructionSet::available().first()?)
    }

    /// The kernel in one instruction set; `None` if this processor lacks the set, or the set such stores.
    #[must_use]
    pub fn new(kernel: Kernel, stores: Stores, set: InstructionSet) -> Option<Self> {
        let possible = stores == Stores::Ordinary || set.has_nontemporal_stores();
        if !possible || !InstructionSet::available().contains(&set) {
            return None;
        }
        let pass = match (kernel, stores) {
            (Kernel::Copy, Stores::Ordinary) => pass::<Copied, false>(set),
            (Kernel::Copy, Stores::Nontemporal) => pass::<Copied, true>(set),
            (Kernel::Scale, Stores::Ordinary) => pass::<Scaled, false>(set),
            (Kernel::Scale, Stores::Nontemporal) => pass::<Scaled, true>(set),
            (Kernel::Add, Stores::Ordinary) => pass::<Added, false>(set),
            (Kernel::Add, Stores::Nontemporal) => pass::<Added, true>(set),
            (Kernel::Triad, Stores::Ordinary) => pass::<TriadSum, false>(set),
            (Kernel::Triad, Stores::Nontemporal) => pass::<TriadSum, true>(set),
        };
        Some(Self { kernel, pass })
    }

    /// What it computes.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Computes the kernel over three arrays of one length, so many times: to call it again takes as long as a part of a small cache.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn run(&self, a: &mut [f64], b: &mut [f64], c: &mut [f64], passes: u64) {
        assert!(a.len() == b.len() && b.len() == c.len(), "arrays of different lengths");
        let length = a.len();
        let (a, b, c) = (a.as_mut_ptr(), b.as_mut_ptr(), c.as_mut_ptr());
        let (to, x, y) = match self.kernel {
            Kernel::Copy => (c, a, a),
            Kernel::Scale => (b, c, c),
            Kernel::Add => (c, a, b),
            Kernel::Triad => (a, b, c),
        };
        // SAFETY: the three are distinct arrays of `length` elements that nobody else refers to, and `new` has checked
        // that the processor has the instructions.
        unsafe { (self.pass)(to, x, y, length, passes) }
    }
}

/// What a kernel makes of two elements.
trait Formula {
    /// Whether the second array is read at all.
    const READS_SECOND: bool;

    /// # Safety
    /// As for the methods of [`Vector`].
    unsafe fn apply<V: Vector>(x: V, y: V, factor: V) -> V;
}

struct Copied;
struct Scaled;
struct Added;
struct TriadSum;

impl Formula for Copied {
    const READS_SECOND: bool = false;
    #[inline(always)]
    unsafe fn apply<V: Vector>(x: V, _: V, _: V) -> V {
        x
    }
}

impl Formula for Scaled {
    const READS_SECOND: bool = false;
    #[inline(always)]
    unsafe fn apply<V: Vector>(x: V, _: V, factor: V) -> V {
        // SAFETY: the caller has made sure of the instruction set.
        unsafe { x.mul(factor) }
    }
}

impl Formula for Added {
    const READS_SECOND: bool = true;
    #[inline(always)]
    unsafe fn apply<V: Vector>(x: V, y: V, _: V) -> V {
        // SAFETY: the caller has made sure of the instruction set.
        unsafe { x.add(y) }
    }
}

impl Formula for TriadSum {
    const READS_SECOND: bool = true;
    #[inline(always)]
    unsafe fn apply<V: Vector>(x: V, y: V, factor: V) -> V {
        // SAFETY: the caller has made sure of the instruction set.
        unsafe { y.mul_add(factor, x) }
    }
}

/// The pass of one formula in an instruction set.
fn pass<F: Formula, const NONTEMPORAL: bool>(set: InstructionSet) -> Pass {
    match set {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 => avx512::<F, NONTEMPORAL>,
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 => avx2::<F, NONTEMPORAL>,
        #[cfg(target_arch = "aarch64")]
        InstructionSet::Neon => neon::<F, NONTEMPORAL>,
        InstructionSet::Portable => portable::<F, NONTEMPORAL>,
    }
}

/// Compiles [`over`] for an instruction set.
macro_rules! compiled_for {
    ($name:ident, $vector:ty $(, $features:literal)?) => {
        $(#[target_feature(enable = $features)])?
        unsafe fn $name<F: Formula, const NONTEMPORAL: bool>(
            to: *mut f64,
            x: *const f64,
            y: *const f64,
            length: usize,
            passes: u64,
        ) {
            for _ in 0..passes {
                // SAFETY: the caller answers for the arrays, and for the processor having the instructions.
                unsafe { over::<$vector, F, NONTEMPORAL>(to, x, y, length) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!(avx512, std::arch::x86_64::__m512d, "avx512f");
#[cfg(target_arch = "x86_64")]
compiled_for!(avx2, std::arch::x86_64::__m256d, "avx2,fma");
#[cfg(target_arch = "aarch64")]
compiled_for!(neon, std::arch::aarch64::float64x2_t, "neon");

compiled_for!(portable, f64);

/// Vectors in one turn of the loop: counting is little beside them, and more are slower where the second-level cache bounds.
const UNROLLED: usize = 4;

/// Runs a formula over arrays. Pointers, and not slices, so that the compiler does not know them to be distinct and
/// leaves a copy as the loop it is instead of calling `memcpy`, which chooses its stores by size.
///
/// # Safety
/// `to` must be writable and `x` and `y` readable for `length` elements, `to` distinct from both, and the processor
/// must have the instructions of `V`.
#[inline(always)]
unsafe fn over<V: Vector, F: Formula, const NONTEMPORAL: bool>(
    to: *mut f64,
    x: *const f64,
    y: *const f64,
    length: usize,
) {
    let mut done = 0;
    // SAFETY: in each step `done` plus the elements of the step is at most `length`, by the loops' conditions; a store
    // non-temporally is aligned, since the first loop runs until it is and the others step by whole vectors.
    unsafe {
        let one = |at: usize| {
            let element = F::apply::<f64>(*x.add(at), *y.add(at), FACTOR);
            *to.add(at) = element;
        };
        let factor = V::splat(FACTOR);
        let vector = |at: usize| {
            let first = V::load(x.add(at));
            let second = if F::READS_SECOND { V::load(y.add(at)) } else { first };
            let result = F::apply(first, second, factor);
            if NONTEMPORAL {
                result.store_nontemporal(to.add(at));
            } else {
                result.store(to.add(at));
            }
        };
        if NONTEMPORAL {
            while done < length && !(to.add(done) as usize).is_multiple_of(size_of::<V>()) {
                one(done);
                done += 1;
            }
        }
        let (begin, turn) = (done, UNROLLED * V::LANES);
        for turns in 0..(length - begin) / turn {
            for step in 0..UNROLLED {
                vector(begin + turns * turn + step * V::LANES);
            }
            done = begin + (turns + 1) * turn;
        }
        while done + V::LANES <= length {
            vector(done);
            done += V::LANES;
        }
        while done < length {
            one(done);
            done += 1;
        }
    }
    if NONTEMPORAL {
        fence();
    }
}

/// Waits until non-temporal stores are visible to others, which no lock does for them.
#[inline(always)]
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is part of every x86-64 processor.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: usize = 203;

    /// Three arrays that start `offset` elements after an aligned address, and their neighbours.
    fn arrays(offset: usize, length: usize) -> [Vec<f64>; 3] {
        [1.0, 2.0, 3.0].map(|seed| (0..offset + length + 9).map(|i| seed + i as f64 * 0.37).collect())
    }

    fn expected(kernel: Kernel, a: f64, b: f64, c: f64) -> [f64; 3] {
        match kernel {
            Kernel::Copy => [a, b, a],
            Kernel::Scale => [a, FACTOR * c, c],
            Kernel::Add => [a, b, a + b],
            Kernel::Triad => [b + FACTOR * c, b, c],
        }
    }

    /// Runs one routine on a window of the arrays and compares everything, the elements around the window included.
    fn check(routine: Routine, offset: usize, length: usize) {
        let before = arrays(offset, length);
        let [mut a, mut b, mut c] = before.clone();
        let window = offset..offset + length;
        routine.run(&mut a[window.clone()], &mut b[window.clone()], &mut c[window.clone()], 2);
        for i in 0..before[0].len() {
            let old = [before[0][i], before[1][i], before[2][i]];
            let wanted =
                if window.contains(&i) { expected(routine.kernel, old[0], old[1], old[2]) } else { old };
            for (got, wanted) in [a[i], b[i], c[i]].into_iter().zip(wanted) {
                // One rounding less where multiplication and addition are fused.
                assert!((got - wanted).abs() <= wanted.abs() * 4.0 * f64::EPSILON, "{i}: {got} {wanted}");
            }
        }
    }

    #[test]
    fn every_set_computes_every_kernel_at_any_length_and_alignment() {
        let mut checked = 0;
        for set in InstructionSet::available() {
            for kernel in Kernel::ALL {
                for stores in [Stores::Ordinary, Stores::Nontemporal] {
                    let Some(routine) = Routine::new(kernel, stores, set) else {
                        assert!(stores == Stores::Nontemporal && !set.has_nontemporal_stores());
                        continue;
                    };
                    for offset in 0..9 {
                        for length in (0..80).chain([128, LONGEST]) {
                            check(routine, offset, length);
                            checked += 1;
                        }
                    }
                }
            }
        }
        assert!(checked >= 4 * 9 * 82, "{checked}");
    }

    #[test]
    fn values_stay_what_they_are_however_often_the_kernels_run() {
        let (mut a, mut b, mut c) = (vec![1.0; 64], vec![2.0; 64], vec![0.0; 64]);
        for _ in 0..10_000 {
            for kernel in Kernel::ALL {
                Routine::widest(kernel, Stores::Ordinary).unwrap().run(&mut a, &mut b, &mut c, 1);
            }
        }
        assert!(a.iter().all(|value| (value - 1.0).abs() < 1e-9), "{}", a[0]);
    }

    #[test]
    #[should_panic(expected = "different lengths")]
    fn arrays_of_different_lengths_are_refused() {
        Routine::widest(Kernel::Add, Stores::Ordinary).unwrap().run(&mut [0.0], &mut [0.0], &mut [], 1);
    }
}
