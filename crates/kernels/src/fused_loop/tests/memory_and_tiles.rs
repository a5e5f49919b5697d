//! Inputs and outputs in memory and in tiles.

use super::*;
use crate::reduce::ReduceOp;

/// `relu(x * scale[row] + bias[column])` of a tile, back into the tile.
#[test]
fn epilogue_of_a_tile_in_place() {
    let (rows, columns) = (40, 70);
    let domain = matrix(rows, columns);
    let inputs = [
        Input { element: ElementType::F32, source: Source::Tile },
        memory(ElementType::F32, strides(1, 0)),
        memory(ElementType::F32, strides(0, 1)),
    ];
    let insts = [
        Inst::Load(0),
        Inst::Load(1),
        Inst::Load(2),
        Inst::Binary(Function::Multiply, Register(0), Register(1)),
        Inst::Binary(Function::Add, Register(3), Register(2)),
        Inst::Constant(ElementType::F32, Scalar::Float(0.0)),
        Inst::Binary(Function::Maximum, Register(4), Register(5)),
    ];
    let outputs = [Output { value: Register(6), sink: Sink::Tile }, output(4, strides(columns as isize, 1))];
    let scale: Vec<f32> = (0..rows).map(|row| row as f32 / 4.0).collect();
    let bias: Vec<f32> = (0..columns).map(|column| 30.0 - column as f32).collect();
    let mut scratch = Scratch::new();
    for isa in Isa::available() {
        let fused_loop = FusedLoop::with_isa(isa, &domain, &inputs, &insts, &outputs).unwrap();
        for (row_range, column_range) in [(0..40, 0..70), (3..9, 17..64), (39..40, 69..70)] {
            let stride = column_range.len() + 5;
            let mut tile: Vec<f32> = (0..row_range.len() * stride).map(|at| at as f32 - 90.0).collect();
            let before = tile.clone();
            let mut sums = vec![f32::NAN; rows * columns];
            let buffers = [std::ptr::null(), scale.as_ptr().cast(), bias.as_ptr().cast()];
            let targets = [std::ptr::null_mut(), sums.as_mut_ptr().cast()];
            // SAFETY: the buffers are those of the accesses and the tile has all rows of the block.
            unsafe {
                fused_loop.run_block(
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
fn bf16_tiles_are_rounded_after_each_instruction() {
    let inputs = [Input { element: ElementType::BF16, source: Source::Tile }];
    let insts = [
        Inst::Load(0),
        Inst::Binary(Function::Add, Register(0), Register(0)),
        Inst::Binary(Function::Multiply, Register(1), Register(0)),
    ];
    let outputs = [Output { value: Register(2), sink: Sink::Tile }];
    let fused_loop = FusedLoop::new(&matrix(3, 20), &inputs, &insts, &outputs).unwrap();
    let mut tile: Vec<half::bf16> = (0..60).map(|at| half::bf16::from_f32(at as f32 / 7.0)).collect();
    let before = tile.clone();
    // SAFETY: the tile has all rows of the block.
    unsafe {
        fused_loop.run_block(
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
fn output_may_alias_an_input() {
    let (rows, columns) = (37, 1100);
    let inputs = [memory(ElementType::F32, strides(columns as isize, 1))];
    let insts = [
        Inst::Load(0),
        Inst::Reduce(ReduceOp::Maximum, Register(0)),
        Inst::Binary(Function::Subtract, Register(0), Register(1)),
        Inst::Binary(Function::Multiply, Register(2), Register(0)),
    ];
    let outputs = [output(3, strides(columns as isize, 1))];
    for isa in Isa::available() {
        let fused_loop = FusedLoop::with_isa(isa, &matrix(rows, columns), &inputs, &insts, &outputs).unwrap();
        let mut data: Vec<f32> = (0..rows * columns).map(|at| (at * 7919 % 1000) as f32).collect();
        let before = data.clone();
        let address = data.as_mut_ptr().cast::<u8>();
        // SAFETY: input and output have the same access to one buffer.
        unsafe { fused_loop.run(&pool(2), &[address.cast_const()], &[address]) };
        for (row, was) in before.chunks(columns).enumerate() {
            let largest = was.iter().copied().fold(f32::MIN, f32::max);
            for (found, was) in data[row * columns..].iter().zip(was) {
                assert_eq!(*found, (was - largest) * was);
            }
        }
    }
}

#[test]
fn empty_reductions_return_the_identity() {
    let insts = [
        Inst::Load(0),
        Inst::Reduce(ReduceOp::Sum, Register(0)),
        Inst::Reduce(ReduceOp::Product, Register(0)),
        Inst::Reduce(ReduceOp::Maximum, Register(0)),
        Inst::Reduce(ReduceOp::Minimum, Register(0)),
    ];
    let inputs = [memory(ElementType::F32, strides(0, 1))];
    let outputs: Vec<Output> = (1..5).map(|inst| output(inst, strides(1, 0))).collect();
    let fused_loop = FusedLoop::new(&matrix(3, 0), &inputs, &insts, &outputs).unwrap();
    let empty = tensor(ElementType::F32, []);
    let found = run(&fused_loop, &pool(1), &[&empty], &[(ElementType::F32, 3); 4]);
    for (found, expected) in found.iter().zip([0.0, 1.0, f64::NEG_INFINITY, f64::INFINITY]) {
        assert!(values(found).into_iter().all(|value| value == Scalar::Float(expected)));
    }
    let none = FusedLoop::new(&matrix(0, 5), &inputs, &insts, &outputs).unwrap();
    run(&none, &pool(1), &[&empty], &[(ElementType::F32, 0); 4]);
}

#[test]
fn invalid_parameters_are_rejected() {
    let domain = matrix(4, 5);
    let input = [memory(ElementType::F32, strides(5, 1))];
    let new =
        |insts: &[Inst], outputs: &[Output]| FusedLoop::new(&domain, &input, insts, outputs).unwrap_err();
    let load = Inst::Load(0);
    let forward = Inst::Unary(Function::Exponential, Register(1));
    assert_eq!(new(&[load.clone(), forward], &[]), FusedLoopError::Register { inst: 1, register: 1 });
    assert_eq!(new(&[Inst::Load(3)], &[]), FusedLoopError::Input { inst: 0, input: 3, count: 1 });
    let truth = Inst::Unary(Function::IsFinite, Register(0));
    let mixed = Inst::Binary(Function::Add, Register(0), Register(1));
    assert!(matches!(new(&[load.clone(), truth, mixed], &[]), FusedLoopError::Types { inst: 2, .. }));
    let bits = Inst::Unary(Function::Popcnt, Register(0));
    assert!(matches!(new(&[load.clone(), bits], &[]), FusedLoopError::Unsupported { inst: 1, .. }));
    let flat = output(0, Access { offset: 0, rows: vec![1], columns: vec![] });
    assert!(matches!(new(std::slice::from_ref(&load), &[flat]), FusedLoopError::Rank { .. }));
    let overlapping = output(0, strides(1, 0));
    assert_eq!(new(std::slice::from_ref(&load), &[overlapping]), FusedLoopError::Overlap { output: 0 });
    let missing = output(9, strides(5, 1));
    assert_eq!(
        new(std::slice::from_ref(&load), &[missing]),
        FusedLoopError::Register { inst: 1, register: 9 }
    );
    let complex = [memory(ElementType::C64, strides(5, 1))];
    let refused = FusedLoop::new(&domain, &complex, &[load], &[]).unwrap_err();
    assert!(matches!(refused, FusedLoopError::Unsupported { .. }));
}

/// `x * scale[channel] + shift[line]` for few channels: runs of one row along its innermost dimension are what machine code takes for rows.
#[test]
fn few_channels_of_many_pixels() {
    for (images, lines, pixels, channels) in [(1, 9, 35, 24), (2, 3, 50, 7), (3, 1, 130, 33), (1, 1, 3, 5)] {
        let (row, column) = ((lines * pixels * channels) as isize, (pixels * channels) as isize);
        let domain = Domain { rows: vec![images], columns: vec![lines, pixels, channels] };
        let of =
            |rows, columns: [isize; 3]| Access { offset: 0, rows: vec![rows], columns: columns.to_vec() };
        let dense = of(row, [column, channels as isize, 1]);
        let inputs = [
            memory(ElementType::F32, dense.clone()),
            memory(ElementType::F32, of(0, [0, 0, 1])),
            memory(ElementType::F32, of(0, [1, 0, 0])),
        ];
        let insts = [
            Inst::Load(0),
            Inst::Load(1),
            Inst::Load(2),
            Inst::Binary(Function::Multiply, Register(0), Register(1)),
            Inst::Binary(Function::Add, Register(3), Register(2)),
        ];
        let count = images * lines * pixels * channels;
        let x: Vec<f64> = (0..count).map(|at| (at % 97) as f64 - 40.0).collect();
        let scale: Vec<f64> = (0..channels).map(|at| at as f64 / 4.0 - 1.0).collect();
        let shift: Vec<f64> = (0..lines).map(|at| at as f64 * 8.0).collect();
        let tensors =
            [&x, &scale, &shift].map(|values| tensor(ElementType::F32, floats(values.iter().copied())));
        let inputs_of = [&tensors[0], &tensors[1], &tensors[2]];
        for isa in Isa::available() {
            let fused_loop =
                FusedLoop::with_isa(isa, &domain, &inputs, &insts, &[output(4, dense.clone())]).unwrap();
            for threads in 1..=3 {
                let found = run(&fused_loop, &pool(threads), &inputs_of, &[(ElementType::F32, count)]);
                for (at, found) in values(&found[0]).into_iter().enumerate() {
                    let expected = x[at] * scale[at % channels] + shift[at / (pixels * channels) % lines];
                    assert!(
                        same(found, Scalar::Float(expected)),
                        "{isa}, {channels} channels, at {at}: {found:?}"
                    );
                }
            }
        }
    }
}
