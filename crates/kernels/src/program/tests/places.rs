//! Where values come from and go to.

use super::*;
use crate::fold::Fold;

/// `relu(x * scale[row] + bias[column])` of a tile, back into the tile.
#[test]
fn a_block_of_a_tile_is_changed_in_place() {
    let (rows, columns) = (40, 70);
    let domain = matrix(rows, columns);
    let inputs = [
        Input { element: ElementType::F32, source: Source::Tile },
        memory(ElementType::F32, strides(1, 0)),
        memory(ElementType::F32, strides(0, 1)),
    ];
    let steps = [
        Step::Load(0),
        Step::Load(1),
        Step::Load(2),
        Step::Binary(BinaryOp::Multiply, Register(0), Register(1)),
        Step::Binary(BinaryOp::Add, Register(3), Register(2)),
        Step::Constant(ElementType::F32, Scalar::Float(0.0)),
        Step::Binary(BinaryOp::Maximum, Register(4), Register(5)),
    ];
    let outputs = [Output { value: Register(6), sink: Sink::Tile }, output(4, strides(columns as isize, 1))];
    let scale: Vec<f32> = (0..rows).map(|row| row as f32 / 4.0).collect();
    let bias: Vec<f32> = (0..columns).map(|column| 30.0 - column as f32).collect();
    let mut scratch = Scratch::new();
    for isa in Isa::available() {
        let program = Program::with_isa(isa, &domain, &inputs, &steps, &outputs).unwrap();
        for (row_range, column_range) in [(0..40, 0..70), (3..9, 17..64), (39..40, 69..70)] {
            let stride = column_range.len() + 5;
            let mut tile: Vec<f32> = (0..row_range.len() * stride).map(|at| at as f32 - 90.0).collect();
            let before = tile.clone();
            let mut sums = vec![f32::NAN; rows * columns];
            let buffers = [std::ptr::null(), scale.as_ptr().cast(), bias.as_ptr().cast()];
            let targets = [std::ptr::null_mut(), sums.as_mut_ptr().cast()];
            // SAFETY: the buffers are those of the accesses and the tile has all rows of the block.
            unsafe {
                program.run_block(
                    &mut scratch,
                    &buffers,
                    &targets,
                    row_range.clone(),
                    column_range.clone(),
                    tile.as_mut_ptr().cast(),
                    stride,
                );
            }
            for (at, (&found, &was)) in tile.iter().zip(&before).enumerate() {
                let (row, column) = (row_range.start + at / stride, column_range.start + at % stride);
                if at % stride >= column_range.len() {
                    assert_eq!(found, was, "between the rows");
                } else {
                    let sum = was * scale[row] + bias[column];
                    assert_eq!(found, sum.max(0.0), "{isa} {row} {column}");
                    assert_eq!(sums[row * columns + column], sum);
                }
            }
            let written = sums.iter().filter(|sum| !sum.is_nan()).count();
            assert_eq!(written, row_range.len() * column_range.len());
        }
    }
}

#[test]
fn a_narrow_tile_is_rounded_at_each_step() {
    let inputs = [Input { element: ElementType::BF16, source: Source::Tile }];
    let steps = [
        Step::Load(0),
        Step::Binary(BinaryOp::Add, Register(0), Register(0)),
        Step::Binary(BinaryOp::Multiply, Register(1), Register(0)),
    ];
    let outputs = [Output { value: Register(2), sink: Sink::Tile }];
    let program = Program::new(&matrix(3, 20), &inputs, &steps, &outputs).unwrap();
    let mut tile: Vec<half::bf16> = (0..60).map(|at| half::bf16::from_f32(at as f32 / 7.0)).collect();
    let before = tile.clone();
    // SAFETY: the tile has all rows of the block.
    unsafe {
        program.run_block(
            &mut Scratch::new(),
            &[std::ptr::null()],
            &[std::ptr::null_mut()],
            0..3,
            0..20,
            tile.as_mut_ptr().cast(),
            20,
        );
    }
    for (found, was) in tile.iter().zip(before) {
        assert_eq!(*found, (was + was) * was);
    }
}

