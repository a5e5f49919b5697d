//! Scatters.

use warpforge_tensor::ElementType;

use super::{RandomIndices, random_indices};
use crate::data_movement::{Indices, LayoutError, Scatter, ScatterSpec, Update};
use crate::reduce::ReduceOp;
use crate::testing::{indices, position, with_pools};

/// Applies updates one at a time in their order.
fn naive(spec: &ScatterSpec, starts: &[i32], updates: &[f32], result: &mut [f32]) {
    let Indices { vector_dim, map, batching, dims: index_dims, .. } = &spec.indices;
    for index in indices(&spec.updates) {
        let (mut window, mut batch) = (Vec::new(), Vec::new());
        for (dim, &at) in index.iter().enumerate() {
            if spec.update_window_dims.contains(&dim) { window.push(at) } else { batch.push(at) }
        }
        let mut full = vec![0i64; spec.operand.len()];
        for (component, &dim) in map.iter().enumerate() {
            let mut place = batch.clone();
            if *vector_dim < index_dims.len() {
                place.insert(*vector_dim, component);
            }
            full[dim] = i64::from(starts[position(index_dims, &place)]);
        }
        for &(dim, other) in batching {
            full[dim] = batch[if other > *vector_dim { other - 1 } else { other }] as i64;
        }
        let mut inside = window.into_iter();
        for (dim, at) in full.iter_mut().enumerate() {
            if !spec.inserted.contains(&dim) && !batching.iter().any(|pair| pair.0 == dim) {
                *at += inside.next().unwrap() as i64;
            }
        }
        let full: Option<Vec<usize>> = full
            .iter()
            .zip(&spec.operand)
            .map(|(&at, &size)| usize::try_from(at).ok().filter(|&at| at < size))
            .collect();
        if let Some(full) = full {
            let (old, new) =
                (&mut result[position(&spec.operand, &full)], updates[position(&spec.updates, &index)]);
            *old = match spec.update {
                Update::Set => new,
                Update::Reduce(ReduceOp::Sum) => *old + new,
                Update::Reduce(ReduceOp::Product) => *old * new,
                Update::Reduce(ReduceOp::Maximum) => old.max(new),
                Update::Reduce(_) => old.min(new),
            };
        }
    }
}

fn check(random: &mut fastrand::Rng, spec: &ScatterSpec) -> bool {
    let scatter = match Scatter::new(spec) {
        Ok(scatter) => scatter,
        Err(LayoutError::Sizes(text)) if text.contains("overlap") => return false,
        Err(other) => panic!("{other}: {spec:?}"),
    };
    let mut numbers = |count: usize| (0..count).map(|_| random.f32() + 0.1).collect::<Vec<f32>>();
    let operand = numbers(spec.operand.iter().product());
    let updates = numbers(spec.updates.iter().product());
    let starts: Vec<i32> = (0..spec.indices.dims.iter().product()).map(|_| random.i32(-2..9)).collect();
    let ours = with_pools(operand.len() * 4, |pool, result| {
        // SAFETY: all buffers have all elements.
        unsafe {
            std::ptr::copy_nonoverlapping(operand.as_ptr().cast(), result, operand.len() * 4);
            scatter.run(pool, result, starts.as_ptr().cast(), updates.as_ptr().cast());
        }
    });
    let mut wanted = operand.clone();
    naive(spec, &starts, &updates, &mut wanted);
    assert!(ours == bytemuck::cast_slice::<f32, u8>(&wanted), "{spec:?}");
    true
}

const UPDATES: [Update; 5] = [
    Update::Set,
    Update::Reduce(ReduceOp::Sum),
    Update::Reduce(ReduceOp::Product),
    Update::Reduce(ReduceOp::Maximum),
    Update::Reduce(ReduceOp::Minimum),
];

fn random_spec(random: &mut fastrand::Rng) -> ScatterSpec {
    let RandomIndices { operand, batch, free, indices } = random_indices(random);
    let (rank, batching) = (operand.len(), &indices.batching);
    let inserted: Vec<usize> = free.iter().copied().filter(|_| random.bool()).collect();
    let kept: Vec<usize> = (0..rank)
        .filter(|dim| !inserted.contains(dim) && !batching.iter().any(|pair| pair.0 == *dim))
        .collect();
    let mut places: Vec<usize> = (0..kept.len() + batch.len()).collect();
    if random.bool() {
        random.shuffle(&mut places);
    } else {
        places.rotate_left(batch.len());
    }
    let mut update_window_dims = places[..kept.len()].to_vec();
    update_window_dims.sort_unstable();
    let (mut windows, mut batches) = (kept.iter(), batch.iter());
    let updates = (0..places.len())
        .map(|dim| match update_window_dims.contains(&dim) {
            true => random.usize(1..=operand[*windows.next().unwrap()]),
            false => *batches.next().unwrap(),
        })
        .collect();
    let update = *random.choice(&UPDATES).unwrap();
    ScatterSpec { element: ElementType::F32, operand, indices, updates, update_window_dims, inserted, update }
}

#[test]
fn random_scatters() {
    let mut random = fastrand::Rng::with_seed(4);
    let mut done = 0;
    for _ in 0..300 {
        let spec = random_spec(&mut random);
        done += usize::from(check(&mut random, &spec));
    }
    assert!(done > 150, "{done}");
}

/// Rows added to those of a table.
fn rows(table: [usize; 2], count: usize) -> ScatterSpec {
    ScatterSpec {
        element: ElementType::F32,
        operand: table.to_vec(),
        indices: Indices {
            element: ElementType::I32,
            dims: vec![count, 1],
            vector_dim: 1,
            map: vec![0],
            batching: Vec::new(),
        },
        updates: vec![count, table[1]],
        update_window_dims: vec![1],
        inserted: vec![0],
        update: Update::Reduce(ReduceOp::Sum),
    }
}

#[test]
fn row_scatters_are_split_by_columns() {
    let mut random = fastrand::Rng::with_seed(5);
    for spec in [rows([7, 200], 500), rows([7, 3], 40), rows([7, 4], 0), rows([7, 0], 5)] {
        assert!(check(&mut random, &spec));
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    let refused = |change: &dyn Fn(&mut ScatterSpec)| {
        let mut spec = rows([9, 4], 3);
        change(&mut spec);
        Scatter::new(&spec).unwrap_err()
    };
    let and = |spec: &mut ScatterSpec| spec.update = Update::Reduce(ReduceOp::And);
    assert!(matches!(refused(&and), LayoutError::Element { .. }));
    refused(&|spec| spec.updates = vec![4, 4]);
    refused(&|spec| spec.update_window_dims = vec![2]);
    refused(&|spec| spec.inserted = Vec::new());
    refused(&|spec| spec.indices.map = vec![5]);
    refused(&|spec| spec.indices.element = ElementType::F32);
}
