//! Large windows of random sizes and strides against the definition.

use std::sync::{Arc, Mutex};

use warpforge_tensor::ElementType;

use crate::conv::tests::{expected, pool};
use crate::conv::{Convolution, Dimension, Geometry, Input, Weights};
use crate::gemm::{ComputeType, Gemm};
use crate::isa::Isa;
use crate::output_block::OutputBlock;

/// Values of a dense tensor in memory whose dimensions are stored in another order, and their strides.
fn stored(values: &[f32], sizes: &[usize], order: &[usize]) -> (Vec<f32>, Vec<usize>) {
    let mut strides = vec![0; sizes.len()];
    let mut len = 1;
    for &axis in order.iter().rev() {
        strides[axis] = len;
        len *= sizes[axis];
    }
    let mut memory = vec![f32::NAN; len];
    for (at, &value) in values.iter().enumerate() {
        let (mut left, mut place) = (at, 0);
        for (size, stride) in sizes.iter().zip(&strides).rev() {
            place += left % size * stride;
            left /= size;
        }
        memory[place] = value;
    }
    (memory, strides)
}

fn geometry(random: &mut fastrand::Rng) -> Geometry {
    let rank = random.usize(1..4);
    // Whole images without padding are merged to long lines.
    let plain = random.bool();
    let dimension = |random: &mut fastrand::Rng| match plain {
        true => {
            let size = random.usize(2..9);
            Dimension::new(size, size)
        }
        false => Dimension {
            input: random.usize(4..20),
            window: random.usize(3..12),
            stride: random.usize(1..3),
            padding: (random.i64(-1..3), random.i64(-1..3)),
            window_dilation: random.usize(1..4),
            base_dilation: 1,
        },
    };
    Geometry {
        batch: random.usize(1..40),
        channels: random.usize(1..5),
        outputs: random.usize(1..40),
        groups: 1,
        dimensions: (0..rank).map(|_| dimension(random)).collect(),
    }
}

/// Runs a convolution of integers on operands stored in random orders; returns whether it has the plan.
fn check(geometry: &Geometry, isa: Isa, random: &mut fastrand::Rng, threads: usize, in_memory: bool) -> bool {
    let gemm = Arc::new(Gemm::with_isa(ComputeType::F32, isa));
    let convolution = Convolution::new(gemm, geometry.clone()).unwrap();
    if !convolution.reads_any_strides(ElementType::F32) {
        return false;
    }
    let rank = geometry.dimensions.len();
    let of = |size: fn(&Dimension) -> usize| geometry.dimensions.iter().map(size).collect::<Vec<_>>();
    let input_sizes = [vec![geometry.batch], of(|axis| axis.input), vec![geometry.channels]].concat();
    let weight_sizes = [of(|axis| axis.window), vec![geometry.channels, geometry.outputs]].concat();
    let mut values = |sizes: &[usize]| -> Vec<f32> {
        (0..sizes.iter().product()).map(|_| random.i32(-8..=8) as f32).collect()
    };
    let (input, weights) = (values(&input_sizes), values(&weight_sizes));
    let output: Vec<usize> = convolution.output().collect();
    let want = expected(geometry, &input, &weights, &output);
    let mut order: Vec<usize> = (0..rank + 2).collect();
    // As gradients find them, or in any order.
    match random.usize(0..3) {
        0 => random.shuffle(&mut order),
        _ => order = [vec![rank + 1], (1..=rank).collect(), vec![0]].concat(),
    }
    let (input, input_strides) = stored(&input, &input_sizes, &order);
    let weight_order = [vec![rank], (0..rank).collect(), vec![rank + 1]].concat();
    let (weights, weight_strides) = stored(&weights, &weight_sizes, &weight_order);
    let input = Input {
        data: input.as_ptr().cast(),
        element: ElementType::F32,
        channel_stride: input_strides[rank + 1],
        batch_stride: input_strides[0],
        strides: &input_strides[1..=rank],
    };
    let weights = Weights {
        data: weights.as_ptr().cast(),
        element: ElementType::F32,
        window_strides: weight_strides[..rank].iter().map(|&stride| stride as isize).collect(),
        input_stride: weight_strides[rank],
        output_stride: weight_strides[rank + 1],
    };
    let columns = geometry.outputs;
    let mut out = vec![f32::NAN; convolution.rows() * columns];
    let from_sink = Mutex::new(vec![f32::NAN; out.len()]);
    let sink = |block: &OutputBlock| {
        let mut seen = from_sink.lock().unwrap();
        for (at, row) in block.rows.clone().enumerate() {
            for (column, to) in block.columns.clone().enumerate() {
                // SAFETY: the block has these rows and columns.
                seen[row * columns + to] =
                    unsafe { block.data.cast::<f32>().add(at * block.stride + column).read() };
            }
        }
    };
    let to = in_memory.then(|| out.as_mut_ptr().cast());
    // SAFETY: the operands and the result have these sizes.
    unsafe { convolution.run_unpacked(&pool(threads), &input, &weights, to, columns, Some(&sink)) }.unwrap();
    let is = |got: &[f32]| got.iter().map(|&value| f64::from(value)).eq(want.iter().copied());
    assert!(is(&from_sink.lock().unwrap()), "{isa}: {geometry:?}, stored as {order:?}");
    assert!(!in_memory || is(&out), "{isa}: {geometry:?}, stored as {order:?}");
    true
}

#[test]
fn random_large_windows_match_the_definition() {
    let mut random = fastrand::Rng::with_seed(11);
    let isas: Vec<Isa> = Isa::available().collect();
    let checked = (0..400)
        .filter(|&round| {
            let geometry = geometry(&mut random);
            check(&geometry, isas[round % isas.len()], &mut random, round % 3 + 1, round % 2 == 0)
        })
        .count();
    assert!(checked > 150, "{checked} had larger windows than outputs");
}

#[test]
fn other_types_and_sums_of_nothing_have_no_plan() {
    let geometry =
        Geometry { batch: 3, channels: 2, outputs: 4, groups: 1, dimensions: vec![Dimension::new(8, 8)] };
    let reads = |geometry: &Geometry, compute_type, element| {
        let gemm = Arc::new(Gemm::new(compute_type));
        Convolution::new(gemm, geometry.clone()).unwrap().reads_any_strides(element)
    };
    assert!(reads(&geometry, ComputeType::F32, ElementType::F32));
    assert!(reads(&geometry, ComputeType::F64, ElementType::F64));
    assert!(!reads(&geometry, ComputeType::F32, ElementType::F16));
    assert!(!reads(&geometry, ComputeType::Bf16, ElementType::BF16));
    let nothing = Geometry { channels: 0, ..geometry };
    assert!(!reads(&nothing, ComputeType::F32, ElementType::F32));
}

#[test]
fn sums_of_several_chunks_match_the_definition() {
    let mut random = fastrand::Rng::with_seed(5);
    let padded = |input, padding| Dimension { padding: (padding, padding), ..Dimension::new(input, input) };
    let geometry =
        |batch, outputs, dimensions| Geometry { batch, channels: 3, outputs, groups: 1, dimensions };
    // Images of more than a chunk each, and several images to a chunk.
    for geometry in [
        geometry(70, 40, vec![padded(130, 1), padded(90, 1)]),
        geometry(130, 20, vec![padded(90, 0), padded(60, 0)]),
        geometry(60, 30, vec![padded(60, 1), padded(70, 1)]),
    ] {
        for in_memory in [true, false] {
            assert!(check(&geometry, Isa::best(), &mut random, 2, in_memory), "{geometry:?}");
        }
    }
}
