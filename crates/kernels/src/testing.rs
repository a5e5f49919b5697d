//! Helpers of the kernel tests.

use std::num::NonZeroUsize;

use crate::pool::Pool;

/// Runs with one, two and three threads, asserts equal results and returns them.
pub(crate) fn with_pools(length: usize, run: impl Fn(&Pool, *mut u8)) -> Vec<u8> {
    let results: Vec<Vec<u8>> = (1..=3)
        .map(|threads| {
            let pool = Pool::new(NonZeroUsize::new(threads).unwrap()).unwrap();
            // Writes past the end are detected.
            let mut result = vec![0xa5u8; length + 64];
            run(&pool, result.as_mut_ptr());
            assert!(result[length..].iter().all(|&byte| byte == 0xa5), "written beyond the end");
            result.truncate(length);
            result
        })
        .collect();
    assert_eq!(results[0], results[1], "two threads");
    assert_eq!(results[0], results[2], "three threads");
    results.into_iter().next().unwrap()
}

/// Random bytes.
pub(crate) fn noise(random: &mut fastrand::Rng, length: usize) -> Vec<u8> {
    std::iter::repeat_with(|| random.u8(..)).take(length).collect()
}

/// Every index into `dims`, the last dimension fastest.
pub(crate) fn indices(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    let count: usize = dims.iter().product();
    (0..count).map(move |mut position| {
        let mut index = vec![0; dims.len()];
        for (at, &size) in index.iter_mut().zip(dims).rev() {
            *at = position % size;
            position /= size;
        }
        index
    })
}

/// The position of an index in a row-major array.
pub(crate) fn position(dims: &[usize], index: &[usize]) -> usize {
    dims.iter().zip(index).fold(0, |position, (&size, &at)| position * size + at)
}
