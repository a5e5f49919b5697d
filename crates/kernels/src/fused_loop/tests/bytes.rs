//! Compiled loops that read and write integers: quantized values, pixels, sums of products.

use super::*;
use crate::isa::Isa;

const SIZES: (usize, usize) = (5, 83);

/// Numbers of every size, and what is none.
fn numbers(element: ElementType) -> Vec<Scalar> {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.5, -0.5, 127.5, -128.5, 255.5, -1.0, 1e30];
    let of = |at: usize| match element {
        ElementType::Float(_) if at.is_multiple_of(7) => Scalar::Float(odd[at / 7 % odd.len()]),
        ElementType::Float(_) => Scalar::Float((at as f64 * 37.25) % 700.0 - 350.0),
        _ => Scalar::Int((at as i128 * 7_919_317) % 4_000_000_000 - 2_000_000_000),
    };
    (0..SIZES.0 * SIZES.1).map(|at| of(at).rounded_to(element)).collect()
}

/// Whether a loop over these inputs that stores some values is compiled where that can be; its results are the naive ones.
fn is_compiled(elements: &[ElementType], insts: &[Inst], stored: &[usize]) -> bool {
    let (rows, columns) = SIZES;
    let domain = matrix(rows, columns);
    let dense = strides(columns as isize, 1);
    let inputs: Vec<Input> = elements.iter().map(|&element| memory(element, dense.clone())).collect();
    let buffers: Vec<Vec<Scalar>> = elements.iter().map(|&element| numbers(element)).collect();
    let expected = naive::evaluate(&domain, &inputs, &buffers, insts);
    let types = check::types(&inputs, insts).unwrap();
    let outputs: Vec<Output> = stored.iter().map(|&inst| output(inst, dense.clone())).collect();
    let tensors: Vec<Tensor> = elements
        .iter()
        .zip(&buffers)
        .map(|(&element, buffer)| tensor(element, buffer.iter().copied()))
        .collect();
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    let sizes: Vec<(ElementType, usize)> = stored.iter().map(|&inst| (types[inst], rows * columns)).collect();
    let fused_loop = FusedLoop::new(&domain, &inputs, insts, &outputs).unwrap();
    for (found, &inst) in run(&fused_loop, &pool(2), &tensors, &sizes).iter().zip(stored) {
        for (at, (found, &expected)) in values(found).into_iter().zip(&expected[inst]).enumerate() {
            assert!(same(found, expected), "inst {inst} at {at}: {found:?}, not {expected:?}\n{insts:#?}");
        }
    }
    fused_loop.is_compiled()
}

#[test]
fn bytes_are_read_and_written_by_machine_code() {
    let r = Register;
    let insts = [
        Inst::Load(0),
        Inst::Load(1),
        Inst::Load(2),
        Inst::Load(3),
        Inst::Convert(r(1), ElementType::F32),
        Inst::Convert(r(2), ElementType::F32),
        Inst::Convert(r(3), ElementType::F32),
        Inst::Binary(Function::Multiply, r(0), r(4)),
        Inst::Binary(Function::Add, r(7), r(5)),
        Inst::Unary(Function::RoundNearestEven, r(8)),
        Inst::Convert(r(9), ElementType::I8),
        Inst::Convert(r(9), ElementType::U8),
        Inst::Convert(r(0), ElementType::I8),
        Inst::Convert(r(0), ElementType::U8),
        Inst::Convert(r(10), ElementType::F32),
        Inst::Compare(Direction::Lt, Order::Partial, r(14), r(6)),
        Inst::Convert(r(15), ElementType::U8),
        Inst::Select(r(15), r(10), r(12)),
        Inst::Binary(Function::Add, r(6), r(14)),
    ];
    let elements = [ElementType::F32, ElementType::I8, ElementType::U8, ElementType::I32];
    for stored in [[10, 11, 12], [13, 16, 17], [10, 16, 18]] {
        let compiles = is_compiled(&elements, &insts, &stored);
        assert_eq!(compiles, cfg!(target_arch = "x86_64") && Isa::best() == Isa::Avx512, "{stored:?}");
    }
}

#[test]
fn what_integers_wrap_in_is_interpreted() {
    let r = Register;
    let chains = [
        (ElementType::I8, Inst::Convert(r(0), ElementType::U8)),
        (ElementType::U8, Inst::Convert(r(0), ElementType::I8)),
        (ElementType::I32, Inst::Convert(r(0), ElementType::I8)),
        (ElementType::I8, Inst::Convert(r(0), ElementType::I32)),
        (ElementType::I8, Inst::Binary(Function::Add, r(0), r(0))),
        (ElementType::I8, Inst::Unary(Function::Negate, r(0))),
        (ElementType::I32, Inst::Binary(Function::Add, r(0), r(0))),
    ];
    for (element, inst) in chains {
        let insts = [Inst::Load(0), inst, Inst::Convert(r(1), ElementType::F32)];
        assert!(!is_compiled(&[element], &insts, &[1, 2]), "{insts:?}");
    }
    let truth = [
        Inst::Load(0),
        Inst::Compare(Direction::Lt, Order::Partial, r(0), r(0)),
        Inst::Convert(r(1), ElementType::I32),
        Inst::Convert(r(2), ElementType::F32),
    ];
    is_compiled(&[ElementType::F32], &truth, &[3]);
}
