//! The sizes of each scale.

use super::attention::{self, Steps};
use super::conv::{self, Geometry, Then};
use super::linear::{self, Epilogue};
use super::streams::{self, COLUMNS, Stream};
use super::{Case, Dtype, Family, Scale};

/// Channels, height and width, and channels of a group of convolutions in groups.
const GROUPED: [(usize, usize, usize); 5] =
    [(128, 56, 4), (64, 28, 8), (256, 14, 8), (128, 28, 16), (512, 14, 16)];

/// Channels, height and width, and outputs of convolutions between few channels, as in networks for small devices.
const FEW_CHANNELS: [(usize, usize, usize); 3] = [(16, 56, 64), (24, 28, 96), (96, 28, 24)];

/// Rows, inputs and outputs of linear layers that fill a GPU.
const LARGE_LINEAR: [(usize, usize, usize); 4] =
    [(2048, 512, 2048), (2048, 2048, 512), (8192, 512, 512), (8192, 1024, 4096)];

/// Batch, heads, positions and width of attention that fills a GPU.
const LARGE_ATTENTION: [[usize; 4]; 3] = [[8, 12, 256, 64], [4, 8, 1024, 64], [8, 4, 2048, 64]];

/// Heads, queries and keys of attention to another sequence or to a cache.
const CROSS_ATTENTION: [(usize, usize, usize); 3] = [(12, 1, 512), (24, 32, 1024), (96, 32, 256)];

/// Rows, and inputs or outputs, of the linear layers of a whole sweep.
const ROWS: [usize; 6] = [1, 8, 32, 128, 512, 2048];
const SIDES: [usize; 4] = [512, 1024, 2048, 4096];

/// The cases that a GPU computes in no time: sizes that fill it, which predictions would extrapolate to.
pub(crate) fn large(scale: Scale, families: &[Family], dtypes: &[Dtype], of_bytes: &[Dtype]) -> Vec<Case> {
    let mut all = Vec::new();
    for &dtype in of_bytes.iter().filter(|_| families.contains(&Family::Linear)) {
        let grid = ROWS
            .into_iter()
            .filter(|_| scale == Scale::Full)
            .flat_map(|m| SIDES.into_iter().flat_map(move |k| SIDES.into_iter().map(move |n| (m, k, n))));
        let sizes = grid.chain(LARGE_LINEAR.into_iter().filter(|size| scale != Scale::Full || size.0 > 2048));
        all.extend(sizes.map(|(m, k, n)| linear::of_bytes(m, k, n, dtype)));
    }
    for &dtype in dtypes {
        if families.contains(&Family::Linear) {
            all.extend(LARGE_LINEAR.map(|(m, k, n)| linear(m, k, n, dtype)));
        }
        if families.contains(&Family::Attention) {
            all.extend(LARGE_ATTENTION.map(|shape| attention::case(shape, Steps::Full, dtype)));
            all.extend(
                CROSS_ATTENTION
                    .map(|(heads, queries, keys)| attention::cross([1, heads, queries, keys, 64], dtype)),
            );
        }
    }
    all
}

/// The cases of some families in some types, with streams always, and matmuls of the types that have 8 bits.
pub(crate) fn cases(scale: Scale, families: &[Family], dtypes: &[Dtype], of_bytes: &[Dtype]) -> Vec<Case> {
    let mut all = Vec::new();
    let wants = |family: Family| families.contains(&family);
    for &dtype in dtypes {
        if wants(Family::Linear) {
            linears(scale, dtype, &mut all);
        }
        if wants(Family::Conv) {
            convs(scale, dtype, &mut all);
        }
        if wants(Family::Attention) {
            attentions(scale, dtype, &mut all);
        }
    }
    if wants(Family::Linear) {
        for &dtype in of_bytes {
            matmuls_of_bytes(scale, dtype, &mut all);
        }
    }
    for rows in stream_rows(scale) {
        all.extend(Stream::ALL.map(|stream| streams::case(rows, stream)));
    }
    for &dtype in dtypes {
        for rows in narrow_stream_rows(scale) {
            all.extend(Stream::NARROW.into_iter().filter_map(|stream| streams::narrow(rows, stream, dtype)));
        }
    }
    all
}

