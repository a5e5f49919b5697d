//! Copies and concatenations.

use crate::data_movement::{Concat, Layout, LayoutError, StridedCopy, row_major};
use crate::testing::{indices, noise, position, with_pools};

/// The copy, element by element.
fn naive(size: usize, dims: &[usize], source: (&Layout, &[u8]), target: &Layout, result: &mut [u8]) {
    let place = |layout: &Layout, index: &[usize]| {
        let far: isize = index.iter().zip(&layout.strides).map(|(&at, &step)| at as isize * step).sum();
        (layout.offset as isize + far) as usize * size
    };
    for index in indices(dims) {
        let (from, to) = (place(source.0, &index), place(target, &index));
        result[to..to + size].copy_from_slice(&source.1[from..from + size]);
    }
}

fn check(size: usize, dims: &[usize], source: &Layout, target: &Layout, lengths: (usize, usize)) {
    let mut random = fastrand::Rng::with_seed(7);
    let data = noise(&mut random, lengths.0 * size);
    let copy = StridedCopy::new(size, dims, source, target).unwrap();
    let ours = with_pools(lengths.1 * size, |pool, result| {
        // SAFETY: the lengths are those that the layouts reach.
        unsafe { copy.run(pool, data.as_ptr(), result) };
    });
    let mut wanted = vec![0xa5; lengths.1 * size];
    naive(size, dims, (source, &data), target, &mut wanted);
    assert!(ours == wanted, "{size} bytes, {dims:?}: {source:?} to {target:?}");
}

fn permuted(random: &mut fastrand::Rng, rank: usize) -> Vec<usize> {
    let mut permutation: Vec<usize> = (0..rank).collect();
    random.shuffle(&mut permutation);
    permutation
}

/// A layout with permuted, padded and reversed dimensions, and the elements that it spans.
fn random_layout(random: &mut fastrand::Rng, dims: &[usize], repeats: bool) -> (Layout, usize) {
    let (mut strides, mut offset, mut step) = (vec![0; dims.len()], 0usize, 1usize);
    for dim in permuted(random, dims.len()) {
        if repeats && random.u8(..6) == 0 {
            continue;
        }
        let gap = if random.u8(..4) == 0 { random.usize(1..3) } else { 1 };
        let last = step * gap * dims[dim].saturating_sub(1);
        strides[dim] = (step * gap) as isize;
        if random.u8(..4) == 0 {
            strides[dim] = -strides[dim];
            offset += last;
        }
        step = step * gap * dims[dim].max(1);
    }
    (Layout { offset, strides }, step)
}

#[test]
fn random_layouts() {
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..600 {
        let rank = random.usize(..6);
        let most = [0, 300, 60, 20, 9, 6][rank];
        let dims: Vec<usize> = (0..rank).map(|_| random.usize(usize::from(round % 20 != 0)..=most)).collect();
        let size = *random.choice([1, 2, 3, 4, 8, 12, 16, 20].iter()).unwrap();
        let (source, from) = random_layout(&mut random, &dims, true);
        let (target, to) = random_layout(&mut random, &dims, false);
        check(size, &dims, &source, &target, (from, to));
    }
}

#[test]
fn transposes_of_every_element_size() {
    for size in [1, 2, 4, 8, 16, 5] {
        for dims in [[64, 64], [100, 37], [1, 50], [50, 1], [3, 700], [700, 3], [15, 17], [400, 300]] {
            let copy = StridedCopy::transpose(size, &dims, &[1, 0]).unwrap();
            let mut random = fastrand::Rng::with_seed(3);
            let data = noise(&mut random, dims[0] * dims[1] * size);
            let ours = with_pools(data.len(), |pool, result| {
                // SAFETY: both buffers have all elements.
                unsafe { copy.run(pool, data.as_ptr(), result) };
            });
            for (row, column) in (0..dims[0]).flat_map(|row| (0..dims[1]).map(move |column| (row, column))) {
                let (from, to) = ((row * dims[1] + column) * size, (column * dims[0] + row) * size);
                assert_eq!(data[from..from + size], ours[to..to + size], "{size} bytes, {dims:?}");
            }
        }
    }
}

#[test]
fn permutations_of_images_and_heads() {
    let mut random = fastrand::Rng::with_seed(5);
    for (dims, permutation) in [
        (vec![2, 3, 40, 50], vec![0, 2, 3, 1]),
        (vec![1, 40, 4, 64], vec![0, 2, 1, 3]),
        (vec![5, 4, 3], vec![2, 1, 0]),
    ] {
        let copy = StridedCopy::transpose(4, &dims, &permutation).unwrap();
        let data = noise(&mut random, dims.iter().product::<usize>() * 4);
        // SAFETY: both buffers have all elements.
        let ours = with_pools(data.len(), |pool, result| unsafe { copy.run(pool, data.as_ptr(), result) });
        let to: Vec<usize> = permutation.iter().map(|&dim| dims[dim]).collect();
        for index in indices(&to) {
            let mut from = vec![0; dims.len()];
            permutation.iter().zip(&index).for_each(|(&dim, &at)| from[dim] = at);
            let (from, to) = (position(&dims, &from) * 4, position(&to, &index) * 4);
            assert_eq!(data[from..from + 4], ours[to..to + 4]);
        }
    }
}

