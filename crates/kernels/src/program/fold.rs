//! Folding the elements of a row into one.
//!
//! A part of a row gives a partial result of eight bytes; those of all parts are combined in their order. Sums of floats
//! have binary64 as partial results, so long rows lose nothing that short ones keep.

// Rows are memory that the executor lays out; loops get at them by address.
#![allow(unsafe_code)]

use crate::isa::Isa;

use super::lane::{Lane, Narrow, for_lane};
use super::number::{Integer, Number};
use super::vector_fold;
use crate::fold::Fold;

/// Independent chains of a fold: enough to hide the latency of an addition.
const CHAINS: usize = 64;

/// Elements that are summed in their own type before the sum goes into the total.
pub(super) const BLOCK: usize = 4096;

/// Elements of a narrow type that are summed, rounded each time, before the sum goes into the total.
const NARROW_RUN: usize = 128;

/// A fold of the elements of one type.
///
/// The callers of `partial` and `finish` see to it that the address is that of so many elements, or of one.
pub(super) struct FoldLoop {
    /// The partial result of so many neighbours.
    pub(super) partial: Box<dyn Fn(*const u8, usize) -> u64 + Send + Sync>,
    /// The partial result of one part and the next.
    pub(super) combine: Box<dyn Fn(u64, u64) -> u64 + Send + Sync>,
    /// Writes the result that a partial result is.
    pub(super) finish: Box<dyn Fn(u64, *mut u8) + Send + Sync>,
}

impl std::fmt::Debug for FoldLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FoldLoop").finish_non_exhaustive()
    }
}

/// The fold of a type, where there is one.
pub(super) fn fold(isa: Isa, fold: Fold, lane: Lane, narrow: Option<Narrow>) -> Option<FoldLoop> {
    match (fold, lane) {
        (Fold::Sum, Lane::F32) => Some(match narrow {
            Some(narrow) => sum(
                move |run: &[f32]| f64::from(run.iter().fold(0.0, |sum, x| narrow.round(sum + x))),
                NARROW_RUN,
                move |total| narrow.round_once(total),
            ),
            None => {
                sum(move |block: &[f32]| f64::from(vector_fold::sum(isa, block)), BLOCK, |total| total as f32)
            }
        }),
        (Fold::Sum, Lane::F64) => {
            Some(sum(move |block: &[f64]| chained(isa, block, 0.0, |a, b| a + b), BLOCK, |total| total))
        }
        (Fold::Product, Lane::F32) if let Some(narrow) = narrow => {
            let product = move |a: f32, b: f32| narrow.round(a * b);
            Some(plain(move |values| values.iter().fold(1.0, |a, &b| product(a, b)), product))
        }
        (Fold::Sum | Fold::Maximum | Fold::Or, Lane::Bool) => Some(chains(isa, 0u8, |a, b| a | b)),
        (Fold::Product | Fold::Minimum | Fold::And, Lane::Bool) => Some(chains(isa, 1u8, |a, b| a & b)),
        (Fold::Sum, _) => for_lane!(lane, T => Some(chains(isa, T::ZERO, T::add))),
        (Fold::Product, _) => for_lane!(lane, T => Some(chains(isa, T::ONE, T::multiply))),
        (Fold::Maximum, Lane::F32) => Some(plain(
            move |values: &[f32]| match vector_fold::maximum(isa, values) {
                // Of zeros the sign matters, which vectors do not look at.
                0.0 => chained(isa, values, f32::LEAST, f32::larger),
                maximum => maximum,
            },
            f32::larger,
        )),
        (Fold::Maximum, _) => for_lane!(lane, T => Some(chains(isa, T::LEAST, T::larger))),
        (Fold::Minimum, _) => for_lane!(lane, T => Some(chains(isa, T::LARGEST, T::smaller))),
        (Fold::And | Fold::Or, Lane::F32 | Lane::F64) => None,
        // Signs do not matter to bits.
        (Fold::And | Fold::Or, _) => Some(match lane.width() {
            1 => bits::<u8>(isa, fold),
            2 => bits::<u16>(isa, fold),
            4 => bits::<u32>(isa, fold),
            _ => bits::<u64>(isa, fold),
        }),
    }
}