/// Half of the sizes of linear layers: squares, and one side four times the other.
fn matmuls_of_bytes(scale: Scale, dtype: Dtype, all: &mut Vec<Case>) {
    let mut add = |rows: &[usize], k, n| {
        all.extend(rows.iter().map(|&m| linear::of_bytes(m, k, n, dtype)));
    };
    match scale {
        Scale::Smoke => add(&[1, 128], 64, 64),
        Scale::Quick => add(&[1, 128, 512], 1024, 1024),
        Scale::Full => {
            for (at, side) in SIDES.into_iter().enumerate() {
                add(&ROWS, side, side);
                if let Some(&long) = SIDES.get(at + 2) {
                    add(&ROWS, side, long);
                    add(&ROWS, long, side);
                }
            }
        }
    }
}

/// A linear layer without bias.
pub(crate) fn linear(m: usize, k: usize, n: usize, dtype: Dtype) -> Case {
    linear::case(m, k, n, Epilogue::None, dtype)
}

fn linears(scale: Scale, dtype: Dtype, all: &mut Vec<Case>) {
    let mut add = |m, k, n, epilogues: &[Epilogue]| {
        all.extend(epilogues.iter().map(|&epilogue| linear::case(m, k, n, epilogue, dtype)));
    };
    match scale {
        Scale::Smoke => add(8, 64, 64, &Epilogue::ALL),
        Scale::Quick => {
            add(512, 1024, 1024, &Epilogue::ALL);
            // The corners and the middle of the sweep, which predictions interpolate between.
            for m in [1, 32, 128, 512] {
                for (k, n) in [(512, 512), (512, 2048), (1024, 1024), (2048, 512), (4096, 1024)] {
                    if (m, k, n) != (512, 1024, 1024) {
                        add(m, k, n, &[Epilogue::None]);
                    }
                }
            }
        }
        Scale::Full => {
            for m in ROWS {
                for k in SIDES {
                    for n in SIDES {
                        add(m, k, n, &Epilogue::ALL);
                    }
                }
            }
            // Narrow layers, as in small networks and in heads of large ones.
            for m in [1, 32, 512] {
                for (k, n) in [(64, 64), (128, 128), (256, 256), (1024, 64), (64, 1024)] {
                    add(m, k, n, &[Epilogue::None]);
                }
            }
        }
    }
}

fn convs(scale: Scale, dtype: Dtype, all: &mut Vec<Case>) {
    let mut add = |geometry: Geometry, then: &[Then]| {
        all.extend(then.iter().map(|&then| conv::case(geometry, then, dtype)));
    };
    let alone = &[Then::Nothing];
    match scale {
        Scale::Smoke => {
            add(Geometry::square(1, 16, 8, 16, 3), &Then::ALL);
            add(Geometry::depthwise(1, 16, 8, 3), alone);
        }
        Scale::Quick => {
            add(Geometry::square(4, 128, 28, 128, 3), &Then::ALL);
            for (channels, side) in [(32, 112), (64, 56), (256, 14), (512, 7)] {
                add(Geometry::square(1, channels, side, channels, 3), alone);
                add(Geometry::square(1, channels, side, channels, 1), alone);
                add(Geometry::depthwise(1, channels, side, 3), alone);
            }
            add(Geometry::square(1, 128, 56, 32, 3), alone);
            add(Geometry::square(1, 128, 14, 32, 3), alone);
            for (channels, side, width) in GROUPED {
                add(Geometry::square(1, channels, side, channels, 3).grouped(width), alone);
            }
            add(Geometry::square(1, 64, 56, 256, 1), alone);
            add(Geometry::square(1, 1024, 14, 256, 1), alone);
            for (channels, side, outputs) in FEW_CHANNELS {
                add(Geometry::square(1, channels, side, outputs, 1), alone);
            }
            add(Geometry::square(1, 128, 56, 128, 3).strided(), alone);
            add(Geometry::square(1, 512, 14, 512, 3).strided(), alone);
            add(Geometry::square(1, 256, 56, 512, 1).strided(), alone);
            add(Geometry::square(1, 3, 224, 64, 7).strided(), alone);
            add(Geometry::square(1, 3, 224, 32, 3).strided(), alone);
            add(Geometry::square(1, 3, 224, 16, 3).strided(), alone);
            add(Geometry::depthwise(1, 96, 112, 3).strided(), alone);
            for (channels, side) in [(96, 56), (384, 14)] {
                add(Geometry::depthwise(1, channels, side, 7), alone);
                add(Geometry::depthwise(8, channels, side, 7), alone);
                add(Geometry::square(8, channels, side, channels, 3), alone);
                add(Geometry::square(8, channels, side, channels, 1), alone);
            }
        }
        Scale::Full => {
            add(Geometry::square(4, 128, 28, 128, 3), &Then::ALL);
            for (channels, sides) in
                [(32, [112, 56]), (64, [56, 28]), (128, [28, 56]), (256, [14, 28]), (512, [7, 14])]
            {
                let square = |window| Geometry::square(1, channels, sides[0], channels, window);
                add(square(1), &Then::ALL);
                add(square(3), &Then::ALL);
                add(square(7), &Then::ALL);
                add(Geometry::depthwise(1, channels, sides[0], 3), &Then::ALL);
                let square = |window| Geometry::square(1, channels, sides[1], channels, window);
                add(square(1), alone);
                add(square(3), alone);
                add(Geometry::depthwise(1, channels, sides[1], 3), alone);
                add(Geometry::depthwise(1, channels, sides[0], 5), alone);
                add(Geometry::depthwise(1, channels, sides[0], 7), alone);
                add(Geometry::depthwise(8, channels, sides[0], 7), alone);
                add(Geometry::square(1, channels, sides[0] * 2, channels, 3).strided(), alone);
                add(Geometry::depthwise(1, channels, sides[0] * 2, 3).strided(), alone);
                add(Geometry::square(1, channels, sides[0], 4 * channels, 1), alone);
                add(Geometry::square(1, 4 * channels, sides[0], channels, 1), alone);
                add(Geometry::square(1, channels, sides[0] * 2, 2 * channels, 1).strided(), alone);
                add(Geometry::square(8, channels, sides[0], channels, 3), alone);
                add(Geometry::square(8, channels, sides[0], channels, 1), alone);
            }
            add(Geometry::square(1, 3, 224, 64, 7).strided(), alone);
            add(Geometry::square(1, 3, 224, 32, 3).strided(), alone);
            add(Geometry::square(1, 3, 224, 64, 3), alone);
            add(Geometry::square(1, 3, 224, 16, 3).strided(), alone);
            for side in [56, 28, 14, 7] {
                add(Geometry::square(1, 128, side, 32, 3), alone);
            }
            for (channels, side, width) in GROUPED {
                add(Geometry::square(1, channels, side, channels, 3).grouped(width), alone);
                add(Geometry::square(1, channels, 2 * side, channels, 3).grouped(width).strided(), alone);
            }
            for (channels, side, outputs) in FEW_CHANNELS {
                add(Geometry::square(1, channels, side, outputs, 1), alone);
                add(Geometry::square(1, channels, 2 * side, outputs, 1), alone);
            }
            add(Geometry::depthwise(1, 960, 7, 3), alone);
        }
    }
}

