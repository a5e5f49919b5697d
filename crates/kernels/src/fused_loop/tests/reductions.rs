//! Reductions of long rows, of whole arrays and over rows.

use super::*;
use crate::reduce::ReduceOp;

fn numbers(count: usize) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(count as u64);
    (0..count).map(|_| random.f32() * 2.0 - 0.5).collect()
}

/// `x - max(x) ... / sum(...)`: a reduction that needs another.
fn centred() -> Vec<Inst> {
    vec![
        Inst::Load(0),
        Inst::Reduce(ReduceOp::Maximum, Register(0)),
        Inst::Binary(Function::Subtract, Register(0), Register(1)),
        Inst::Reduce(ReduceOp::Sum, Register(2)),
        Inst::Binary(Function::Divide, Register(2), Register(3)),
    ]
}

#[test]
fn long_rows_are_reduced_in_parts() {
    let (rows, columns) = (2, 70_001);
    let data = numbers(rows * columns);
    let insts = centred();
    let across = strides(columns as isize, 1);
    let inputs = [memory(ElementType::F32, across.clone())];
    let outputs = [output(4, across), output(3, strides(1, 0))];
    for isa in Isa::available() {
        let fused_loop = FusedLoop::with_isa(isa, &matrix(rows, columns), &inputs, &insts, &outputs).unwrap();
        let mut first: Option<Vec<f32>> = None;
        for threads in 0..=3 {
            let (mut result, mut sums) = (vec![0f32; rows * columns], vec![0f32; rows]);
            let targets = [result.as_mut_ptr().cast(), sums.as_mut_ptr().cast()];
            let sources = [data.as_ptr().cast()];
            // SAFETY: the buffers are as large as the domain.
            unsafe {
                match threads {
                    0 => fused_loop.run_block(
                        &mut Scratch::new(),
                        &sources,
                        &targets,
                        0..rows,
                        0..columns,
                        std::ptr::null_mut(),
                        0,
                    ),
                    _ => fused_loop.run(&pool(threads), &sources, &targets),
                }
            }
            for row in 0..rows {
                let given = &data[row * columns..][..columns];
                let largest = given.iter().copied().fold(f32::MIN, f32::max);
                let exact: f64 = given.iter().map(|&x| f64::from(x - largest)).sum();
                assert!((f64::from(sums[row]) / exact - 1.0).abs() < 1e-6, "{isa}: {} {exact}", sums[row]);
                for (found, &x) in result[row * columns..].iter().zip(given) {
                    assert_eq!(*found, (x - largest) / sums[row]);
                }
            }
            assert_eq!(first.get_or_insert(sums.clone()), &sums, "{threads} threads");
        }
    }
}

#[test]
fn column_reductions() {
    for (rows, columns) in [(1, 1), (3, 7), (1000, 5), (300, 1300), (0, 4), (5000, 1)] {
        let data = numbers(rows * columns);
        let domain = Domain { rows: vec![rows], columns: vec![columns] };
        let inputs = [memory(ElementType::F32, strides(columns as isize, 1))];
        let insts = [Inst::Load(0), Inst::Binary(Function::Multiply, Register(0), Register(0))];
        let to = |stride| Access { offset: 0, rows: vec![], columns: vec![stride] };
        let outputs = [
            ColumnOutput { reduction: ReduceOp::Sum, value: Register(1), access: to(1) },
            ColumnOutput { reduction: ReduceOp::Maximum, value: Register(0), access: to(2) },
        ];
        for isa in Isa::available() {
            let reduction = ColumnReduction::with_isa(isa, &domain, &inputs, &insts, &outputs).unwrap();
            let mut first: Option<Vec<f32>> = None;
            for threads in 1..=3 {
                let (mut sums, mut largest) = (vec![0f32; columns], vec![0f32; 2 * columns]);
                let targets = [sums.as_mut_ptr().cast(), largest.as_mut_ptr().cast()];
                // SAFETY: the buffers are as large as the accesses.
                unsafe { reduction.run(&pool(threads), &[data.as_ptr().cast()], &targets) };
                for column in 0..columns {
                    let of_column = || (0..rows).map(|row| data[row * columns + column]);
                    let exact: f64 = of_column().map(|x| f64::from(x * x)).sum();
                    assert!(
                        (f64::from(sums[column]) - exact).abs() <= exact * 1e-6,
                        "{rows} {columns} {column}"
                    );
                    assert_eq!(largest[2 * column], of_column().fold(f32::NEG_INFINITY, f32::max));
                }
                assert_eq!(first.get_or_insert(sums.clone()), &sums, "{threads} threads");
            }
        }
    }
}

