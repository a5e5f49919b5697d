//! Extremes and their places.

use warpforge_tensor::ElementType;

use crate::testing::{indices, position, with_pools};
use crate::window::ArgExtreme;

#[test]
fn random_arrays() {
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..80 {
        let dims = [random.usize(..4), random.usize(1..300), random.usize(1..90)];
        let axis = if round % 2 == 0 { 1 } else { 2 };
        let data: Vec<f32> = (0..dims.iter().product())
            .map(|_| match random.u16(..400) {
                0 => f32::NAN,
                1 => -0.0,
                _ => random.i32(-50..50) as f32,
            })
            .collect();
        let largest = random.bool();
        let plan = ArgExtreme::new(ElementType::F32, &dims, axis, largest, ElementType::I64).unwrap();
        let mut kept = dims.to_vec();
        kept[axis] = 1;
        let count: usize = kept.iter().product();
        let ours = with_pools(count * 12, |pool, result| {
            // SAFETY: all buffers have all elements.
            unsafe { plan.run(pool, data.as_ptr().cast(), Some(result.add(count * 8)), result) };
        });
        for index in indices(&kept) {
            let at = |place: usize| {
                let mut index = index.clone();
                index[axis] = place;
                data[position(&dims, &index)]
            };
            let (mut place, mut best) = (0, at(0));
            for (next, x) in (0..dims[axis]).map(|next| (next, at(next))) {
                if !best.is_nan() && (x.is_nan() || if largest { x > best } else { x < best }) {
                    (place, best) = (next, x);
                }
            }
            let to = position(&kept, &index);
            assert_eq!(ours[to * 8..][..8], (place as u64).to_ne_bytes(), "{dims:?} along {axis}");
            let value: f32 = bytemuck::pod_read_unaligned(&ours[count * 8 + to * 4..][..4]);
            assert!(value == best || (value.is_nan() && best.is_nan()));
        }
    }
}

#[test]
fn places_of_32_bits_and_other_elements() {
    let data = [4u8, 9, 2, 9, 2, 7];
    let find = |largest: bool| {
        let plan = ArgExtreme::new(ElementType::U8, &[2, 3], 1, largest, ElementType::I32).unwrap();
        // SAFETY: both buffers have all elements.
        with_pools(8, |pool, result| unsafe { plan.run(pool, data.as_ptr(), None, result) })
    };
    assert_eq!(find(true), [1u32, 0].map(u32::to_ne_bytes).concat());
    assert_eq!(find(false), [2u32, 1].map(u32::to_ne_bytes).concat());
    let new = |dims: &[usize], index| ArgExtreme::new(ElementType::F32, dims, 0, true, index).is_err();
    assert!(new(&[], ElementType::I64) && new(&[0], ElementType::I64) && new(&[1], ElementType::I8));
}