fn attentions(scale: Scale, dtype: Dtype, all: &mut Vec<Case>) {
    let mut add = |shape, steps: &[Steps]| {
        all.extend(steps.iter().map(|&steps| attention::case(shape, steps, dtype)));
    };
    match scale {
        Scale::Smoke => add([2, 1, 16, 8], &Steps::ALL),
        Scale::Quick => {
            add([4, 1, 256, 64], &Steps::ALL);
            add([1, 12, 64, 64], &[Steps::Full, Steps::Scores]);
            add([1, 12, 128, 64], &[Steps::Full]);
            add([1, 8, 512, 64], &[Steps::Full]);
            add([1, 8, 256, 32], &[Steps::Full]);
        }
        Scale::Full => {
            add([4, 1, 256, 64], &Steps::ALL);
            for sequence in [64, 128, 256, 512, 1024, 2048] {
                for width in [64, 128] {
                    add([1, 8, sequence, width], &Steps::ALL);
                }
            }
            add([1, 12, 197, 64], &[Steps::Full]);
            add([1, 8, 256, 32], &[Steps::Full]);
            add([8, 12, 128, 64], &[Steps::Full]);
        }
    }
}

/// Rows of streams of 16 bits: a size for each level of memory.
fn narrow_stream_rows(scale: Scale) -> Vec<usize> {
    let rows = |bytes: usize| bytes / COLUMNS / 4;
    match scale {
        Scale::Smoke => vec![rows(32 << 10)],
        Scale::Quick => [512 << 10, 8 << 20].map(rows).to_vec(),
        Scale::Full => [128 << 10, 8 << 20, 128 << 20].map(rows).to_vec(),
    }
}

/// Rows of streams: 32 KiB to 256 MiB of a value.
fn stream_rows(scale: Scale) -> Vec<usize> {
    let rows = |bytes: usize| bytes / COLUMNS / 4;
    match scale {
        Scale::Smoke => vec![rows(32 << 10)],
        Scale::Quick => [32 << 10, 512 << 10, 8 << 20, 64 << 20].map(rows).to_vec(),
        Scale::Full => [32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20, 32 << 20, 128 << 20, 256 << 20]
            .map(rows)
            .to_vec(),
    }
}
