//! Reductions of several arrays together by any function, such as the largest element and its index.
//!
//! Results along a dimension are the lanes of a loop over the reduced elements. Few results of many elements each are
//! reduced in chunks, which are the lanes, and the chunks then pairwise; the order of the elements stays as it is. Functions that compare
//! are not associative where there is NaN: such elements are reduced one after the other.

use half::{bf16, f16};
use warpforge_tensor::ElementType;

use super::error::LaneFunctionError;
use super::function::{LaneFunction, LaneLoop};
use crate::data_movement::{LayoutError, row_major};
use crate::fused_loop::Scratch;
use crate::pool::Pool;
use crate::shared_ptr::SharedPtr;

/// Most results that are lanes of a task.
const LANES: usize = 512;

/// Most chunks of one result: the elements that they are at lie in as many cache lines per array.
const CHUNKS: usize = 128;

/// Elements from which on a result is reduced in chunks where they are contiguous.
const MANY_ELEMENTS: usize = 2048;

/// Results from which on they are lanes, however many elements they have, unless those are contiguous.
const MANY_LANES: usize = 16;

/// A dimension, or several that lie one after the other.
#[derive(Debug, Clone, Copy)]
struct Extent {
    size: usize,
    /// From one element to the next, in elements.
    stride: usize,
    /// The same in the results; nothing along reduced dimensions.
    result_stride: usize,
}

/// How results are computed.
#[derive(Debug)]
enum Schedule {
    /// Results along a dimension are lanes; the reduced dimensions are walked in order.
    Results { lanes: Extent, reduced: Vec<Extent>, step: LaneLoop },
    /// Chunks of the elements of one result are lanes, `length` elements each; what is left over is lanes of one element.
    Chunks { elements: Extent, chunks: usize, length: usize, step: LaneLoop, pairs: LaneLoop },
}

/// A planned reduction of row-major arrays of one shape.
#[derive(Debug)]
pub struct VariadicReduce {
    types: Vec<ElementType>,
    /// Bytes of an element of each array, and of each result.
    elements: Vec<usize>,
    accumulators: Vec<usize>,
    /// The kept dimensions that are not lanes, the outermost first.
    outer: Vec<Extent>,
    schedule: Schedule,
}

impl VariadicReduce {
    /// Reduces arrays of `dims` over `axes` by a function of the accumulators and one element of each array, which gives the new
    /// accumulators.
    ///
    /// # Errors
    ///
    /// When sizes, axes or types are inconsistent, or there is no loop for the function.
    pub fn new(dims: &[usize], axes: &[usize], function: &LaneFunction) -> Result<Self, LaneFunctionError> {
        let count = function.results.len();
        if function.arguments.len() != 2 * count || count == 0 {
            return Err(LayoutError::Sizes("a reduction takes an accumulator and an element of each").into());
        }
        if let Some(&found) = axes.iter().find(|&&axis| axis >= dims.len()) {
            return Err(LayoutError::Dimension { what: "a reduction", found, rank: dims.len() }.into());
        }
        let (accumulators, types) = function.arguments.split_at(count);
        let strides: Vec<usize> = row_major(dims)?.iter().map(|stride| stride.unsigned_abs()).collect();
        let kept: Vec<usize> = (0..dims.len()).filter(|axis| !axes.contains(axis)).collect();
        let sizes: Vec<usize> = kept.iter().map(|&axis| dims[axis]).collect();
        let result_strides = row_major(&sizes)?;
        let kept_dims = kept.iter().zip(&result_strides).map(|(&axis, stride)| (axis, stride.unsigned_abs()));
        let reduced_dims = (0..dims.len()).filter(|axis| axes.contains(axis)).map(|axis| (axis, 0));
        let (mut outer, reduced) = (runs(dims, &strides, kept_dims), runs(dims, &strides, reduced_dims));
        // The largest dimension of the results is their lanes.
        let largest = (0..outer.len()).max_by_key(|&at| outer[at].size);
        let single = Extent { size: 1, stride: 0, result_stride: 0 };
        let lanes = largest.map_or(single, |at| outer[at]);
        let schedule = match reduced.as_slice() {
            &[elements]
                if accumulators == types
                    && elements.size > 1
                    && (lanes.size < MANY_LANES
                        || (elements.stride == 1 && elements.size >= MANY_ELEMENTS)) =>
            {
                let chunks = elements.size.min(CHUNKS);
                let length = elements.size / chunks;
                let apart = length * elements.stride;
                Schedule::Chunks {
                    elements,
                    chunks,
                    length,
                    step: loop_of(function, chunks, accumulators, apart)?,
                    pairs: pairs_of(function, chunks, accumulators)?,
                }
            }
            _ => {
                largest.map(|at| outer.remove(at));
                let step = loop_of(function, lanes.size.clamp(1, LANES), accumulators, lanes.stride)?;
                Schedule::Results { lanes, reduced, step }
            }
        };
        let bytes = |types: &[ElementType]| types.iter().map(|element| element.byte_width()).collect();
        Ok(Self {
            types: types.to_vec(),
            elements: bytes(types),
            accumulators: bytes(accumulators),
            outer,
            schedule,
        })
    }

