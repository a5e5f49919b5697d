//! Row reductions.
//!
//! A part of a row is reduced to a partial result of eight bytes; partial results are combined in order. Sums of floats
//! have f64 partial results, so that long rows are as accurate as short ones.

// Rows are in memory that the evaluator lays out; loops access them by pointers.
#![allow(unsafe_code)]

use crate::isa::Isa;

use super::lane_type::{LaneType, NarrowFloat, for_lane};
use super::scalar_ops::{IntegerOps, ScalarOps};
use super::vector_reduce;
use crate::reduce::ReduceOp;

/// Independent accumulators: enough to hide the latency of an addition.
const CHAINS: usize = 64;

/// Elements that are summed in their own type before the sum goes into the total.
pub(super) const BLOCK: usize = 4096;

/// Elements of a narrow type that are summed, rounded each time, before the sum goes into the total.
const NARROW_RUN: usize = 128;

/// The reduction of one element type.
///
/// Callers of `partial` and `finish` guarantee that the pointer is valid for that many elements, or for one.
pub(super) struct ReduceLoop {
    /// The partial result of contiguous elements.
    pub(super) partial: Box<dyn Fn(*const u8, usize) -> u64 + Send + Sync>,
    /// The partial result of one part and the next.
    pub(super) combine: Box<dyn Fn(u64, u64) -> u64 + Send + Sync>,
    /// Writes the result of a partial result.
    pub(super) finish: Box<dyn Fn(u64, *mut u8) + Send + Sync>,
    /// The same on elements side by side, each with a partial result of its own.
    pub(super) columns: ColumnLoops,
}

/// Takes contiguous elements into partial results, one each.
type TakeRow = dyn Fn(*const u8, &mut [u64]) + Send + Sync;

/// Takes the partial results of the next part into those of one.
type CombineRows = dyn Fn(&mut [u64], &[u64]) + Send + Sync;

/// Writes the results of partial results, contiguous.
type FinishRow = dyn Fn(&[u64], *mut u8) + Send + Sync;

/// Reductions side by side.
pub(super) struct ColumnLoops {
    /// Starts with a row.
    pub(super) start: Box<TakeRow>,
    /// Goes on with a row.
    pub(super) take: Box<TakeRow>,
    pub(super) combine: Box<CombineRows>,
    pub(super) finish: Box<FinishRow>,
}

impl ColumnLoops {
    /// Of elements of type `T`, whose partial results are made of one and combined so, and finished.
    fn new<T: bytemuck::Pod>(
        one: impl Fn(T) -> u64 + Copy + Send + Sync + 'static,
        combine: impl Fn(u64, u64) -> u64 + Copy + Send + Sync + 'static,
        finish: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Self {
        Self {
            start: Box::new(move |data, totals| {
                // SAFETY: guaranteed by the caller.
                let values = unsafe { elements::<T>(data, totals.len()) };
                totals.iter_mut().zip(values).for_each(|(total, &value)| *total = one(value));
            }),
            take: Box::new(move |data, totals| {
                // SAFETY: guaranteed by the caller.
                let values = unsafe { elements::<T>(data, totals.len()) };
                totals
                    .iter_mut()
                    .zip(values)
                    .for_each(|(total, &value)| *total = combine(*total, one(value)));
            }),
            combine: Box::new(move |totals, more| {
                totals.iter_mut().zip(more).for_each(|(total, &more)| *total = combine(*total, more));
            }),
            finish: Box::new(move |totals, out| {
                for (at, &total) in totals.iter().enumerate() {
                    // SAFETY: guaranteed by the caller.
                    unsafe { out.cast::<T>().add(at).write(finish(total)) };
                }
            }),
        }
    }
}

impl std::fmt::Debug for ReduceLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReduceLoop").finish_non_exhaustive()
    }
}

