//! The order of the elements of a line.

use std::cmp::Ordering;

use warpforge_tensor::ElementType;

use crate::window::{Element, for_element};

/// When an element comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// The larger comes first.
    pub descending: bool,
    /// Equal elements come before each other too, so their order is turned round.
    pub or_equal: bool,
    /// Floats are in the order of IEEE 754's totalOrder; otherwise NaN is before and behind nothing, and zeros are equal.
    pub total: bool,
    /// Every NaN is larger than all numbers, and they are equal; not together with `total` or `or_equal`.
    pub nan_is_largest: bool,
}

/// The positions of the first `keep` of `length` elements `step` apart when they are sorted.
///
/// # Safety
///
/// The elements may be read.
pub(super) type Sorter = unsafe fn(*const u8, &Line, Comparison) -> Vec<u32>;

/// What is sorted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) step: usize,
    pub(super) length: usize,
    pub(super) keep: usize,
}

/// How lines of a type are sorted, where they can be.
pub(super) fn sorter(element: ElementType) -> Option<Sorter> {
    for_element!(element, T => Some(sorted::<T>), else None)
}

/// # Safety
///
/// As for [`Sorter`].
unsafe fn sorted<T: Element>(data: *const u8, line: &Line, comparison: Comparison) -> Vec<u32> {
    let &Line { step, length, keep } = line;
    let Comparison { descending, or_equal, total, nan_is_largest } = comparison;
    // SAFETY: the caller's promise.
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
        // Keys are numbers in the wanted order; with the position behind them no two are the same.
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

/// A stable sort that lives with a comparison that contradicts itself, and always does so in the same way.
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