    /// Reduces the arrays from the initial values on, one each. Results are row-major arrays of the kept dimensions.
    ///
    /// # Safety
    ///
    /// There is an aligned pointer for each array, initial value and result; the first two may be read, the last written, and results overlap
    /// nothing else.
    pub unsafe fn run(&self, pool: &Pool, arrays: &[*const u8], initial: &[*const u8], results: &[*mut u8]) {
        let arrays: Vec<_> = arrays.iter().map(|&array| SharedPtr::new(array)).collect();
        let initial: Vec<_> = initial.iter().map(|&value| SharedPtr::new(value)).collect();
        let results: Vec<_> = results.iter().map(|&result| SharedPtr::new(result)).collect();
        let outer: usize = self.outer.iter().map(|extent| extent.size).product();
        let parts = match &self.schedule {
            Schedule::Results { lanes, .. } => lanes.size.div_ceil(LANES),
            Schedule::Chunks { .. } => 1,
        };
        pool.run(outer * parts, &|task, _| {
            let (at, part) = (task / parts, task % parts);
            let base = position(&self.outer, at, |extent| extent.stride);
            let result = position(&self.outer, at, |extent| extent.result_stride);
            let mut state = State::new(self, &initial);
            // SAFETY: guaranteed by the caller; tasks write different results, and positions are inside of the arrays.
            unsafe {
                let arrays: Vec<*const u8> = arrays
                    .iter()
                    .zip(&self.elements)
                    .map(|(array, size)| array.get().add(base * size))
                    .collect();
                let (first, apart, count) = match &self.schedule {
                    Schedule::Results { lanes, reduced, step } => {
                        let first = part * LANES;
                        let count = LANES.min(lanes.size - first);
                        state.fill(count);
                        let steps: usize = reduced.iter().map(|extent| extent.size).product();
                        for number in 0..steps {
                            let at = position(reduced, number, |extent| extent.stride);
                            state.step(step, &arrays, at + first * lanes.stride, count);
                        }
                        (result + first * lanes.result_stride, lanes.result_stride, count)
                    }
                    Schedule::Chunks { elements, .. } => {
                        state.fill(1);
                        match (0..arrays.len()).any(|at| has_nan(self.types[at], arrays[at], elements)) {
                            true => state.in_order(&arrays),
                            false => state.in_chunks(&arrays),
                        }
                        (result, 1, 1)
                    }
                };
                for (at, (result, &size)) in results.iter().zip(&self.accumulators).enumerate() {
                    let from = state.current[at].as_ptr().cast::<u8>();
                    for lane in 0..count {
                        let to = result.get().add((first + lane * apart) * size);
                        to.copy_from_nonoverlapping(from.add(lane * size), size);
                    }
                }
            }
        });
    }
}

/// The loop of a step: accumulators are contiguous, elements that far apart.
fn loop_of(
    function: &LaneFunction,
    lanes: usize,
    accumulators: &[ElementType],
    apart: usize,
) -> Result<LaneLoop, LaneFunctionError> {
    let apart = isize::try_from(apart).map_err(|_| LayoutError::Overflow)?;
    let count = accumulators.len();
    let strides: Vec<isize> = (0..2 * count).map(|at| if at < count { 1 } else { apart }).collect();
    function.over(lanes, &strides, accumulators)
}

/// The loop that combines neighbouring lanes.
fn pairs_of(
    function: &LaneFunction,
    lanes: usize,
    accumulators: &[ElementType],
) -> Result<LaneLoop, LaneFunctionError> {
    function.over(lanes, &vec![2; 2 * accumulators.len()], accumulators)
}