/// The reduction of an element type, if supported.
pub(super) fn reduce_loop(
    isa: Isa,
    op: ReduceOp,
    lane: LaneType,
    narrow: Option<NarrowFloat>,
) -> Option<ReduceLoop> {
    match (op, lane) {
        (ReduceOp::Sum, LaneType::F32) => Some(match narrow {
            Some(narrow) => sum(
                move |run: &[f32]| f64::from(run.iter().fold(0.0, |sum, x| narrow.round(sum + x))),
                NARROW_RUN,
                move |total| narrow.round_once(total),
            ),
            None => sum(
                move |block: &[f32]| f64::from(vector_reduce::sum(isa, block)),
                BLOCK,
                |total| total as f32,
            ),
        }),
        (ReduceOp::Sum, LaneType::F64) => {
            Some(sum(move |block: &[f64]| chained(isa, block, 0.0, |a, b| a + b), BLOCK, |total| total))
        }
        (ReduceOp::Product, LaneType::F32) if let Some(narrow) = narrow => {
            let product = move |a: f32, b: f32| narrow.round(a * b);
            Some(plain(move |values| values.iter().fold(1.0, |a, &b| product(a, b)), product))
        }
        (ReduceOp::Sum | ReduceOp::Maximum | ReduceOp::Or, LaneType::Bool) => {
            Some(chains(isa, 0u8, |a, b| a | b))
        }
        (ReduceOp::Product | ReduceOp::Minimum | ReduceOp::And, LaneType::Bool) => {
            Some(chains(isa, 1u8, |a, b| a & b))
        }
        (ReduceOp::Sum, _) => for_lane!(lane, T => Some(chains(isa, T::ZERO, T::add))),
        (ReduceOp::Product, _) => for_lane!(lane, T => Some(chains(isa, T::ONE, T::multiply))),
        (ReduceOp::Maximum, LaneType::F32) => Some(plain(
            move |values: &[f32]| match vector_reduce::maximum(isa, values) {
                // Zeros are ordered by sign, which the vector loop ignores.
                0.0 => chained(isa, values, f32::LEAST, f32::larger),
                maximum => maximum,
            },
            f32::larger,
        )),
        (ReduceOp::Maximum, _) => for_lane!(lane, T => Some(chains(isa, T::LEAST, T::larger))),
        (ReduceOp::Minimum, _) => for_lane!(lane, T => Some(chains(isa, T::LARGEST, T::smaller))),
        (ReduceOp::And | ReduceOp::Or, LaneType::F32 | LaneType::F64) => None,
        // Bitwise operators ignore signedness.
        (ReduceOp::And | ReduceOp::Or, _) => Some(match lane.width() {
            1 => bits::<u8>(isa, op),
            2 => bits::<u16>(isa, op),
            4 => bits::<u32>(isa, op),
            _ => bits::<u64>(isa, op),
        }),
    }
}

fn bits<T: IntegerOps + bytemuck::Pod>(isa: Isa, op: ReduceOp) -> ReduceLoop {
    match op {
        ReduceOp::And => chains(isa, T::ALL_BITS, T::and),
        _ => chains(isa, T::ZERO, T::or),
    }
}

/// A sum of floats: blocks in their own type, the blocks in f64.
fn sum<T: bytemuck::Pod + Into<f64>>(
    of_block: impl Fn(&[T]) -> f64 + Send + Sync + 'static,
    block: usize,
    finish: impl Fn(f64) -> T + Copy + Send + Sync + 'static,
) -> ReduceLoop {
    let combine = |left: u64, right: u64| (f64::from_bits(left) + f64::from_bits(right)).to_bits();
    let partial = move |data: *const u8, count: usize| {
        // SAFETY: guaranteed by the caller.
        let values = unsafe { elements::<T>(data, count) };
        values.chunks(block).map(&of_block).fold(0.0, |total, sum| total + sum).to_bits()
    };
    ReduceLoop {
        partial: Box::new(partial),
        combine: Box::new(combine),
        // SAFETY: guaranteed by the caller.
        finish: Box::new(move |total, out| unsafe { out.cast::<T>().write(finish(f64::from_bits(total))) }),
        columns: ColumnLoops::new(
            |value: T| value.into().to_bits(),
            combine,
            move |total| finish(f64::from_bits(total)),
        ),
    }
}

/// A reduction whose partial results are elements.
fn plain<T: bytemuck::Pod>(
    of_row: impl Fn(&[T]) -> T + Send + Sync + 'static,
    f: impl Fn(T, T) -> T + Copy + Send + Sync + 'static,
) -> ReduceLoop {
    let combine = move |left, right| word(f(element(left), element(right)));
    ReduceLoop {
        // SAFETY: guaranteed by the caller.
        partial: Box::new(move |data, count| word(of_row(unsafe { elements(data, count) }))),
        combine: Box::new(combine),
        // SAFETY: guaranteed by the caller.
        finish: Box::new(|result, out| unsafe { out.cast::<T>().write(element(result)) }),
        columns: ColumnLoops::new(word::<T>, combine, element::<T>),
    }
}

fn chains<T: bytemuck::Pod + Send + Sync>(
    isa: Isa,
    identity: T,
    f: impl Fn(T, T) -> T + Copy + Send + Sync + 'static,
) -> ReduceLoop {
    plain(move |values| chained(isa, values, identity, f), f)
}

/// # Safety
///
/// There are that many elements at the address.
unsafe fn elements<'a, T>(data: *const u8, count: usize) -> &'a [T] {
    // SAFETY: guaranteed by the caller.
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

/// Reduces a row in a fixed order: [`CHAINS`] interleaved accumulators, combined pairwise.
fn chained<T: Copy>(isa: Isa, values: &[T], identity: T, f: impl Fn(T, T) -> T + Copy) -> T {
    /// # Safety
    ///
    /// The CPU has AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    unsafe fn avx512<T: Copy>(values: &[T], identity: T, f: impl Fn(T, T) -> T + Copy) -> T {
        body(values, identity, f)
    }
    /// # Safety
    ///
    /// The CPU has AVX2.
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
        // SAFETY: the instruction set is one that this CPU has.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512(values, identity, f) },
        // SAFETY: the same.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2(values, identity, f) },
        _ => body(values, identity, f),
    }
}
