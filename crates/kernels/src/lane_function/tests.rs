//! Variadic reductions against loops over every element.

use warpforge_tensor::ElementType;

use super::{LaneFunction, VariadicReduce};
use crate::fused_loop::{Direction, Function, Inst, Order, Register};
use crate::testing::{indices, position, with_pools};

/// The larger of two elements and its index: the first of equal ones, and the first NaN.
fn largest_with_index() -> LaneFunction {
    let compare = |direction, a, b| Inst::Compare(direction, Order::Partial, Register(a), Register(b));
    LaneFunction {
        arguments: vec![ElementType::F32, ElementType::I64, ElementType::F32, ElementType::I64],
        insts: vec![
            Inst::Load(0),
            Inst::Load(1),
            Inst::Load(2),
            Inst::Load(3),
            compare(Direction::Ge, 0, 2),
            compare(Direction::Ne, 0, 0),
            Inst::Binary(Function::Or, Register(4), Register(5)),
            Inst::Select(Register(6), Register(0), Register(2)),
            Inst::Select(Register(6), Register(1), Register(3)),
        ],
        results: vec![Register(7), Register(8)],
    }
}

fn naive(dims: &[usize], axes: &[usize], values: &[f32]) -> (Vec<f32>, Vec<i64>) {
    let kept: Vec<usize> = (0..dims.len()).filter(|axis| !axes.contains(axis)).collect();
    let sizes: Vec<usize> = kept.iter().map(|&axis| dims[axis]).collect();
    let count: usize = sizes.iter().product();
    let mut found = vec![(f32::NEG_INFINITY, -1i64); count];
    for index in indices(dims) {
        let at = position(dims, &index);
        let to = position(&sizes, &kept.iter().map(|&axis| index[axis]).collect::<Vec<_>>());
        let (most, place) = found[to];
        let stays = most >= values[at] || most.is_nan();
        found[to] = if stays { (most, place) } else { (values[at], at as i64) };
    }
    found.into_iter().unzip()
}

fn check(dims: &[usize], axes: &[usize], values: &[f32]) {
    let places: Vec<i64> = (0..values.len() as i64).collect();
    let plan = VariadicReduce::new(dims, axes, &largest_with_index()).unwrap();
    let (most, place) = naive(dims, axes, values);
    let (low, none) = (f32::NEG_INFINITY, -1i64);
    let split = size_of_val(most.as_slice()).next_multiple_of(8);
    let ours = with_pools(split + size_of_val(place.as_slice()), |pool, result| {
        // Results are written to aligned memory and compared as bytes.
        let (mut first, mut second) = (vec![0f32; most.len()], vec![0i64; place.len()]);
        // SAFETY: all buffers have the sizes of the plan.
        unsafe {
            plan.run(
                pool,
                &[values.as_ptr().cast(), places.as_ptr().cast()],
                &[(&raw const low).cast(), (&raw const none).cast()],
                &[first.as_mut_ptr().cast(), second.as_mut_ptr().cast()],
            );
            let bytes: &[u8] = bytemuck::cast_slice(&first);
            result.write_bytes(0, split);
            result.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            let bytes: &[u8] = bytemuck::cast_slice(&second);
            result.add(split).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    });
    assert_eq!(
        ours[..size_of_val(most.as_slice())],
        *bytemuck::cast_slice::<f32, u8>(&most),
        "{dims:?} over {axes:?}"
    );
    assert_eq!(ours[split..], *bytemuck::cast_slice::<i64, u8>(&place), "{dims:?} over {axes:?}");
}

/// Few different values, so that many are equal; some are NaN.
fn values(random: &mut fastrand::Rng, count: usize) -> Vec<f32> {
    (0..count).map(|_| if random.u8(..50) == 0 { f32::NAN } else { f32::from(random.i8(-3..4)) }).collect()
}

#[test]
fn the_first_of_equal_elements_on_random_shapes() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        let rank = random.usize(..5);
        let dims: Vec<usize> = (0..rank).map(|_| random.usize(..[1, 900, 40, 12, 7][rank])).collect();
        let axes: Vec<usize> = (0..rank).filter(|_| random.bool()).collect();
        let values = values(&mut random, dims.iter().product());
        check(&dims, &axes, &values);
    }
}

#[test]
fn long_rows_are_reduced_in_chunks() {
    let mut random = fastrand::Rng::with_seed(2);
    for (dims, axes) in [
        (vec![5000], vec![0]),
        (vec![3, 4099], vec![1]),
        (vec![40, 2048], vec![1]),
        (vec![3, 70, 129], vec![1, 2]),
        (vec![4097, 3], vec![0]),
        (vec![127], vec![0]),
        (vec![2, 1], vec![1]),
    ] {
        let values = values(&mut random, dims.iter().product());
        check(&dims, &axes, &values);
        let numbers: Vec<f32> =
            values.iter().map(|value| if value.is_nan() { 0.0 } else { *value }).collect();
        check(&dims, &axes, &numbers);
    }
}

/// The order of the elements is kept, and the initial value counts once.
#[test]
fn a_function_that_does_not_commute() {
    let integer = ElementType::I32;
    // The accumulator but for zero, else the element: the first that is not zero.
    let first = LaneFunction {
        arguments: vec![integer; 2],
        insts: vec![
            Inst::Load(0),
            Inst::Load(1),
            Inst::Constant(integer, warpforge_tensor::Scalar::Int(0)),
            Inst::Compare(Direction::Ne, Order::Partial, Register(0), Register(2)),
            Inst::Select(Register(3), Register(0), Register(1)),
        ],
        results: vec![Register(4)],
    };
    let sum = LaneFunction {
        arguments: vec![integer; 2],
        insts: vec![Inst::Load(0), Inst::Load(1), Inst::Binary(Function::Add, Register(0), Register(1))],
        results: vec![Register(2)],
    };
    for count in [1usize, 2, 3, 127, 128, 129, 1000, 4096] {
        let values: Vec<i32> =
            (0..count as i32).map(|at| if at < count as i32 / 3 { 0 } else { at + 1 }).collect();
        for (function, initial, wanted) in [
            (&first, 0, values.iter().copied().find(|&value| value != 0).unwrap_or(0)),
            (&sum, 7, 7 + values.iter().sum::<i32>()),
        ] {
            let plan = VariadicReduce::new(&[count], &[0], function).unwrap();
            let ours = with_pools(4, |pool, result| {
                let mut found = 0i32;
                // SAFETY: all buffers have the sizes of the plan.
                unsafe {
                    let (values, initial) = (values.as_ptr().cast(), (&raw const initial).cast());
                    plan.run(pool, &[values], &[initial], &[(&raw mut found).cast()]);
                    result.copy_from_nonoverlapping((&raw const found).cast(), 4);
                }
            });
            assert_eq!(ours, wanted.to_ne_bytes(), "{count} elements");
        }
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    let function = largest_with_index();
    assert!(VariadicReduce::new(&[4], &[1], &function).is_err());
    let one = LaneFunction { results: vec![Register(7)], ..function.clone() };
    assert!(VariadicReduce::new(&[4], &[0], &one).is_err());
    let turned = LaneFunction { results: vec![Register(8), Register(7)], ..function };
    assert!(VariadicReduce::new(&[4], &[0], &turned).is_err());
}