#[test]
fn bf16_column_reductions_round_after_each_row() {
    let domain = matrix(130, 2);
    let inputs = [memory(ElementType::BF16, strides(0, 1))];
    let outputs = [ColumnOutput {
        reduction: ReduceOp::Sum,
        value: Register(0),
        access: Access { offset: 0, rows: vec![], columns: vec![1] },
    }];
    let reduction = ColumnReduction::new(&domain, &inputs, &[Inst::Load(0)], &outputs).unwrap();
    let data = [half::bf16::from_f32(1.0), half::bf16::from_f32(256.0)];
    let mut found = [half::bf16::ZERO; 2];
    // SAFETY: the buffers are as large as the accesses.
    unsafe { reduction.run(&pool(1), &[data.as_ptr().cast()], &[found.as_mut_ptr().cast()]) };
    assert_eq!(found.map(half::bf16::to_f32), [130.0, 33_280.0]);
    let nested = [Inst::Load(0), Inst::Reduce(ReduceOp::Sum, Register(0))];
    let refused = ColumnReduction::new(&domain, &inputs, &nested, &outputs).unwrap_err();
    assert_eq!(refused, FusedLoopError::NestedReduction { inst: 1 });
}

#[test]
fn division_by_a_scalar_is_correctly_rounded() {
    let mut random = fastrand::Rng::with_seed(9);
    let (rows, columns) = (500, 331);
    let domain = matrix(rows, columns);
    let inputs =
        [memory(ElementType::F32, strides(columns as isize, 1)), memory(ElementType::F32, strides(1, 0))];
    for (at, op) in [Function::Divide, Function::Maximum, Function::Minimum].into_iter().enumerate() {
        let insts = [Inst::Load(0), Inst::Load(1), Inst::Binary(op, Register(0), Register(1))];
        let mut bits = |row: usize| match row % 3 {
            0 => random.f32(),
            1 => f32::from_bits(random.u32(..)),
            _ => [0.0, -0.0, f32::NAN, 1.0, f32::INFINITY, 1e-40][random.usize(0..6)],
        };
        let divisors: Vec<f32> = (0..rows).map(&mut bits).collect();
        let data: Vec<f32> = (0..rows * columns).map(|at| bits(at / columns / 3)).collect();
        for isa in Isa::available() {
            let outputs = [output(2, strides(columns as isize, 1))];
            let fused_loop = FusedLoop::with_isa(isa, &domain, &inputs, &insts, &outputs).unwrap();
            let mut found = vec![0f32; rows * columns];
            let sources = [data.as_ptr().cast(), divisors.as_ptr().cast()];
            // SAFETY: the buffers are as large as the accesses.
            unsafe { fused_loop.run(&pool(1), &sources, &[found.as_mut_ptr().cast()]) };
            for (place, (&found, &x)) in found.iter().zip(&data).enumerate() {
                let divisor = divisors[place / columns];
                let (a, b) = (Scalar::Float(f64::from(x)), Scalar::Float(f64::from(divisor)));
                let expected = naive::binary(op, a, b, ElementType::F32).rounded_to(ElementType::F32);
                let found = Scalar::Float(f64::from(found));
                assert!(same(found, expected), "{isa} {at} {x:e} {divisor:e}: {found:?}, not {expected:?}");
            }
        }
    }
}
