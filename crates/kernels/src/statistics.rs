//! Statistics of values: range, mean, NaN and infinity counts.

// Elements are read from the memory of a value whose type is known at run time.
#![allow(unsafe_code)]

use std::sync::Mutex;

use half::{bf16, f16};
use warpforge_tensor::{ElementType, FloatType, IntType};

use crate::isa::Isa;
use crate::pool::Pool;

/// Elements of a chunk: few enough to stay in the L1 cache, and for f32 sums to stay accurate.
const CHUNK: usize = 1024;
/// Chunks of a task.
const CHUNKS: usize = 32;
/// Lanes of sums and bounds: one AVX-512 vector, or several narrower ones.
const LANES: usize = 16;

/// Statistics of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// The minimum, NaN excluded.
    pub min: f64,
    /// The maximum, NaN excluded.
    pub max: f64,
    /// The sum of the finite values.
    pub sum: f64,
    /// The number of NaN.
    pub nan: u64,
    /// The number of infinities.
    pub infinite: u64,
    /// The number of sampled elements.
    pub sampled: u64,
}

impl Default for Statistics {
    fn default() -> Self {
        Self { min: f64::INFINITY, max: f64::NEG_INFINITY, sum: 0.0, nan: 0, infinite: 0, sampled: 0 }
    }
}

impl Statistics {
    /// The mean of the finite values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let finite = self.sampled - self.nan - self.infinite;
        (finite > 0).then(|| self.sum / finite as f64)
    }

    fn join(&mut self, other: &Self) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.nan += other.nan;
        self.infinite += other.infinite;
        self.sampled += other.sampled;
    }
}

/// Samples every `every`th chunk; none for element types that are not numeric.
///
/// # Safety
///
/// `data` is valid for reading `count` elements of the type, and aligned.
#[must_use]
pub unsafe fn statistics(
    pool: &Pool,
    element: ElementType,
    data: *const u8,
    count: usize,
    every: usize,
) -> Option<Statistics> {
    // SAFETY: guaranteed by the caller, for the type that the arm names.
    unsafe {
        Some(match element {
            ElementType::Float(FloatType::F32) => statistics_of::<f32>(pool, data, count, every),
            ElementType::Float(FloatType::F64) => statistics_of::<f64>(pool, data, count, every),
            ElementType::Float(FloatType::F16) => statistics_of::<f16>(pool, data, count, every),
            ElementType::Float(FloatType::Bf16) => statistics_of::<bf16>(pool, data, count, every),
            ElementType::Int(IntType::I8) => statistics_of::<i8>(pool, data, count, every),
            ElementType::Int(IntType::I16) => statistics_of::<i16>(pool, data, count, every),
            ElementType::Int(IntType::I32) => statistics_of::<i32>(pool, data, count, every),
            ElementType::Int(IntType::I64) => statistics_of::<i64>(pool, data, count, every),
            ElementType::Int(IntType::U8) | ElementType::Bool => {
                statistics_of::<u8>(pool, data, count, every)
            }
            ElementType::Int(IntType::U16) => statistics_of::<u16>(pool, data, count, every),
            ElementType::Int(IntType::U32) => statistics_of::<u32>(pool, data, count, every),
            ElementType::Int(IntType::U64) => statistics_of::<u64>(pool, data, count, every),
            _ => return None,
        })
    }
}

/// An element type with statistics.
trait StatisticsElement: Copy + Sync {
    /// The type of its value: f32 where that is exact, for wider vectors.
    type Wide: StatisticsFloat;
    fn wide(self) -> Self::Wide;
}

/// A float type for bounds and sums.
trait StatisticsFloat: Copy + PartialOrd + std::ops::Add<Output = Self> + Into<f64> {
    const ZERO: Self;
    const INFINITY: Self;
    const NEG_INFINITY: Self;
    fn magnitude(self) -> Self;
}

macro_rules! statistics_float {
    ($($type:ty),*) => {$(
        impl StatisticsFloat for $type {
            const ZERO: Self = 0.0;
            const INFINITY: Self = Self::INFINITY;
            const NEG_INFINITY: Self = Self::NEG_INFINITY;
            fn magnitude(self) -> Self {
                self.abs()
            }
        }
    )*};
}
statistics_float!(f32, f64);

