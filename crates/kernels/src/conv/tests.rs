//! Convolutions of random sizes against loops over their definition.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use half::bf16;
use warpforge_tensor::ElementType;

use super::*;
use crate::gemm::{ComputeType, Gemm};
use crate::isa::Isa;
use crate::output_block::OutputBlock;
use crate::pool::Pool;

pub(super) fn pool(threads: usize) -> Pool {
    Pool::new(NonZeroUsize::new(threads).unwrap()).unwrap()
}

/// Small integers: sums of their products are exact in all types.
fn values(random: &mut fastrand::Rng, count: usize) -> Vec<f32> {
    (0..count).map(|_| random.i32(-8..=8) as f32).collect()
}

fn bytes(values: &[f32], element: ElementType) -> Vec<u8> {
    match element {
        ElementType::F64 => values.iter().flat_map(|value| f64::from(*value).to_ne_bytes()).collect(),
        ElementType::BF16 => values.iter().flat_map(|value| bf16::from_f32(*value).to_ne_bytes()).collect(),
        ElementType::I8 => values.iter().map(|value| *value as i8 as u8).collect(),
        _ => values.iter().flat_map(|value| value.to_ne_bytes()).collect(),
    }
}

fn read(bytes: &[u8], element: ElementType) -> f64 {
    match element {
        ElementType::F64 => f64::from_ne_bytes(bytes.try_into().unwrap()),
        ElementType::I32 => f64::from(i32::from_ne_bytes(bytes.try_into().unwrap())),
        _ => f64::from(f32::from_ne_bytes(bytes.try_into().unwrap())),
    }
}

fn random_geometry(random: &mut fastrand::Rng) -> Geometry {
    // Whole rows of tiles now and then.
    let many = random.usize(0..3) == 0;
    let rank = if many { 2 } else { random.usize(0..=3) };
    let dimension = |random: &mut fastrand::Rng| Dimension {
        input: random.usize(1..9),
        window: random.usize(1..5),
        stride: random.usize(1..4),
        padding: (random.i64(-2..4), random.i64(-2..4)),
        window_dilation: random.usize(1..3),
        base_dilation: random.usize(1..3),
    };
    let groups = if many { 1 } else { random.usize(1..4) };
    Geometry {
        batch: random.usize(0..4),
        channels: if many { 32 * random.usize(1..4) } else { groups * random.usize(1..12) },
        outputs: groups * random.usize(1..40),
        groups,
        dimensions: (0..rank).map(|_| dimension(random)).collect(),
    }
}

/// The digits of an index in mixed radix.
fn digits(mut number: usize, sizes: &[usize]) -> Vec<usize> {
    let mut digits = vec![0; sizes.len()];
    for (digit, size) in digits.iter_mut().zip(sizes).rev() {
        *digit = number % size;
        number /= size;
    }
    digits
}

/// The definition: input NHWC and weights HWIO, dense.
pub(super) fn expected(geometry: &Geometry, input: &[f32], weights: &[f32], output: &[usize]) -> Vec<f64> {
    let window: Vec<usize> = geometry.dimensions.iter().map(|dimension| dimension.window).collect();
    let (inputs, outputs) = (geometry.channels / geometry.groups, geometry.outputs / geometry.groups);
    let pixels: usize = output.iter().product();
    let mut result = vec![0.0; geometry.batch * pixels * geometry.outputs];
    for (at, result) in result.chunks_mut(geometry.outputs.max(1)).enumerate() {
        let (image, position) = (at / pixels, digits(at % pixels, output));
        for tap in 0..window.iter().product() {
            let mut input_index = Some(image);
            for ((dimension, position), element) in
                geometry.dimensions.iter().zip(&position).zip(digits(tap, &window))
            {
                let at = (position * dimension.stride + element * dimension.window_dilation) as i64
                    - dimension.padding.0;
                let by = dimension.base_dilation as i64;
                let inside = at >= 0 && at % by == 0 && at / by < dimension.input as i64;
                input_index = input_index
                    .filter(|_| inside)
                    .map(|input_index| input_index * dimension.input + (at / by) as usize);
            }
            let Some(input_index) = input_index else { continue };
            for (channel, sum) in result.iter_mut().enumerate() {
                let group = channel / outputs;
                for from in 0..inputs {
                    let input = input[input_index * geometry.channels + group * inputs + from];
                    let weight = weights[(tap * inputs + from) * geometry.outputs + channel];
                    *sum += f64::from(input) * f64::from(weight);
                }
            }
        }
    }
    result
}

