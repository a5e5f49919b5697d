//! Runs the gather.

use warpforge_tensor::ElementType;

use super::{RandomIndices, random_indices};
use crate::data_movement::{Gather, GatherSpec, Indices, LayoutError};
use crate::testing::{indices, noise, position, with_pools};

/// Gathers elements of 4 bytes one at a time.
fn naive(spec: &GatherSpec, dims: &[usize], operand: &[u8], starts: &[i32]) -> Vec<u8> {
    let Indices { vector_dim, map, batching, dims: index_dims, .. } = &spec.indices;
    let mut result = vec![0; dims.iter().product::<usize>() * 4];
    for index in indices(dims) {
        let (mut window, mut batch) = (Vec::new(), Vec::new());
        for (dim, &at) in index.iter().enumerate() {
            if spec.offset_dims.contains(&dim) { window.push(at) } else { batch.push(at) }
        }
        let mut full = vec![0; spec.operand.len()];
        for (component, &dim) in map.iter().enumerate() {
            let mut place = batch.clone();
            if *vector_dim < index_dims.len() {
                place.insert(*vector_dim, component);
            }
            let last = (spec.operand[dim] - spec.window[dim]) as i64;
            full[dim] = i64::from(starts[position(index_dims, &place)]).clamp(0, last) as usize;
        }
        for &(dim, other) in batching {
            full[dim] = batch[if other > *vector_dim { other - 1 } else { other }];
        }
        let mut inside = window.into_iter();
        for (dim, at) in full.iter_mut().enumerate() {
            if !spec.collapsed.contains(&dim) && !batching.iter().any(|pair| pair.0 == dim) {
                *at += inside.next().unwrap();
            }
        }
        let (from, to) = (position(&spec.operand, &full) * 4, position(dims, &index) * 4);
        result[to..to + 4].copy_from_slice(&operand[from..from + 4]);
    }
    result
}

fn check(random: &mut fastrand::Rng, spec: &GatherSpec) {
    let operand = noise(random, spec.operand.iter().product::<usize>() * 4);
    let starts: Vec<i32> = (0..spec.indices.dims.iter().product()).map(|_| random.i32(-3..12)).collect();
    let gather = Gather::new(spec).unwrap();
    let length = gather.dims().iter().product::<usize>() * 4;
    let ours = with_pools(length, |pool, result| {
        // SAFETY: all buffers have all elements.
        unsafe { gather.run(pool, operand.as_ptr(), starts.as_ptr().cast(), result) };
    });
    assert!(ours == naive(spec, gather.dims(), &operand, &starts), "{spec:?}");
}

/// Any gather of elements of 4 bytes with indices of i32.
fn random_spec(random: &mut fastrand::Rng) -> GatherSpec {
    let RandomIndices { operand, batch, free, indices } = random_indices(random);
    let (rank, batching) = (operand.len(), &indices.batching);
    let mut window: Vec<usize> = operand.iter().map(|&size| random.usize(1..=size)).collect();
    batching.iter().for_each(|&(dim, _)| window[dim] = 1);
    let collapsed: Vec<usize> =
        free.iter().copied().filter(|&dim| window[dim] == 1 && random.bool()).collect();
    let kept = rank - collapsed.len() - batching.len();
    let mut result: Vec<usize> = (0..kept + batch.len()).collect();
    random.shuffle(&mut result);
    let mut offset_dims = result[..kept].to_vec();
    offset_dims.sort_unstable();
    GatherSpec { element_size: 4, operand, indices, window, collapsed, offset_dims }
}

#[test]
fn random_gathers() {
    let mut random = fastrand::Rng::with_seed(4);
    for _ in 0..300 {
        let spec = random_spec(&mut random);
        check(&mut random, &spec);
    }
}

/// Rows of a table.
fn rows(table: [usize; 2], count: usize) -> GatherSpec {
    GatherSpec {
        element_size: 4,
        operand: table.to_vec(),
        indices: Indices {
            element: ElementType::I32,
            dims: vec![count],
            vector_dim: 1,
            map: vec![0],
            batching: Vec::new(),
        },
        window: vec![1, table[1]],
        collapsed: vec![0],
        offset_dims: vec![1],
    }
}

#[test]
fn embedding_rows() {
    let mut random = fastrand::Rng::with_seed(5);
    for spec in [rows([9, 384], 300), rows([9, 1], 1000), rows([9, 2], 77), rows([9, 5], 0), rows([9, 0], 3)]
    {
        check(&mut random, &spec);
    }
}

/// Elements along one dimension of several, whose lines are several tasks or parts of one.
#[test]
fn lines_of_elements() {
    let mut random = fastrand::Rng::with_seed(6);
    for axis in 0..4 {
        for count in [7, 8, 300, 20_000] {
            let operand = vec![5, 3, 11, 4];
            let mut window = operand.clone();
            window[axis] = 1;
            let indices = Indices {
                element: ElementType::I32,
                dims: vec![count],
                vector_dim: 1,
                map: vec![axis],
                batching: Vec::new(),
            };
            let offset_dims = (0..4).filter(|&dim| dim != axis).collect();
            let spec =
                GatherSpec { element_size: 4, operand, indices, window, collapsed: vec![axis], offset_dims };
            check(&mut random, &spec);
        }
    }
}

#[test]
fn integers_of_every_type_are_clamped() {
    let table: Vec<u32> = (0..4).collect();
    let mut spec = rows([4, 1], 3);
    let mut run = |element: ElementType, bytes: Vec<u8>| {
        spec.indices.element = element;
        let gather = Gather::new(&spec).unwrap();
        // SAFETY: all buffers have all elements.
        let ours = with_pools(12, |pool, result| unsafe {
            gather.run(pool, table.as_ptr().cast(), bytes.as_ptr(), result);
        });
        [ours[0], ours[4], ours[8]]
    };
    assert_eq!(run(ElementType::U64, [1, u64::MAX, 3].map(u64::to_ne_bytes).concat()), [1, 3, 3]);
    assert_eq!(run(ElementType::I64, [i64::MIN, 2, i64::MAX].map(i64::to_ne_bytes).concat()), [0, 2, 3]);
    assert_eq!(run(ElementType::I8, vec![0xff, 2, 0x7f]), [0, 2, 3]);
    assert_eq!(run(ElementType::U8, vec![0xff, 2, 0]), [3, 2, 0]);
}

#[test]
fn invalid_parameters_are_rejected() {
    let refused = |change: &dyn Fn(&mut GatherSpec)| {
        let mut spec = rows([9, 4], 3);
        change(&mut spec);
        Gather::new(&spec).unwrap_err()
    };
    let element = |spec: &mut GatherSpec| spec.indices.element = ElementType::F32;
    assert!(matches!(refused(&element), LayoutError::Element { .. }));
    refused(&|spec| spec.window = vec![1]);
    refused(&|spec| spec.window = vec![1, 5]);
    refused(&|spec| spec.window = vec![2, 4]);
    refused(&|spec| spec.collapsed = vec![7]);
    refused(&|spec| spec.offset_dims = vec![2]);
    refused(&|spec| spec.offset_dims = Vec::new());
    refused(&|spec| spec.indices.map = vec![2]);
    refused(&|spec| spec.indices.map = vec![0, 1]);
    refused(&|spec| spec.indices.vector_dim = 2);
    refused(&|spec| spec.indices.batching = vec![(0, 0)]);
    refused(&|spec| spec.indices.batching = vec![(1, 1)]);
    refused(&|spec| spec.indices.dims = vec![usize::MAX]);
}
