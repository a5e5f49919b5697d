//! Winograd convolutions against loops over their definition.

use std::sync::{Arc, Mutex};

use warpforge_tensor::ElementType;

use crate::conv::tests::{expected, pool};
use crate::conv::{Convolution, Dimension, Geometry, Input, Weights};
use crate::gemm::{ComputeType, Gemm};
use crate::isa::Isa;
use crate::output_block::OutputBlock;
use crate::pool::Pool;

/// A convolution with random values, and its definition.
struct Case {
    geometry: Geometry,
    convolution: Convolution,
    input: Vec<f32>,
    weights: Vec<f32>,
    want: Vec<f64>,
}

impl Case {
    fn new(random: &mut fastrand::Rng, isa: Isa, geometry: Geometry) -> Self {
        let gemm = Arc::new(Gemm::with_isa(ComputeType::F32, isa));
        let convolution = Convolution::new(gemm, geometry.clone()).unwrap();
        let pixels = geometry.dimensions.iter().map(|dimension| dimension.input).product::<usize>();
        let mut values = |count: usize| (0..count).map(|_| random.f32() - 0.5).collect::<Vec<f32>>();
        let input = values(geometry.batch * pixels * geometry.channels);
        let weights = values(9 * geometry.channels * geometry.outputs);
        let output: Vec<usize> = convolution.output().collect();
        let want = expected(&geometry, &input, &weights, &output);
        Self { geometry, convolution, input, weights, want }
    }

    /// The output, through a sink or not.
    fn run(&self, pool: &Pool, through_sink: bool) -> Vec<f32> {
        let Geometry { channels, outputs, dimensions, .. } = &self.geometry;
        let each = (channels * outputs) as isize;
        let weights = Weights {
            data: self.weights.as_ptr().cast(),
            element: ElementType::F32,
            window_strides: vec![3 * each, each],
            input_stride: *outputs,
            output_stride: 1,
        };
        // SAFETY: the weights have these sizes.
        let weights = unsafe { self.convolution.prepare(&weights, Some(pool)) }.unwrap();
        let row = dimensions[1].input * channels;
        let input = Input {
            data: self.input.as_ptr().cast(),
            element: ElementType::F32,
            channel_stride: 1,
            batch_stride: dimensions[0].input * row,
            strides: &[row, *channels],
        };
        let mut out = vec![f32::NAN; self.want.len()];
        let seen = Mutex::new(vec![f32::NAN; self.want.len()]);
        let sink = |block: &OutputBlock| {
            let mut seen = seen.lock().unwrap();
            for (at, row) in block.rows.clone().enumerate() {
                // SAFETY: the block has that many rows and columns.
                let from = unsafe {
                    let from = block.data.cast::<f32>().add(at * block.stride);
                    std::slice::from_raw_parts(from, block.columns.len())
                };
                seen[row * outputs..][block.columns.clone()].copy_from_slice(from);
            }
        };
        let target = (!through_sink).then(|| out.as_mut_ptr().cast());
        // SAFETY: the input and the result have these sizes.
        unsafe { self.convolution.run(pool, &input, &weights, target, *outputs, Some(&sink)) }.unwrap();
        let seen = seen.into_inner().unwrap();
        if !through_sink {
            assert_eq!(out, seen);
        }
        seen
    }

    /// The maximum error relative to the largest value.
    fn error(&self, got: &[f32]) -> f64 {
        let largest = self.want.iter().fold(0f64, |most, value| most.max(value.abs()));
        let differences = self.want.iter().zip(got).map(|(want, got)| (want - f64::from(*got)).abs());
        differences.fold(
            0f64,
            |most, differences| if differences.is_nan() { differences } else { most.max(differences) },
        ) / largest
    }
}

fn geometry(random: &mut fastrand::Rng) -> Geometry {
    let dimension = |random: &mut fastrand::Rng| Dimension {
        padding: (random.i64(-1..4), random.i64(-1..4)),
        ..Dimension::new(random.usize(5..20), 3)
    };
    Geometry {
        batch: random.usize(1..4),
        channels: 16 * random.usize(2..5),
        outputs: 16 * random.usize(2..6),
        groups: 1,
        dimensions: vec![dimension(random), dimension(random)],
    }
}

#[test]
fn winograd_matches_the_definition() {
    let mut random = fastrand::Rng::with_seed(11);
    let pools = [pool(1), pool(2), pool(3)];
    let isas: Vec<Isa> = Isa::available().collect();
    let mut schemes = [0; 2];
    for round in 0..60 {
        let geometry = geometry(&mut random);
        let case = Case::new(&mut random, isas[round % isas.len()], geometry);
        if let Some(plan) = &case.convolution.winograd {
            schemes[usize::from(plan.out == 4)] += 1;
        }
        let got = case.run(&pools[round % 3], round % 2 == 0);
        assert!(case.error(&got) < 3e-6, "{}: {:?}", case.error(&got), case.geometry);
        assert_eq!(got, case.run(&pools[(round + 1) % 3], round % 2 == 1), "{:?}", case.geometry);
    }
    assert!(schemes.iter().all(|&times| times > 5), "{schemes:?}");
}

#[test]
fn winograd_needs_dense_3x3_windows_and_many_channels() {
    let usual = Dimension { padding: (1, 1), ..Dimension::new(28, 3) };
    let changed = |channels, dimension| {
        let geometry =
            Geometry { batch: 1, channels, outputs: 64, groups: 1, dimensions: vec![usual, dimension] };
        Convolution::new(Arc::new(Gemm::new(ComputeType::F32)), geometry).unwrap().winograd.is_some()
    };
    assert!(changed(64, usual));
    assert!(!changed(16, usual));
    assert!(!changed(72, usual));
    assert!(!changed(64, Dimension { window: 5, ..usual }));
    assert!(!changed(64, Dimension { stride: 2, ..usual }));
    assert!(!changed(64, Dimension { window_dilation: 2, ..usual }));
    assert!(!changed(64, Dimension { base_dilation: 2, ..usual }));
}