/// Dimensions of a row-major array with their strides in the results; neighbours are one.
fn runs(dims: &[usize], strides: &[usize], axes: impl Iterator<Item = (usize, usize)>) -> Vec<Extent> {
    let mut runs: Vec<Extent> = Vec::new();
    let mut next = None;
    for (axis, result_stride) in axes {
        let extent = Extent { size: dims[axis], stride: strides[axis], result_stride };
        match runs.last_mut() {
            Some(last) if next == Some(axis) => *last = Extent { size: last.size * extent.size, ..extent },
            _ => runs.push(extent),
        }
        next = Some(axis + 1);
    }
    runs
}

/// Where a position of some dimensions is, by one of their strides.
fn position(dims: &[Extent], mut at: usize, stride: impl Fn(&Extent) -> usize) -> usize {
    let mut position = 0;
    for extent in dims.iter().rev() {
        position += at % extent.size.max(1) * stride(extent);
        at /= extent.size.max(1);
    }
    position
}

/// The accumulators of a task.
struct State<'a> {
    plan: &'a VariadicReduce,
    initial: &'a [SharedPtr<*const u8>],
    scratch: Scratch,
    /// A buffer for each accumulator, and for its next value.
    current: Vec<Vec<u64>>,
    next: Vec<Vec<u64>>,
}

impl<'a> State<'a> {
    fn new(plan: &'a VariadicReduce, initial: &'a [SharedPtr<*const u8>]) -> Self {
        let mut state =
            Self { plan, initial, scratch: Scratch::new(), current: Vec::new(), next: Vec::new() };
        (state.current, state.next) = (state.buffers(), state.buffers());
        state
    }

    /// A buffer for each accumulator.
    fn buffers(&self) -> Vec<Vec<u64>> {
        let lanes = match &self.plan.schedule {
            Schedule::Results { lanes, .. } => lanes.size.min(LANES),
            Schedule::Chunks { chunks, .. } => *chunks,
        };
        self.plan.accumulators.iter().map(|size| vec![0; (lanes * size).div_ceil(size_of::<u64>())]).collect()
    }

    /// The initial values in the first lanes.
    ///
    /// # Safety
    ///
    /// The initial values may be read.
    unsafe fn fill(&mut self, lanes: usize) {
        let buffers = self.current.iter_mut().zip(self.initial).zip(&self.plan.accumulators);
        for ((buffer, value), &size) in buffers {
            let to = buffer.as_mut_ptr().cast::<u8>();
            for lane in 0..lanes {
                // SAFETY: the buffer has that many lanes; the caller guarantees the value.
                unsafe { to.add(lane * size).copy_from_nonoverlapping(value.get(), size) };
            }
        }
    }

    /// Elements of the arrays, that far apart, as the accumulators of the first lanes.
    ///
    /// # Safety
    ///
    /// The elements may be read.
    unsafe fn load(&mut self, arrays: &[*const u8], first: usize, apart: usize, lanes: usize) {
        let buffers = self.current.iter_mut().zip(arrays).zip(&self.plan.elements);
        for ((buffer, &array), &size) in buffers {
            let to = buffer.as_mut_ptr().cast::<u8>();
            for lane in 0..lanes {
                // SAFETY: the buffer has that many lanes; the caller guarantees the elements.
                unsafe {
                    let from = array.add((first + lane * apart) * size);
                    to.add(lane * size).copy_from_nonoverlapping(from, size);
                }
            }
        }
    }

    /// Applies the function to the accumulators and the elements at a position.
    ///
    /// # Safety
    ///
    /// The elements may be read with the strides of the loop.
    unsafe fn step(&mut self, step: &LaneLoop, arrays: &[*const u8], at: usize, lanes: usize) {
        let accumulators = self.current.iter().map(|buffer| buffer.as_ptr().cast::<u8>());
        let elements =
            arrays.iter().zip(&self.plan.elements).map(|(array, size)| array.wrapping_add(at * size));
        let arguments: Vec<*const u8> = accumulators.chain(elements).collect();
        let results: Vec<*mut u8> =
            self.next.iter_mut().map(|buffer| buffer.as_mut_ptr().cast::<u8>()).collect();
        // SAFETY: the buffers have that many lanes; the caller guarantees the elements.
        unsafe { step.run(&mut self.scratch, &arguments, &results, lanes) };
        std::mem::swap(&mut self.current, &mut self.next);
    }