macro_rules! elements {
    ($($type:ty => $wide:ty, $value:ident -> $made:expr;)*) => {$(
        impl StatisticsElement for $type {
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
/// `data` is valid for reading `count` elements.
unsafe fn statistics_of<T: StatisticsElement>(
    pool: &Pool,
    data: *const u8,
    count: usize,
    every: usize,
) -> Statistics {
    // SAFETY: guaranteed by the caller.
    let values = unsafe { std::slice::from_raw_parts(data.cast::<T>(), count) };
    let chunks = count.div_ceil(CHUNK).div_ceil(every.max(1));
    let tasks = chunks.div_ceil(CHUNKS);
    let parts = Mutex::new(vec![Statistics::default(); tasks]);
    pool.run(tasks, &|task, _| {
        let mut part = Statistics::default();
        for chunk in task * CHUNKS..chunks.min((task + 1) * CHUNKS) {
            let start = chunk * every.max(1) * CHUNK;
            part.join(&chunk_statistics(&values[start..count.min(start + CHUNK)]));
        }
        if let Ok(mut parts) = parts.lock() {
            parts[task] = part;
        }
    });
    let mut whole = Statistics::default();
    // In task order, so that the sum does not depend on scheduling.
    for part in parts.into_inner().unwrap_or_default() {
        whole.join(&part);
    }
    whole
}

fn chunk_statistics<T: StatisticsElement>(values: &[T]) -> Statistics {
    match Isa::best() {
        // SAFETY: the CPU has the instruction set: `best` says so.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { chunk_statistics_avx512(values) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { chunk_statistics_avx2(values) },
        _ => chunk_statistics_body(values),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
fn chunk_statistics_avx512<T: StatisticsElement>(values: &[T]) -> Statistics {
    chunk_statistics_body(values)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn chunk_statistics_avx2<T: StatisticsElement>(values: &[T]) -> Statistics {
    chunk_statistics_body(values)
}

/// Bounds and sums of a chunk; a chunk with NaN or infinities is counted element by element.
#[inline(always)]
fn chunk_statistics_body<T: StatisticsElement>(values: &[T]) -> Statistics {
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
    found.sampled = values.len() as u64;
    found
}

fn count<T: StatisticsElement>(values: &[T]) -> Statistics {
    let mut found = Statistics { sampled: values.len() as u64, ..Statistics::default() };
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
    fn statistics_of_f32() {
        let mut values: Vec<f32> = (0..100_003).map(|at| (at % 1000) as f32 - 200.0).collect();
        let statistics_of = |values: &[f32], every| {
            let f32 = ElementType::Float(FloatType::F32);
            // SAFETY: the slice is what is said.
            unsafe { statistics(&pool(), f32, values.as_ptr().cast(), values.len(), every) }.unwrap()
        };
        let plain = statistics_of(&values, 1);
        assert_eq!((plain.min, plain.max, plain.nan, plain.infinite), (-200.0, 799.0, 0, 0));
        assert_eq!(plain.sum, values.iter().map(|&value| f64::from(value)).sum::<f64>());
        assert_eq!(plain.sampled, 100_003);
        values[70_000] = f32::NAN;
        values[70_001] = f32::NEG_INFINITY;
        values[100_002] = f32::INFINITY;
        let odd = statistics_of(&values, 1);
        assert_eq!((odd.min, odd.max, odd.nan, odd.infinite), (f64::NEG_INFINITY, f64::INFINITY, 1, 2));
        assert!(odd.sum.is_finite());
        let some = statistics_of(&values, 3);
        assert_eq!(some.sampled, 33 * 1024);
    }

    #[test]
    fn statistics_of_all_element_types() {
        fn check<T>(element: ElementType, values: &[T]) -> Option<Statistics> {
            // SAFETY: each call names the type of its values.
            unsafe { statistics(&pool(), element, values.as_ptr().cast(), values.len(), 1) }
        }
        let halves =
            check(ElementType::Float(FloatType::Bf16), &[1.5, -2.0, 8.0].map(bf16::from_f32)).unwrap();
        assert_eq!((halves.min, halves.max, halves.mean(), halves.sampled), (-2.0, 8.0, Some(2.5), 3));
        let wide = check(ElementType::Int(IntType::I64), &[i64::MIN, 0, 4]).unwrap();
        assert_eq!((wide.min, wide.max), (i64::MIN as f64, 4.0));
        let none = check::<u8>(ElementType::Bool, &[]).unwrap();
        assert_eq!((none.sampled, none.mean()), (0, None));
        assert!(check(ElementType::Int(IntType::I4), &[0u8]).is_none());
    }
}
