//! Select-and-scatter.

use warpforge_tensor::ElementType;

use super::{input_index, random_axis};
use crate::data_movement::Update;
use crate::fused_loop::{Direction, Inst, Order, Register};
use crate::lane_function::LaneFunction;
use crate::reduce::ReduceOp;
use crate::testing::{indices, position, with_pools};
use crate::window::{SelectAndScatter, WindowAxis};

/// Whether the first element compares so with the second.
fn comparison(element: ElementType, direction: Direction) -> LaneFunction {
    let compare = Inst::Compare(direction, Order::Partial, Register(0), Register(1));
    LaneFunction {
        arguments: vec![element; 2],
        insts: vec![Inst::Load(0), Inst::Load(1), compare],
        results: vec![Register(2)],
    }
}

/// One window after the other.
fn naive<T: Copy>(
    (dims, counts, axes): (&[usize], &[usize], &[WindowAxis]),
    operand: &[T],
    source: &[T],
    init: T,
    keeps: impl Fn(T, T) -> bool,
    combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    let sizes: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
    let mut result = vec![init; operand.len()];
    for window in indices(counts) {
        let mut best = None;
        for element in indices(&sizes) {
            let offsets =
                (0..dims.len()).map(|dim| input_index(&axes[dim], dims[dim], window[dim], element[dim]));
            let Some(index) = offsets.collect::<Option<Vec<usize>>>() else { continue };
            let at = position(dims, &index);
            if best.is_none_or(|best: usize| !keeps(operand[best], operand[at])) {
                best = Some(at);
            }
        }
        if let Some(best) = best {
            result[best] = combine(result[best], source[position(counts, &window)]);
        }
    }
    result
}

fn check<T: bytemuck::Pod>(
    element: ElementType,
    (direction, update): (Direction, Update),
    (dims, axes): (&[usize], &[WindowAxis]),
    (operand, init): (&[T], T),
    values: impl FnMut() -> T,
    keeps: impl Fn(T, T) -> bool,
    combine: impl Fn(T, T) -> T,
) {
    let counts: Vec<usize> = axes.iter().zip(dims).map(|(axis, &size)| axis.count(size).unwrap()).collect();
    let source: Vec<T> = std::iter::repeat_with(values).take(counts.iter().product()).collect();
    let select = comparison(element, direction);
    let plan = SelectAndScatter::new(element, dims, &counts, axes, &select, update).unwrap();
    let ours = with_pools(size_of_val(operand), |pool, result| {
        let mut found = vec![init; operand.len()];
        // SAFETY: all buffers have the sizes of the plan.
        unsafe {
            let (operand, source) = (operand.as_ptr().cast(), source.as_ptr().cast());
            plan.run(pool, operand, source, (&raw const init).cast(), found.as_mut_ptr().cast());
            let bytes: &[u8] = bytemuck::cast_slice(&found);
            result.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    });
    let wanted = naive((dims, &counts, axes), operand, &source, init, keeps, combine);
    assert!(ours == bytemuck::cast_slice::<T, u8>(&wanted), "{element} in {dims:?}: {axes:?}");
}

#[test]
fn random_windows() {
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..120 {
        let rank = random.usize(..5);
        let dims: Vec<usize> = (0..rank).map(|_| random.usize(..[1, 900, 30, 9, 6][rank])).collect();
        let mut axes: Vec<WindowAxis> = (0..rank).map(|_| random_axis(&mut random)).collect();
        for axis in &mut axes {
            if random.bool() {
                *axis = WindowAxis::default();
            }
        }
        let count = dims.iter().product();
        // Few different values, so that many are equal; some are NaN.
        let number = |random: &mut fastrand::Rng| match random.u8(..20) {
            0 => f32::NAN,
            _ => f32::from(random.i8(-2..3)),
        };
        let operand: Vec<f32> = (0..count).map(|_| number(&mut random)).collect();
        let given = |at: &mut u32| {
            *at += 1;
            f32::from(u8::try_from(*at % 100).unwrap())
        };
        let mut at = round;
        let sum = Update::Reduce(ReduceOp::Sum);
        let windows = (dims.as_slice(), axes.as_slice());
        let f32 = ElementType::F32;
        let values = (operand.as_slice(), 0.0);
        check(f32, (Direction::Ge, sum), windows, values, || given(&mut at), |a, b| a >= b, |a, b| a + b);
        check(f32, (Direction::Lt, sum), windows, values, || given(&mut at), |a, b| a < b, |a, b| a + b);
        let last = (Direction::Ge, Update::Set);
        check(f32, last, windows, (&operand, -1.0), || given(&mut at), |a, b| a >= b, |_, b| b);
        let narrow: Vec<i16> = operand.iter().map(|&value| value as i16).collect();
        let most = (Direction::Gt, Update::Reduce(ReduceOp::Maximum));
        let mut next = 0i16;
        let given = || {
            next = next.wrapping_mul(31).wrapping_add(7);
            next
        };
        check(ElementType::I16, most, windows, (&narrow, 3), given, |a, b| a > b, i16::max);
    }
}

#[test]
fn invalid_parameters_are_rejected() {
    let axis = WindowAxis { size: 2, stride: 2, ..WindowAxis::default() };
    let select = comparison(ElementType::F32, Direction::Ge);
    let new = |element, source: &[usize], update| {
        SelectAndScatter::new(element, &[8], source, &[axis], &select, update).map(|_| ())
    };
    assert!(new(ElementType::F32, &[4], Update::Set).is_ok());
    assert!(new(ElementType::F32, &[3], Update::Set).is_err());
    assert!(new(ElementType::I32, &[4], Update::Set).is_err());
    assert!(new(ElementType::F32, &[4], Update::Reduce(ReduceOp::And)).is_err());
}