    /// Reduces the elements of a result in chunks, from the value in the first lane on.
    ///
    /// # Safety
    ///
    /// The elements may be read.
    unsafe fn in_chunks(&mut self, arrays: &[*const u8]) {
        let Schedule::Chunks { elements, chunks, length, step, pairs } = &self.plan.schedule else { return };
        let mut total = std::mem::take(&mut self.current);
        let chunked = chunks * length;
        let rounds = [(0, *chunks, *length), (chunked, elements.size - chunked, 1)];
        for (first, chunks, length) in rounds.into_iter().filter(|&(_, chunks, _)| chunks > 0) {
            self.current = self.buffers();
            // SAFETY: guaranteed by the caller.
            unsafe {
                self.load(arrays, first * elements.stride, length * elements.stride, chunks);
                for number in 1..length {
                    self.step(step, arrays, (first + number) * elements.stride, chunks);
                }
                self.combine(pairs, chunks, &mut total);
            }
        }
        self.current = total;
    }

    /// Reduces the elements of a result one after the other, from the value in the first lane on.
    ///
    /// # Safety
    ///
    /// The elements may be read.
    unsafe fn in_order(&mut self, arrays: &[*const u8]) {
        let Schedule::Chunks { elements, pairs, .. } = &self.plan.schedule else { return };
        let mut total = std::mem::take(&mut self.current);
        for number in 0..elements.size {
            let at =
                |(array, size): (&*const u8, &usize)| array.wrapping_add(number * elements.stride * size);
            let right = arrays.iter().zip(&self.plan.elements).map(at).collect();
            // SAFETY: guaranteed by the caller.
            unsafe { self.accumulate(pairs, right, &mut total) };
        }
        self.current = total;
    }

    /// Combines the lanes pairwise until one is left, and that with the total, in order.
    ///
    /// # Safety
    ///
    /// The first lanes have values.
    unsafe fn combine(&mut self, pairs: &LaneLoop, mut lanes: usize, total: &mut Vec<Vec<u64>>) {
        let sizes = &self.plan.accumulators;
        let at = |buffers: &[Vec<u64>], lane: usize| -> Vec<*const u8> {
            let buffers = buffers.iter().zip(sizes);
            buffers.map(|(buffer, size)| buffer.as_ptr().cast::<u8>().wrapping_add(lane * size)).collect()
        };
        while lanes > 1 {
            let arguments = [at(&self.current, 0), at(&self.current, 1)].concat();
            let results: Vec<*mut u8> =
                self.next.iter_mut().map(|buffer| buffer.as_mut_ptr().cast::<u8>()).collect();
            // SAFETY: there are that many pairs. A lane without another is taken as it is.
            unsafe {
                pairs.run(&mut self.scratch, &arguments, &results, lanes / 2);
                if !lanes.is_multiple_of(2) {
                    for ((from, to), &size) in at(&self.current, lanes - 1).iter().zip(&results).zip(sizes) {
                        to.add(lanes / 2 * size).copy_from_nonoverlapping(*from, size);
                    }
                }
            }
            std::mem::swap(&mut self.current, &mut self.next);
            lanes = lanes.div_ceil(2);
        }
        let right = at(&self.current, 0);
        // SAFETY: one lane is left.
        unsafe { self.accumulate(pairs, right, total) };
    }

    /// Combines the total with one more element of each array.
    ///
    /// # Safety
    ///
    /// The elements may be read.
    unsafe fn accumulate(&mut self, pairs: &LaneLoop, right: Vec<*const u8>, total: &mut Vec<Vec<u64>>) {
        let left = total.iter().map(|buffer| buffer.as_ptr().cast::<u8>());
        let arguments: Vec<*const u8> = left.chain(right).collect();
        let results: Vec<*mut u8> =
            self.next.iter_mut().map(|buffer| buffer.as_mut_ptr().cast::<u8>()).collect();
        // SAFETY: the total has one lane; the caller guarantees the elements.
        unsafe { pairs.run(&mut self.scratch, &arguments, &results, 1) };
        std::mem::swap(total, &mut self.next);
    }
}

/// Whether NaN is among some elements of an array.
///
/// # Safety
///
/// The elements may be read and are aligned.
unsafe fn has_nan(element: ElementType, array: *const u8, elements: &Extent) -> bool {
    /// # Safety
    ///
    /// As for the function around.
    unsafe fn any<T: Copy>(array: *const u8, elements: &Extent, is_nan: impl Fn(T) -> bool) -> bool {
        let array = array.cast::<T>();
        // SAFETY: guaranteed by the caller.
        (0..elements.size).any(|at| is_nan(unsafe { array.add(at * elements.stride).read() }))
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        match element {
            ElementType::F64 => any(array, elements, f64::is_nan),
            ElementType::F32 => any(array, elements, f32::is_nan),
            ElementType::BF16 => any(array, elements, bf16::is_nan),
            ElementType::F16 => any(array, elements, f16::is_nan),
            _ => false,
        }
    }
}