#[test]
fn an_output_may_be_an_input() {
    let (rows, columns) = (37, 1100);
    let inputs = [memory(ElementType::F32, strides(columns as isize, 1))];
    let steps = [
        Step::Load(0),
        Step::Reduce(Fold::Maximum, Register(0)),
        Step::Binary(BinaryOp::Subtract, Register(0), Register(1)),
        Step::Binary(BinaryOp::Multiply, Register(2), Register(0)),
    ];
    let outputs = [output(3, strides(columns as isize, 1))];
    for isa in Isa::available() {
        let program = Program::with_isa(isa, &matrix(rows, columns), &inputs, &steps, &outputs).unwrap();
        let mut data: Vec<f32> = (0..rows * columns).map(|at| (at * 7919 % 1000) as f32).collect();
        let before = data.clone();
        let address = data.as_mut_ptr().cast::<u8>();
        // SAFETY: input and output have the same access to one buffer.
        unsafe { program.run(&pool(2), &[address.cast_const()], &[address]) };
        for (row, was) in before.chunks(columns).enumerate() {
            let largest = was.iter().copied().fold(f32::MIN, f32::max);
            for (found, was) in data[row * columns..].iter().zip(was) {
                assert_eq!(*found, (was - largest) * was);
            }
        }
    }
}

#[test]
fn nothing_folds_to_what_each_fold_starts_from() {
    let steps = [
        Step::Load(0),
        Step::Reduce(Fold::Sum, Register(0)),
        Step::Reduce(Fold::Product, Register(0)),
        Step::Reduce(Fold::Maximum, Register(0)),
        Step::Reduce(Fold::Minimum, Register(0)),
    ];
    let inputs = [memory(ElementType::F32, strides(0, 1))];
    let outputs: Vec<Output> = (1..5).map(|step| output(step, strides(1, 0))).collect();
    let program = Program::new(&matrix(3, 0), &inputs, &steps, &outputs).unwrap();
    let empty = tensor(ElementType::F32, []);
    let found = run(&program, &pool(1), &[&empty], &[(ElementType::F32, 3); 4]);
    for (found, expected) in found.iter().zip([0.0, 1.0, f64::NEG_INFINITY, f64::INFINITY]) {
        assert!(values(found).into_iter().all(|value| value == Scalar::Float(expected)));
    }
    let none = Program::new(&matrix(0, 5), &inputs, &steps, &outputs).unwrap();
    run(&none, &pool(1), &[&empty], &[(ElementType::F32, 0); 4]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let domain = matrix(4, 5);
    let input = [memory(ElementType::F32, strides(5, 1))];
    let new = |steps: &[Step], outputs: &[Output]| Program::new(&domain, &input, steps, outputs).unwrap_err();
    let load = Step::Load(0);
    let forward = Step::Unary(UnaryOp::Exp, Register(1));
    assert_eq!(new(&[load.clone(), forward], &[]), ProgramError::Register { step: 1, register: 1 });
    assert_eq!(new(&[Step::Load(3)], &[]), ProgramError::Input { step: 0, input: 3, count: 1 });
    let truth = Step::Unary(UnaryOp::IsFinite, Register(0));
    let mixed = Step::Binary(BinaryOp::Add, Register(0), Register(1));
    assert!(matches!(new(&[load.clone(), truth, mixed], &[]), ProgramError::Types { step: 2, .. }));
    let bits = Step::Unary(UnaryOp::Popcnt, Register(0));
    assert!(matches!(new(&[load.clone(), bits], &[]), ProgramError::Unsupported { step: 1, .. }));
    let flat = output(0, Access { offset: 0, rows: vec![1], columns: vec![] });
    assert!(matches!(new(std::slice::from_ref(&load), &[flat]), ProgramError::Rank { .. }));
    let overlapping = output(0, strides(1, 0));
    assert_eq!(new(std::slice::from_ref(&load), &[overlapping]), ProgramError::Overlap { output: 0 });
    let missing = output(9, strides(5, 1));
    assert_eq!(new(std::slice::from_ref(&load), &[missing]), ProgramError::Register { step: 1, register: 9 });
    let complex = [memory(ElementType::C64, strides(5, 1))];
    let refused = Program::new(&domain, &complex, &[load], &[]).unwrap_err();
    assert!(matches!(refused, ProgramError::Unsupported { .. }));
}
