//! What values are like: their range, their mean, how many are no numbers.

// Elements are read from the memory of a value whose type is known at run time.
#![allow(unsafe_code)]

use std::sync::Mutex;

use half::{bf16, f16};
use warpforge_tensor::{ElementType, FloatType, IntType};

use crate::isa::Isa;
use crate::pool::Pool;

/// Elements that are looked at in one go: few enough to stay in the first cache, and for sums in f32 to stay exact.
const CHUNK: usize = 1024;
/// Chunks that one piece looks at.
const CHUNKS: usize = 32;
/// Lanes of sums and bounds: a vector of AVX-512, or several of another kind.
const LANES: usize = 16;

/// What values are like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// The smallest that is a number.
    pub min: f64,
    /// The largest that is a number.
    pub max: f64,
    /// The sum of the finite ones.
    pub sum: f64,
    /// How many are no numbers.
    pub nan: u64,
    /// How many are infinite.
    pub infinite: u64,
    /// How many were looked at.
    pub seen: u64,
}

impl Default for Statistics {
    fn default() -> Self {
        Self { min: f64::INFINITY, max: f64::NEG_INFINITY, sum: 0.0, nan: 0, infinite: 0, seen: 0 }
    }
}

impl Statistics {
    /// The mean of the finite ones.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let finite = self.seen - self.nan - self.infinite;
        (finite > 0).then(|| self.sum / finite as f64)
    }

    fn join(&mut self, other: &Self) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.nan += other.nan;
        self.infinite += other.infinite;
        self.seen += other.seen;
    }
}

/// Looks at every `every`th thousand of elements; none for types that are no plain numbers.
///
/// # Safety
///
/// `data` is good for reading `count` elements of the type, and aligned.
#[must_use]
pub unsafe fn statistics(
    pool: &Pool,
    element: ElementType,
    data: *const u8,
    count: usize,
    every: usize,
) -> Option<Statistics> {
    // SAFETY: as the caller promises, for the type that the arm names.
    unsafe {
        Some(match element {
            ElementType::Float(FloatType::F32) => of::<f32>(pool, data, count, every),
            ElementType::Float(FloatType::F64) => of::<f64>(pool, data, count, every),
            ElementType::Float(FloatType::F16) => of::<f16>(pool, data, count, every),
            ElementType::Float(FloatType::Bf16) => of::<bf16>(pool, data, count, every),
            ElementType::Int(IntType::I8) => of::<i8>(pool, data, count, every),
            ElementType::Int(IntType::I16) => of::<i16>(pool, data, count, every),
            ElementType::Int(IntType::I32) => of::<i32>(pool, data, count, every),
            ElementType::Int(IntType::I64) => of::<i64>(pool, data, count, every),
            ElementType::Int(IntType::U8) | ElementType::Bool => of::<u8>(pool, data, count, every),
            ElementType::Int(IntType::U16) => of::<u16>(pool, data, count, every),
            ElementType::Int(IntType::U32) => of::<u32>(pool, data, count, every),
            ElementType::Int(IntType::U64) => of::<u64>(pool, data, count, every),
            _ => return None,
        })
    }
}

/// An element as a number to look at.
trait Element: Copy + Sync {
    /// Its value; f32 where that holds it, so that vectors are wide.
    type Wide: Number;
    fn wide(self) -> Self::Wide;
}

/// A float that bounds and sums are kept in.
trait Number: Copy + PartialOrd + std::ops::Add<Output = Self> + Into<f64> {
    const ZERO: Self;
    const INFINITY: Self;
    const NEG_INFINITY: Self;
    fn magnitude(self) -> Self;
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Number for $type {
            const ZERO: Self = 0.0;
            const INFINITY: Self = Self::INFINITY;
            const NEG_INFINITY: Self = Self::NEG_INFINITY;
            fn magnitude(self) -> Self {
                self.abs()
            }
        }
    )*};
}
number!(f32, f64);

macro_rules! elements {
    ($($type:ty => $wide:ty, $value:ident -> $made:expr;)*) => {$(
        impl Element for $type {
            type Wide = $wide;
            #[inline(always)]
            fn wide(self) -> $wide {
                let $value = self;
                $made
            }
        }
    )*};
}
elements! {
    f32 => f32, x -> x;
    f64 => f64, x -> x;
    f16 => f32, x -> x.to_f32();
    bf16 => f32, x -> x.to_f32();
    i8 => f32, x -> x as f32;
    u8 => f32, x -> x as f32;
    i16 => f64, x -> x as f64;
    u16 => f64, x -> x as f64;
    i32 => f64, x -> x as f64;
    u32 => f64, x -> x as f64;
    i64 => f64, x -> x as f64;
    u64 => f64, x -> x as f64;
}

