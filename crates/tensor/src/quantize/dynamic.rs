//! The dynamic maps of 8 bits: values whose exponent takes as many of the bits as it needs.

/// Values that share a scale.
pub const BLOCK: usize = 256;

/// Cells of the table that a value's code is looked up in.
pub const CELLS: usize = 1 << 16;

const EXPONENTS: i32 = 7;

/// A map from codes to values in [-1, 1], and the table that finds the code of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicMap {
    values: Vec<f32>,
    table: Vec<u8>,
}

impl DynamicMap {
    /// The map with both signs, for weights and first moments.
    #[must_use]
    pub fn signed() -> Self {
        Self::new(true)
    }

    /// The map without negative values, for second moments.
    #[must_use]
    pub fn unsigned() -> Self {
        Self::new(false)
    }

    fn new(signed: bool) -> Self {
        let mut values = vec![0.0, 1.0];
        for exponent in 0..EXPONENTS {
            let steps = 1usize << (exponent + i32::from(!signed));
            // PyTorch multiplies by the power of ten in f32.
            let scale = 10f64.powi(exponent + 1 - EXPONENTS) as f32;
            let borders: Vec<f32> = (0..=steps).map(|at| border(at, steps)).collect();
            for pair in borders.windows(2) {
                let value = scale * ((pair[0] + pair[1]) / 2.0);
                values.push(value);
                if signed {
                    values.push(-value);
                }
            }
        }
        values.sort_by(f32::total_cmp);
        let table = table(&values);
        Self { values, table }
    }

    /// The value of each code.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The code of each cell: cell `i` is about the value `2 i / 65535 - 1`.
    #[must_use]
    pub fn table(&self) -> &[u8] {
        &self.table
    }

    /// The codes of values, and the largest magnitude of each block.
    #[must_use]
    pub fn quantize(&self, values: &[f32]) -> (Vec<u8>, Vec<f32>) {
        let (mut codes, mut scales) = (Vec::with_capacity(values.len()), Vec::new());
        for block in values.chunks(BLOCK) {
            let largest = block.iter().fold(0.0f32, |most, value| most.max(value.abs()));
            let inverse = if largest > 0.0 { 1.0 / largest } else { 0.0 };
            scales.push(largest);
            codes.extend(block.iter().map(|value| self.table[cell(value * inverse)]));
        }
        (codes, scales)
    }

    /// The values of codes.
    #[must_use]
    pub fn dequantize(&self, codes: &[u8], scales: &[f32]) -> Vec<f32> {
        let blocks = codes.chunks(BLOCK).zip(scales);
        blocks
            .flat_map(|(block, scale)| block.iter().map(move |code| self.values[usize::from(*code)] * scale))
            .collect()
    }
}

/// The cell of a value.
fn cell(value: f32) -> usize {
    ((value.clamp(-1.0, 1.0) + 1.0) * 0.5 * (CELLS - 1) as f32 + 0.5) as usize
}

/// One of the borders that divide [0.1, 1] into equal parts, as PyTorch's `linspace` rounds them.
fn border(at: usize, steps: usize) -> f32 {
    let step = (1.0 - 0.1f32) / steps as f32;
    // The second half is counted from the end.
    match at < steps.div_ceil(2) {
        true => step.mul_add(at as f32, 0.1),
        false => step.mul_add(-((steps - at) as f32), 1.0),
    }
}

/// The code of the value in the middle of each cell: the number of midpoints below it.
fn table(values: &[f32]) -> Vec<u8> {
    let middles: Vec<f32> = values.windows(2).map(|pair| 0.5 * (pair[0] + pair[1])).collect();
    (0..CELLS)
        .map(|at| {
            let value = -1.0 + (2.0 * at as f32) / (CELLS - 1) as f32;
            middles.partition_point(|middle| *middle < value) as u8
        })
        .collect()
}
