//! Largest and smallest elements along a dimension, and where they are.

use warpforge_tensor::{ElementType, IntType};

use super::axis::bytes_of;
use super::element::{Element, for_element};
use crate::movement::{LayoutError, Shared};
use crate::pool::Pool;

/// Lanes that are compared at once.
const LANES: usize = 64;

/// What a piece looks at: where it begins, elements along the dimension, from one to the next, and side by side.
struct Lines {
    source: *const u8,
    length: usize,
    step: usize,
    lanes: usize,
}

/// Finds the extremes and the places of some lanes.
///
/// # Safety
///
/// All elements of the lines may be read.
type Find = unsafe fn(&Lines, values: *mut u8, places: &mut [u32; LANES]);

/// A planned search for the extreme element along a dimension. NaN is more extreme than all numbers, and of equal ones
/// the first is found.
#[derive(Debug, Clone)]
pub struct ArgExtreme {
    find: Find,
    element_size: usize,
    index_size: usize,
    length: usize,
    inner: usize,
    outer: usize,
}

impl ArgExtreme {
    /// Searches along `axis` of a row-major array for the largest or the smallest element; places are integers of a type of
    /// 32 or 64 bits.
    ///
    /// # Errors
    ///
    /// When the dimension is not there or empty, sizes get too large, or such elements are not compared.
    pub fn new(
        element: ElementType,
        dims: &[usize],
        axis: usize,
        largest: bool,
        index: ElementType,
    ) -> Result<Self, LayoutError> {
        let missing = LayoutError::Dimension { what: "a search", found: axis, rank: dims.len() };
        let &length = dims.get(axis).ok_or(missing)?;
        let element_size = element.byte_width();
        bytes_of(dims, element_size.max(size_of::<u64>()))?;
        if length == 0 || u32::try_from(length).is_err() {
            return Err(LayoutError::Sizes("there is no element to find, or there are too many"));
        }
        let index_size = match index {
            ElementType::Int(IntType::I32 | IntType::U32) => 4,
            ElementType::Int(IntType::I64 | IntType::U64) | ElementType::Index => 8,
            found => return Err(LayoutError::Element { what: "a place", found }),
        };
        let find: Option<Find> = for_element!(element, T => Some(match largest {
            true => find::<T, true>,
            false => find::<T, false>,
        }), else None);
        let find = find.ok_or(LayoutError::Element { what: "what is searched", found: element })?;
        let (outer, inner) = (bytes_of(&dims[..axis], 1)?, bytes_of(&dims[axis + 1..], 1)?);
        Ok(Self { find, element_size, index_size, length, inner, outer })
    }

    /// Writes the places, and the elements where they are wanted, as row-major arrays without the dimension.
    ///
    /// # Safety
    ///
    /// The array may be read; values and places may be written. None has a byte in common with another.
    pub unsafe fn run(&self, pool: &Pool, source: *const u8, values: Option<*mut u8>, places: *mut u8) {
        if self.inner == 0 {
            return;
        }
        let (source, values, places) = (Shared::new(source), Shared::new(values), Shared::new(places));
        let groups = self.inner.div_ceil(LANES);
        pool.run(self.outer * groups, &|piece, _| {
            let (outer, lane) = (piece / groups, piece % groups * LANES);
            let lanes = LANES.min(self.inner - lane);
            let from = (outer * self.length * self.inner + lane) * self.element_size;
            let to = outer * self.inner + lane;
            let source = source.get().wrapping_add(from);
            let lines = Lines { source, length: self.length, step: self.inner, lanes };
            let (mut found, mut best) = ([0u32; LANES], [0u64; LANES]);
            // SAFETY: the lanes are inside the arrays, and no other piece has them; an element has eight bytes at most.
            unsafe {
                (self.find)(&lines, best.as_mut_ptr().cast(), &mut found);
                if let Some(values) = values.get() {
                    let to = values.add(to * self.element_size);
                    std::ptr::copy_nonoverlapping(best.as_ptr().cast(), to, lanes * self.element_size);
                }
                for (at, &place) in found[..lanes].iter().enumerate() {
                    let to = places.get().add((to + at) * self.index_size);
                    match self.index_size {
                        4 => to.cast::<u32>().write_unaligned(place),
                        _ => to.cast::<u64>().write_unaligned(u64::from(place)),
                    }
                }
            }
        });
    }
}

/// # Safety
///
/// As for [`Find`].
unsafe fn find<T: Element, const LARGEST: bool>(lines: &Lines, values: *mut u8, places: &mut [u32; LANES]) {
    let source = lines.source.cast::<T>();
    // SAFETY: the caller's promise.
    let read = |at: usize, lane: usize| unsafe { source.add(at * lines.step + lane).read_unaligned() };
    let better = |x: T, best: T| {
        let beyond = if LARGEST { x > best } else { x < best };
        beyond || (x.is_nan() && !best.is_nan())
    };
    let more = |best: T, x: T| if LARGEST { best.larger(x) } else { best.smaller(x) };
    if lines.lanes == 1 {
        places[0] = 0;
        let mut best = read(0, 0);
        // A chunk at a time: whether one of it is better is known without asking for each.
        for start in (0..lines.length).step_by(LANES) {
            let chunk = start..(start + LANES).min(lines.length);
            if chunk.clone().fold(false, |any, at| any | better(read(at, 0), best)) {
                for at in chunk.clone().filter(|&at| at > 0) {
                    if better(read(at, 0), best) {
                        (best, places[0]) = (read(at, 0), at as u32);
                    }
                }
            }
            best = chunk.fold(best, |best, at| more(best, read(at, 0)));
        }
        // SAFETY: there is room for as many values as lanes.
        return unsafe { values.cast::<T>().write_unaligned(best) };
    }
    let mut best = [read(0, 0); LANES];
    for (lane, best) in best[..lines.lanes].iter_mut().enumerate() {
        (*best, places[lane]) = (read(0, lane), 0);
    }
    for at in 1..lines.length {
        for ((lane, best), place) in best[..lines.lanes].iter_mut().enumerate().zip(&mut *places) {
            let x = read(at, lane);
            *place = if better(x, *best) { at as u32 } else { *place };
            *best = more(*best, x);
        }
    }
    // SAFETY: there is room for as many values as lanes.
    unsafe { std::ptr::copy_nonoverlapping(best.as_ptr(), values.cast::<T>(), lines.lanes) };
}