#[test]
fn random_convolutions_match_the_definition() {
    let mut random = fastrand::Rng::with_seed(7);
    let pools = [pool(1), pool(2), pool(3)];
    let compute_types = [
        (ComputeType::F32, ElementType::F32),
        (ComputeType::F64, ElementType::F64),
        (ComputeType::Bf16, ElementType::BF16),
    ];
    let compute_types = compute_types.into_iter().chain([
        (ComputeType::F32, ElementType::BF16),
        (ComputeType::Bf16, ElementType::F32),
        (ComputeType::I8, ElementType::I8),
    ]);
    let cases: Vec<_> = Isa::available()
        .flat_map(|isa| compute_types.clone().map(move |compute_type| (isa, compute_type)))
        .collect();
    let mut planar_images = 0;
    for round in 0..600 {
        let (isa, (compute_type, element)) = cases[round % cases.len()];
        let gemm = Arc::new(Gemm::with_isa(compute_type, isa));
        let geometry = random_geometry(&mut random);
        let convolution = Convolution::new(gemm, geometry.clone()).unwrap();
        let output: Vec<usize> = convolution.output().take(geometry.dimensions.len()).collect();
        let window: Vec<usize> = geometry.dimensions.iter().map(|dimension| dimension.window).collect();
        let sizes: Vec<usize> = geometry.dimensions.iter().map(|dimension| dimension.input).collect();
        let (pixels, taps): (usize, usize) = (sizes.iter().product(), window.iter().product());
        let input = values(&mut random, geometry.batch * pixels * geometry.channels);
        let weights = values(&mut random, taps * geometry.channels / geometry.groups * geometry.outputs);
        let want = expected(&geometry, &input, &weights, &output);
        let strides_of = |sizes: &[usize], innermost: usize| -> Vec<usize> {
            (0..sizes.len()).map(|at| sizes[at + 1..].iter().product::<usize>() * innermost).collect()
        };
        let packed = bytes(&weights, element);
        let window_strides = strides_of(&window, geometry.channels / geometry.groups * geometry.outputs);
        let weights = Weights {
            data: packed.as_ptr(),
            element,
            window_strides: window_strides.into_iter().map(|stride| stride as isize).collect(),
            input_stride: geometry.outputs,
            output_stride: 1,
        };
        // SAFETY: the weights have these sizes.
        let packed = unsafe { convolution.pack(&weights, Some(&pools[1])) }.unwrap();
        let planar =
            convolution.copies_any_strides(element).then(|| planes(&input, pixels, geometry.channels));
        planar_images += usize::from(planar.is_some());
        let images = planar.map(|planes| (planes, pixels, 1)).into_iter();
        for (image, channel_stride, innermost) in images.chain([(input, 1, geometry.channels)]) {
            let (image, strides) = (bytes(&image, element), strides_of(&sizes, innermost));
            let input = Input {
                data: image.as_ptr(),
                element,
                channel_stride,
                batch_stride: pixels * geometry.channels,
                strides: &strides,
            };
            let (sum, stride) = (compute_type.accumulator(), geometry.outputs + 1);
            let size = sum.byte_width();
            let mut out = vec![0u8; convolution.rows() * stride * size];
            let seen = Mutex::new(0);
            let sink = |block: &OutputBlock| *seen.lock().unwrap() += block.rows.len() * block.columns.len();
            let pool = &pools[round % 3];
            // SAFETY: the input and the result have these sizes.
            unsafe { convolution.run(pool, &input, &packed, Some(out.as_mut_ptr()), stride, Some(&sink)) }
                .unwrap();
            assert_eq!(*seen.lock().unwrap(), want.len());
            let got = out.chunks(size).enumerate().filter(|(at, _)| at % stride < geometry.outputs);
            let got: Vec<f64> = got.map(|(_, bytes)| read(bytes, sum)).collect();
            assert!(got == want, "{isa} {compute_type:?} of {element}: {geometry:?}");
        }
    }
    assert!(planar_images > 20, "{planar_images}");
}

/// Images channel by channel.
fn planes(pixels_first: &[f32], pixels: usize, channels: usize) -> Vec<f32> {
    let mut planes = Vec::with_capacity(pixels_first.len());
    for image in pixels_first.chunks((pixels * channels).max(1)) {
        planes.extend((0..channels).flat_map(|channel| image.iter().skip(channel).step_by(channels)));
    }
    planes
}

#[test]
fn invalid_sizes_are_rejected() {
    let new = |geometry| Convolution::new(Arc::new(Gemm::new(ComputeType::F32)), geometry).unwrap_err();
    let dimension = Dimension::new(5, 3);
    let geometry = Geometry { batch: 1, channels: 6, outputs: 4, groups: 1, dimensions: vec![dimension] };
    assert!(matches!(new(Geometry { groups: 4, ..geometry.clone() }), ConvError::Groups { .. }));
    assert!(matches!(new(Geometry { groups: 0, ..geometry.clone() }), ConvError::Groups { .. }));
    let with = |dimension| new(Geometry { dimensions: vec![dimension], ..geometry.clone() });
    assert!(matches!(with(Dimension { stride: 0, ..dimension }), ConvError::Step { dimension: 0 }));
    assert!(matches!(with(Dimension { input: usize::MAX, ..dimension }), ConvError::TooLarge { .. }));
    assert!(matches!(with(Dimension { padding: (i64::MAX, 0), ..dimension }), ConvError::TooLarge { .. }));
    assert!(matches!(new(Geometry { batch: usize::MAX, ..geometry.clone() }), ConvError::TooLarge { .. }));
}