#[test]
fn long_runs_are_split_into_tasks() {
    let layout = Layout::row_major(&[1_000_003]).unwrap();
    check(4, &[1_000_003], &layout, &layout, (1_000_003, 1_000_003));
    let repeated = Layout { offset: 2, strides: vec![0, 1] };
    let target = Layout::row_major(&[1000, 300]).unwrap();
    check(4, &[1000, 300], &repeated, &target, (302, 300_000));
}

#[test]
fn concatenations() {
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..200 {
        let rank = random.usize(1..5);
        let mut dims: Vec<usize> = (0..rank).map(|_| random.usize(1..20)).collect();
        let axis = random.usize(..rank);
        let inputs: Vec<Vec<usize>> = (0..random.usize(1..5))
            .map(|_| {
                dims[axis] = random.usize(..12);
                dims.clone()
            })
            .collect();
        let data: Vec<Vec<u8>> =
            inputs.iter().map(|dims| noise(&mut random, dims.iter().product::<usize>() * 4)).collect();
        let parts: Vec<(&[usize], Layout)> =
            inputs.iter().map(|dims| (&**dims, Layout::row_major(dims).unwrap())).collect();
        let concat = Concat::new(4, &parts, axis).unwrap();
        let sources: Vec<*const u8> = data.iter().map(Vec::as_ptr).collect();
        let length = concat.dims().iter().product::<usize>() * 4;
        assert_eq!(concat.bytes(), length);
        // SAFETY: all buffers have all elements.
        let ours = with_pools(length, |pool, result| unsafe { concat.run(pool, &sources, result) });
        let mut start = 0;
        for (input, data) in inputs.iter().zip(&data) {
            for mut index in indices(input) {
                let from = position(input, &index) * 4;
                index[axis] += start;
                let to = position(concat.dims(), &index) * 4;
                assert_eq!(data[from..from + 4], ours[to..to + 4]);
            }
            start += input[axis];
        }
    }
}

/// Rows that several threads write; their runs are whole lines, many lines or no lines, and lie apart in their sources.
#[test]
fn rows_of_strided_sources() {
    let mut random = fastrand::Rng::with_seed(12);
    let (rows, widths) = (300, [16, 5, 32, 160]);
    let dims = widths.map(|width| [rows, width]);
    let data = widths.map(|width| noise(&mut random, (1 + rows * (width + 3)) * 4));
    let layout = |width: usize| Layout { offset: 1, strides: vec![width as isize + 3, 1] };
    let parts: Vec<(&[usize], Layout)> = dims.iter().map(|dims| (&dims[..], layout(dims[1]))).collect();
    let concat = Concat::new(4, &parts, 1).unwrap();
    let sources = data.each_ref().map(Vec::as_ptr);
    // SAFETY: all buffers have all elements.
    let ours = with_pools(concat.bytes(), |pool, result| unsafe { concat.run(pool, &sources, result) });
    let mut start = 0;
    for ((dims, layout), data) in parts.iter().zip(&data) {
        let whole = widths.iter().sum::<usize>();
        let target = Layout { offset: start, strides: vec![whole as isize, 1] };
        let mut wanted = ours.clone();
        naive(4, dims, (layout, data), &target, &mut wanted);
        assert!(ours == wanted, "{dims:?}");
        start += dims[1];
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    let layout = |strides: &[isize]| Layout { offset: 0, strides: strides.to_vec() };
    let one = layout(&[1]);
    assert!(matches!(StridedCopy::new(4, &[2, 2], &one, &layout(&[2, 1])), Err(LayoutError::Rank { .. })));
    assert_eq!(StridedCopy::new(4, &[usize::MAX], &one, &one).unwrap_err(), LayoutError::Overflow);
    assert_eq!(
        StridedCopy::new(8, &[3], &layout(&[isize::MAX / 8]), &one).unwrap_err(),
        LayoutError::Overflow
    );
    assert!(
        StridedCopy::transpose(4, &[2, 2], &[0, 0]).is_err()
            && StridedCopy::transpose(4, &[2, 2], &[0, 2]).is_err()
    );
    assert!(Concat::new(4, &[], 0).is_err());
    assert!(Concat::new(4, &[(&[2, 2], layout(&[2, 1])), (&[2, 3], layout(&[3, 1]))], 0).is_err());
    assert!(Concat::new(4, &[(&[2], one)], 1).is_err());
    assert_eq!(row_major(&[usize::MAX, 2]), Err(LayoutError::Overflow));
}
