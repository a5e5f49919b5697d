//! Comparison and sorting of lines.

use std::cmp::Ordering;

use warpforge_tensor::ElementType;

use crate::reduce::{ReduceElement, for_element};

/// The comparator of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// Descending order.
    pub descending: bool,
    /// The comparator is true for equal elements too, which reverses their order.
    pub or_equal: bool,
    /// Floats are compared by IEEE 754 totalOrder; otherwise NaN is unordered, and zeros are equal.
    pub total: bool,
    /// NaN are equal and larger than all other values; not with `total` or `or_equal`.
    pub nan_is_largest: bool,
}

/// The positions of the first `keep` of `length` elements `step` apart when they are sorted.
///
/// # Safety
///
/// The elements may be read.
pub(super) type Sorter = unsafe fn(*const u8, &SortLine, Comparison) -> Vec<u32>;

/// A line to sort.
#[derive(Debug, Clone, Copy)]
pub(super) struct SortLine {
    pub(super) step: usize,
    pub(super) length: usize,
    pub(super) keep: usize,
}

/// The sort function of an element type, if supported.
pub(super) fn sorter(element: ElementType) -> Option<Sorter> {
    for_element!(element, T => Some(sorted::<T>), else None)
}

/// # Safety
///
/// As for [`Sorter`].
unsafe fn sorted<T: ReduceElement>(data: *const u8, line: &SortLine, comparison: Comparison) -> Vec<u32> {
    let &SortLine { step, length, keep } = line;
    let Comparison { descending, or_equal, total, nan_is_largest } = comparison;
    // SAFETY: guaranteed by the caller.
    let values: Vec<T> =
        (0..length).map(|at| unsafe { data.cast::<T>().add(at * step).read_unaligned() }).collect();
    let before = |a: T, b: T| {
        let order = if total { Some(a.total_order(b)) } else { a.partial_cmp(&b) };
        let wanted = if descending { Ordering::Greater } else { Ordering::Less };
        order.is_some_and(|order| order == wanted || (or_equal && order.is_eq()))
    };
    let ordered = total || nan_is_largest || !values.iter().any(|value| value.is_nan());
    let mut order: Vec<u32>;
    if ordered && !or_equal {
        // Unsigned keys in the requested order, made unique by the position.
        let key = |value: T| {
            let key = match (total, nan_is_largest && value.is_nan()) {
                (true, _) => value.total_key(),
                (false, true) => u64::MAX,
                (false, false) => value.partial_key(),
            };
            if descending { !key } else { key }
        };
        let mut keys: Vec<(u64, u32)> = values.iter().zip(0..).map(|(&value, at)| (key(value), at)).collect();
        if keep < length {
            keys.select_nth_unstable(keep);
            keys.truncate(keep);
        }
        keys.sort_unstable();
        order = keys.into_iter().map(|(_, at)| at).collect();
    } else {
        order = (0..length as u32).collect();
        let mut spare = order.clone();
        merge_sort(&mut order, &mut spare, &|a, b| before(values[a as usize], values[b as usize]));
    }
    order.truncate(keep);
    order
}

/// A stable, deterministic sort for comparators that are not a strict weak order.
fn merge_sort(order: &mut [u32], spare: &mut [u32], before: &impl Fn(u32, u32) -> bool) {
    if order.len() < 2 {
        return;
    }
    let middle = order.len() / 2;
    merge_sort(&mut order[..middle], &mut spare[..middle], before);
    merge_sort(&mut order[middle..], &mut spare[middle..], before);
    spare.copy_from_slice(order);
    let (left, right) = spare.split_at(middle);
    let (mut i, mut j) = (0, 0);
    for slot in order.iter_mut() {
        let take_right = j < right.len() && (i == left.len() || before(right[j], left[i]));
        *slot = if take_right { right[j] } else { left[i] };
        if take_right { j += 1 } else { i += 1 }
    }
}