/// # Safety
///
/// `data` is good for reading `count` elements.
unsafe fn of<T: Element>(pool: &Pool, data: *const u8, count: usize, every: usize) -> Statistics {
    // SAFETY: as the caller promises.
    let values = unsafe { std::slice::from_raw_parts(data.cast::<T>(), count) };
    let chunks = count.div_ceil(CHUNK).div_ceil(every.max(1));
    let pieces = chunks.div_ceil(CHUNKS);
    let parts = Mutex::new(vec![Statistics::default(); pieces]);
    pool.run(pieces, &|piece, _| {
        let mut part = Statistics::default();
        for chunk in piece * CHUNKS..chunks.min((piece + 1) * CHUNKS) {
            let start = chunk * every.max(1) * CHUNK;
            part.join(&look(&values[start..count.min(start + CHUNK)]));
        }
        if let Ok(mut parts) = parts.lock() {
            parts[piece] = part;
        }
    });
    let mut whole = Statistics::default();
    // In the order of the pieces, so that the sum does not depend on who came first.
    for part in parts.into_inner().unwrap_or_default() {
        whole.join(&part);
    }
    whole
}

fn look<T: Element>(values: &[T]) -> Statistics {
    match Isa::best() {
        // SAFETY: the processor has the instructions: `best` says so.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { look_avx512(values) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { look_avx2(values) },
        _ => look_at(values),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
fn look_avx512<T: Element>(values: &[T]) -> Statistics {
    look_at(values)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn look_avx2<T: Element>(values: &[T]) -> Statistics {
    look_at(values)
}

/// Bounds and sums of a chunk; one with values that are no numbers is counted element by element.
#[inline(always)]
fn look_at<T: Element>(values: &[T]) -> Statistics {
    let mut min = [T::Wide::INFINITY; LANES];
    let mut max = [T::Wide::NEG_INFINITY; LANES];
    let mut sum = [T::Wide::ZERO; LANES];
    let mut finite = [true; LANES];
    let (whole, rest) = values.as_chunks::<LANES>();
    for values in whole {
        for lane in 0..LANES {
            let value = values[lane].wide();
            min[lane] = if value < min[lane] { value } else { min[lane] };
            max[lane] = if value > max[lane] { value } else { max[lane] };
            sum[lane] = sum[lane] + value;
            finite[lane] &= value.magnitude() < T::Wide::INFINITY;
        }
    }
    if finite.contains(&false) {
        return count(values);
    }
    let mut found = count(rest);
    for lane in 0..if whole.is_empty() { 0 } else { LANES } {
        found.min = found.min.min(min[lane].into());
        found.max = found.max.max(max[lane].into());
        found.sum += sum[lane].into();
    }
    found.seen = values.len() as u64;
    found
}

fn count<T: Element>(values: &[T]) -> Statistics {
    let mut found = Statistics { seen: values.len() as u64, ..Statistics::default() };
    for value in values {
        let value: f64 = value.wide().into();
        if value.is_nan() {
            found.nan += 1;
            continue;
        }
        found.min = found.min.min(value);
        found.max = found.max.max(value);
        if value.is_infinite() {
            found.infinite += 1;
        } else {
            found.sum += value;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    fn pool() -> Pool {
        Pool::new(NonZeroUsize::new(2).unwrap()).unwrap()
    }

    #[test]
    fn all_values_count() {
        let mut values: Vec<f32> = (0..100_003).map(|at| (at % 1000) as f32 - 200.0).collect();
        let of = |values: &[f32], every| {
            let f32 = ElementType::Float(FloatType::F32);
            // SAFETY: the slice is what is said.
            unsafe { statistics(&pool(), f32, values.as_ptr().cast(), values.len(), every) }.unwrap()
        };
        let plain = of(&values, 1);
        assert_eq!((plain.min, plain.max, plain.nan, plain.infinite), (-200.0, 799.0, 0, 0));
        assert_eq!(plain.sum, values.iter().map(|&value| f64::from(value)).sum::<f64>());
        assert_eq!(plain.seen, 100_003);
        values[70_000] = f32::NAN;
        values[70_001] = f32::NEG_INFINITY;
        values[100_002] = f32::INFINITY;
        let odd = of(&values, 1);
        assert_eq!((odd.min, odd.max, odd.nan, odd.infinite), (f64::NEG_INFINITY, f64::INFINITY, 1, 2));
        assert!(odd.sum.is_finite());
        let some = of(&values, 3);
        assert_eq!(some.seen, 33 * 1024);
    }

    #[test]
    fn types_of_all_widths_are_read() {
        fn check<T>(element: ElementType, values: &[T]) -> Option<Statistics> {
            // SAFETY: each call names the type of its values.
            unsafe { statistics(&pool(), element, values.as_ptr().cast(), values.len(), 1) }
        }
        let halves =
            check(ElementType::Float(FloatType::Bf16), &[1.5, -2.0, 8.0].map(bf16::from_f32)).unwrap();
        assert_eq!((halves.min, halves.max, halves.mean(), halves.seen), (-2.0, 8.0, Some(2.5), 3));
        let wide = check(ElementType::Int(IntType::I64), &[i64::MIN, 0, 4]).unwrap();
        assert_eq!((wide.min, wide.max), (i64::MIN as f64, 4.0));
        let none = check::<u8>(ElementType::Bool, &[]).unwrap();
        assert_eq!((none.seen, none.mean()), (0, None));
        assert!(check(ElementType::Int(IntType::I4), &[0u8]).is_none());
    }
}
