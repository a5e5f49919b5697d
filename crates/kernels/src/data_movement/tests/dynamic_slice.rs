//! Dynamic slices: slices with start indices from data.

use crate::data_movement::DynamicSlice;
use crate::testing::{indices, noise, position, with_pools};

#[test]
fn random_dynamic_slices_and_updates() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..100 {
        let rank = random.usize(..4);
        let dims: Vec<usize> = (0..rank).map(|_| random.usize(1..[0, 90, 30, 12][rank])).collect();
        let sizes: Vec<usize> = dims.iter().map(|&dim| random.usize(..=dim)).collect();
        let starts: Vec<i64> = dims
            .iter()
            .map(|&dim| *random.choice(&[i64::MIN, -1, dim as i64 / 2, i64::MAX]).unwrap())
            .collect();
        let whole = noise(&mut random, dims.iter().product::<usize>() * 4);
        let part = noise(&mut random, sizes.iter().product::<usize>() * 4);
        let (read, update) =
            (DynamicSlice::read(4, &dims, &sizes).unwrap(), DynamicSlice::update(4, &dims, &sizes).unwrap());
        let taken = with_pools(part.len(), |pool, result| {
            // SAFETY: both buffers have all elements.
            unsafe { read.run(pool, &starts, whole.as_ptr(), result) };
        });
        let updated = with_pools(whole.len(), |pool, result| {
            // SAFETY: all buffers have all elements.
            unsafe {
                std::ptr::copy_nonoverlapping(whole.as_ptr(), result, whole.len());
                update.run(pool, &starts, part.as_ptr(), result);
            }
        });
        let mut wanted = whole.clone();
        for index in indices(&sizes) {
            let place =
                |dim: usize| starts[dim].clamp(0, (dims[dim] - sizes[dim]) as i64) as usize + index[dim];
            let inside: Vec<usize> = (0..rank).map(place).collect();
            let (at, inner) = (position(&dims, &inside) * 4, position(&sizes, &index) * 4);
            assert_eq!(taken[inner..inner + 4], whole[at..at + 4]);
            wanted[at..at + 4].copy_from_slice(&part[inner..inner + 4]);
        }
        assert!(updated == wanted, "{sizes:?} of {dims:?}");
    }
    assert!(DynamicSlice::read(4, &[2], &[3]).is_err() && DynamicSlice::update(4, &[2], &[]).is_err());
}