fn bits<T: Integer + bytemuck::Pod>(isa: Isa, fold: Fold) -> FoldLoop {
    match fold {
        Fold::And => chains(isa, T::ALL_BITS, T::and),
        _ => chains(isa, T::ZERO, T::or),
    }
}

/// A sum of floats: blocks in their own type, the blocks in binary64.
fn sum<T: bytemuck::Pod>(
    of_block: impl Fn(&[T]) -> f64 + Send + Sync + 'static,
    block: usize,
    finish: impl Fn(f64) -> T + Send + Sync + 'static,
) -> FoldLoop {
    let partial = move |data: *const u8, count: usize| {
        // SAFETY: the caller's promise.
        let values = unsafe { elements::<T>(data, count) };
        values.chunks(block).map(&of_block).fold(0.0, |total, sum| total + sum).to_bits()
    };
    FoldLoop {
        partial: Box::new(partial),
        combine: Box::new(|left, right| (f64::from_bits(left) + f64::from_bits(right)).to_bits()),
        // SAFETY: the caller's promise.
        finish: Box::new(move |total, out| unsafe { out.cast::<T>().write(finish(f64::from_bits(total))) }),
    }
}

/// A fold whose partial results are elements.
fn plain<T: bytemuck::Pod>(
    of_row: impl Fn(&[T]) -> T + Send + Sync + 'static,
    f: impl Fn(T, T) -> T + Send + Sync + 'static,
) -> FoldLoop {
    FoldLoop {
        // SAFETY: the caller's promise.
        partial: Box::new(move |data, count| word(of_row(unsafe { elements(data, count) }))),
        combine: Box::new(move |left, right| word(f(element(left), element(right)))),
        // SAFETY: the caller's promise.
        finish: Box::new(|result, out| unsafe { out.cast::<T>().write(element(result)) }),
    }
}

fn chains<T: bytemuck::Pod + Send + Sync>(
    isa: Isa,
    identity: T,
    f: impl Fn(T, T) -> T + Copy + Send + Sync + 'static,
) -> FoldLoop {
    plain(move |values| chained(isa, values, identity, f), f)
}

/// # Safety
///
/// There are so many elements at the address.
unsafe fn elements<'a, T>(data: *const u8, count: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast(), count) }
}

fn word<T: bytemuck::Pod>(value: T) -> u64 {
    let mut bytes = [0; 8];
    bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    u64::from_ne_bytes(bytes)
}

fn element<T: bytemuck::Pod>(word: u64) -> T {
    bytemuck::pod_read_unaligned(&word.to_ne_bytes()[..size_of::<T>()])
}

/// The fold of a row in a fixed order: [`CHAINS`] chains, each of every so-manieth element, folded pairwise.
fn chained<T: Copy>(isa: Isa, values: &[T], identity: T, f: impl Fn(T, T) -> T + Copy) -> T {
    /// # Safety
    ///
    /// The processor has AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    unsafe fn avx512<T: Copy>(values: &[T], identity: T, f: impl Fn(T, T) -> T + Copy) -> T {
        body(values, identity, f)
    }
    /// # Safety
    ///
    /// The processor has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<T: Copy>(values: &[T], identity: T, f: impl Fn(T, T) -> T + Copy) -> T {
        body(values, identity, f)
    }
    #[inline(always)]
    fn body<T: Copy>(values: &[T], identity: T, f: impl Fn(T, T) -> T + Copy) -> T {
        let mut chains = [identity; CHAINS];
        let (blocks, rest) = values.as_chunks::<CHAINS>();
        for block in blocks {
            chains.iter_mut().zip(block).for_each(|(chain, &value)| *chain = f(*chain, value));
        }
        chains.iter_mut().zip(rest).for_each(|(chain, &value)| *chain = f(*chain, value));
        let mut width = CHAINS;
        while width > 1 {
            width /= 2;
            for at in 0..width {
                chains[at] = f(chains[at], chains[at + width]);
            }
        }
        chains[0]
    }
    match isa {
        // SAFETY: the instruction set is one that this processor has.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512(values, identity, f) },
        // SAFETY: the same.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2(values, identity, f) },
        _ => body(values, identity, f),
    }
}
