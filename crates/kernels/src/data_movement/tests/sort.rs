//! Sorting.

use warpforge_tensor::ElementType;

use crate::data_movement::{Comparison, Sort, SortSpec};
use crate::testing::{indices, position, with_pools};

const COMPARISONS: [Comparison; 8] = {
    let all = [false, true];
    let mut list =
        [Comparison { descending: false, or_equal: false, total: false, nan_is_largest: false }; 8];
    let mut at = 0;
    while at < 8 {
        list[at] = Comparison {
            descending: all[at & 1],
            or_equal: all[at >> 1 & 1],
            total: all[at >> 2],
            nan_is_largest: false,
        };
        at += 1;
    }
    list
};

fn before(comparison: Comparison, a: f32, b: f32) -> bool {
    let order = if comparison.total { Some(a.total_cmp(&b)) } else { a.partial_cmp(&b) };
    let order = if comparison.descending { order.map(std::cmp::Ordering::reverse) } else { order };
    order.is_some_and(|order| order.is_lt() || (comparison.or_equal && order.is_eq()))
}

/// The sorts of a dimension with positions as a second operand: keys and positions.
fn run(
    keys: &[f32],
    dims: &[usize],
    axis: usize,
    comparison: Comparison,
    keep: Option<usize>,
) -> (Vec<u8>, Vec<u8>) {
    let places: Vec<u64> = indices(dims).map(|index| index[axis] as u64).collect();
    let spec = SortSpec {
        dims: dims.to_vec(),
        axis,
        operands: vec![8, 4],
        key: (1, ElementType::F32),
        comparison,
        keep,
    };
    let sort = Sort::new(spec).unwrap();
    let mut kept = dims.to_vec();
    kept[axis] = keep.unwrap_or(dims[axis]).min(dims[axis]);
    let count: usize = kept.iter().product();
    let both = with_pools(count * 12, |pool, result| {
        // SAFETY: all buffers have all elements.
        unsafe {
            let targets = [result, result.add(count * 8)];
            sort.run(pool, &[places.as_ptr().cast(), keys.as_ptr().cast()], &targets);
        }
    });
    (both[count * 8..].to_vec(), both[..count * 8].to_vec())
}

#[test]
fn random_lines() {
    let mut random = fastrand::Rng::with_seed(6);
    for round in 0..120 {
        let dims = [random.usize(1..5), random.usize(1..40), random.usize(1..5)];
        let axis = random.usize(..3);
        let nan = round % 3 == 0;
        let keys: Vec<f32> = (0..dims.iter().product())
            .map(|_| match random.u8(..30) {
                0 if nan => f32::NAN,
                1 => -0.0,
                2 => f32::NEG_INFINITY,
                _ => random.i32(-9..9) as f32,
            })
            .collect();
        for comparison in COMPARISONS {
            let (sorted, places) = run(&keys, &dims, axis, comparison, None);
            let (sorted, places): (&[f32], Vec<u64>) =
                (bytemuck::cast_slice(&sorted), bytemuck::pod_collect_to_vec(&places));
            let unordered = nan && !comparison.total;
            for index in indices(&dims) {
                let at = position(&dims, &index);
                let mut from = index.clone();
                from[axis] = places[at] as usize;
                assert_eq!(sorted[at].to_bits(), keys[position(&dims, &from)].to_bits());
                if index[axis] > 0 && !unordered {
                    let mut previous = index.clone();
                    previous[axis] -= 1;
                    let previous = position(&dims, &previous);
                    // Equal ones are in their order, or in the reverse of it.
                    let strict = Comparison { or_equal: false, ..comparison };
                    assert!(!before(strict, sorted[at], sorted[previous]));
                    if !before(strict, sorted[previous], sorted[at]) {
                        assert_eq!(places[previous] < places[at], !comparison.or_equal);
                    }
                }
            }
            // All positions are there once.
            let mut counted = places.clone();
            let mut all: Vec<u64> = indices(&dims).map(|index| index[axis] as u64).collect();
            counted.sort_unstable();
            all.sort_unstable();
            assert_eq!(counted, all);
            let (few, _) = run(&keys, &dims, axis, comparison, Some(3));
            let whole = indices(&dims).zip(sorted).filter(|(index, _)| index[axis] < 3).map(|(_, &key)| key);
            assert!(
                bytemuck::pod_collect_to_vec::<u8, f32>(&few)
                    .iter()
                    .map(|x| x.to_bits())
                    .eq(whole.map(f32::to_bits))
            );
        }
    }
}

#[test]
fn integers_of_every_type() {
    macro_rules! check {
        ($($own:ident $element:ident)*) => {$({
            let keys = [3, $own::MIN, 0, $own::MAX, 3, 1];
            let spec = SortSpec {
                dims: vec![6],
                axis: 0,
                operands: vec![size_of::<$own>()],
                key: (0, ElementType::$element),
                comparison: COMPARISONS[1],
                keep: None,
            };
            let sort = Sort::new(spec).unwrap();
            let ours = with_pools(size_of_val(&keys), |pool, result| {
                // SAFETY: both buffers have all elements.
                unsafe { sort.run(pool, &[keys.as_ptr().cast()], &[result]) };
            });
            let mut wanted = keys;
            wanted.sort_unstable_by(|a, b| b.cmp(a));
            assert_eq!(ours, bytemuck::cast_slice::<$own, u8>(&wanted));
        })*};
    }
    check!(i8 I8 i16 I16 i32 I32 i64 I64 u8 U8 u16 U16 u32 U32 u64 U64);
}

#[test]
fn invalid_parameters_are_rejected() {
    let spec = |axis: usize, key: (usize, ElementType)| SortSpec {
        dims: vec![4],
        axis,
        operands: vec![4],
        key,
        comparison: COMPARISONS[0],
        keep: None,
    };
    assert!(Sort::new(spec(0, (0, ElementType::F32))).is_ok());
    assert!(Sort::new(spec(1, (0, ElementType::F32))).is_err());
    assert!(Sort::new(spec(0, (1, ElementType::F32))).is_err());
    assert!(Sort::new(spec(0, (0, ElementType::F64))).is_err());
}
