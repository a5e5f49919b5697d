//! The programs: StableHLO text, the weights that stay on the device, and the inputs of a run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use warpforge::{Inputs, Scalar, Tensor, Tolerance, seeded};

use super::chain_tolerance;
use crate::error::StressError;

/// Columns of the array of [`Program::row_sums`]. Sums of so many whole numbers below 16 are exact in f32 in any order.
const COLUMNS: usize = 16_384;

/// Bytes of a row of that array.
pub(super) const ROW_BYTES: usize = COLUMNS * size_of::<f32>();

/// Passes over that array.
pub(super) const PASSES: usize = ADDENDS.len();

/// What is added to the array in each of its passes.
const ADDENDS: [u32; 4] = [1, 2, 5, 8];

/// The factor of the diffusion stencil, well within its stability limit of 1/4.
const DIFFUSIVITY: f64 = 0.1;

/// A program, and how its results are judged.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) text: String,
    /// Work of a run, in the unit of its test.
    pub(super) amount: f64,
    pub(super) tolerance: Tolerance,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Gemm { size: usize },
    Diffusion,
    RowSums { rows: usize },
}

impl Program {
    /// y = (x·s)·b·s·b·s …, with a factor s that keeps the values where they are.
    pub(super) fn gemm_chain(element: &str, size: usize, length: usize) -> Self {
        let matrix = format!("tensor<{size}x{size}x{element}>");
        let mut text = format!(
            "func.func @main(%x: {matrix} {{warpforge.name = \"x\", warpforge.role = \"parameter\"}}, \
             %b: {matrix} {{warpforge.name = \"b\", warpforge.role = \"parameter\"}}, \
             %s: tensor<{element}> {{warpforge.name = \"s\"}}) -> ({matrix} {{warpforge.name = \"y\"}}) {{\n\
             %f = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<{element}>) -> {matrix}\n\
             %y0 = stablehlo.multiply %x, %f : {matrix}\n"
        );
        for step in 1..=length {
            let before = step - 1;
            let _ = writeln!(
                text,
                "%p{step} = stablehlo.dot_general %y{before}, %b, contracting_dims = [1] x [0] : \
                 ({matrix}, {matrix}) -> {matrix}\n%y{step} = stablehlo.multiply %p{step}, %f : {matrix}"
            );
        }
        let _ = writeln!(text, "func.return %y{length} : {matrix}\n}}");
        Self {
            name: format!("chain of {length} GEMMs of {size} by {size} in {element}"),
            text,
            amount: 2.0 * (size as f64).powi(3) * length as f64 / 1e9,
            tolerance: chain_tolerance(element),
            kind: Kind::Gemm { size },
        }
    }

    /// Steps of u ← u + c·(left + right + up + down − 4u) on a grid whose edges meet, as in explicit solvers of the heat
    /// equation.
    pub(super) fn diffusion(size: usize, steps: usize) -> Self {
        let grid = format!("tensor<{size}x{size}xf32>");
        let mut text = format!(
            "func.func @main(%x: {grid} {{warpforge.name = \"x\", warpforge.role = \"parameter\"}}, \
             %c: tensor<f32> {{warpforge.name = \"c\"}}) -> ({grid} {{warpforge.name = \"y\"}}) {{\n\
             %f = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> {grid}\n\
             %four = stablehlo.constant dense<4.0> : {grid}\n\
             %u0 = stablehlo.multiply %x, %f : {grid}\n"
        );
        for step in 1..=steps {
            let before = format!("%u{}", step - 1);
            for (neighbour, dimension, forward) in
                [("l", 1, true), ("r", 1, false), ("t", 0, true), ("d", 0, false)]
            {
                text += &rolled(&format!("%{neighbour}{step}"), &before, size, dimension, forward);
            }
            let _ = writeln!(
                text,
                "%h{step} = stablehlo.add %l{step}, %r{step} : {grid}\n\
                 %v{step} = stablehlo.add %t{step}, %d{step} : {grid}\n\
                 %n{step} = stablehlo.add %h{step}, %v{step} : {grid}\n\
                 %m{step} = stablehlo.multiply {before}, %four : {grid}\n\
                 %k{step} = stablehlo.subtract %n{step}, %m{step} : {grid}\n\
                 %g{step} = stablehlo.multiply %k{step}, %f : {grid}\n\
                 %u{step} = stablehlo.add {before}, %g{step} : {grid}"
            );
        }
        let _ = writeln!(text, "func.return %u{steps} : {grid}\n}}");
        Self {
            name: format!("{steps} steps of diffusion on a grid of {size} by {size}"),
            text,
            amount: (size * size * steps) as f64 / 1e9,
            tolerance: Tolerance::Scaled { rtol: 1e-5 },
            kind: Kind::Diffusion,
        }
    }

    /// Sums of the rows of an array to which a number is added, once for each of several numbers.
    pub(super) fn row_sums(rows: usize) -> Self {
        let (array, sums) = (format!("tensor<{rows}x{COLUMNS}xf32>"), format!("tensor<{rows}xf32>"));
        let vector = format!("tensor<{COLUMNS}xf32>");
        let scalars: String = (0..PASSES)
            .map(|pass| format!(", %s{pass}: tensor<f32> {{warpforge.name = \"s{pass}\"}}"))
            .collect();
        let results: Vec<String> =
            (0..PASSES).map(|pass| format!("{sums} {{warpforge.name = \"y{pass}\"}}")).collect();
        let mut text = format!(
            "func.func @main(%x: {array} {{warpforge.name = \"x\", warpforge.role = \"parameter\"}}, \
             %o: {vector} {{warpforge.name = \"o\", warpforge.role = \"parameter\"}}{scalars}) -> ({}) {{\n",
            results.join(", ")
        );
        for pass in 0..PASSES {
            let _ = writeln!(
                text,
                "%f{pass} = stablehlo.broadcast_in_dim %s{pass}, dims = [] : (tensor<f32>) -> {array}\n\
                 %a{pass} = stablehlo.add %x, %f{pass} : {array}\n\
                 %y{pass} = stablehlo.dot_general %a{pass}, %o, contracting_dims = [1] x [0] : \
                 ({array}, {vector}) -> {sums}"
            );
        }
        let list = |item: &dyn Fn(usize) -> String| (0..PASSES).map(item).collect::<Vec<_>>().join(", ");
        let (values, types) = (list(&|pass| format!("%y{pass}")), list(&|_| sums.clone()));
        let _ = writeln!(text, "func.return {values} : {types}\n}}");
        Self {
            name: format!(
                "{PASSES} passes over an array of {}",
                warpforge_diag::bytes((rows * ROW_BYTES) as u64)
            ),
            text,
            amount: (PASSES * rows * ROW_BYTES) as f64 / 1e9,
            tolerance: Tolerance::Exact,
            kind: Kind::RowSums { rows },
        }
    }

    /// The operands that stay on the device.
    pub(super) fn weights(&self) -> Result<BTreeMap<String, Tensor>, StressError> {
        let mut weights = BTreeMap::new();
        if let Kind::RowSums { rows } = self.kind {
            weights.insert("x".to_owned(), tensor(&[rows, COLUMNS], &array(rows))?);
            weights.insert("o".to_owned(), tensor(&[COLUMNS], &vec![1.0; COLUMNS])?);
            return Ok(weights);
        }
        let model = warpforge::Model::from_text("weights.mlir", self.text.clone())?;
        for (stream, slot) in (0..).zip(model.inputs()).filter(|(_, slot)| slot.role.is_weight()) {
            weights.insert(slot.name.to_owned(), seeded(slot.ty, 0x57e5, stream)?);
        }
        Ok(weights)
    }

    /// The inputs of a run.
    pub(super) fn inputs(&self) -> Result<Inputs, StressError> {
        let mut inputs = Inputs::new();
        let model = warpforge::Model::from_text("inputs.mlir", self.text.clone())?;
        let values = match self.kind {
            // Elements from -1 to 1 have a variance of 1/3.
            Kind::Gemm { size } => vec![(3.0 / size as f64).sqrt()],
            Kind::Diffusion => vec![DIFFUSIVITY],
            Kind::RowSums { .. } => ADDENDS.iter().map(|&addend| f64::from(addend)).collect(),
        };
        let slots = model.inputs();
        for (slot, value) in slots.iter().filter(|slot| !slot.role.is_weight()).zip(values) {
            let Some(element) = slot.ty.element().storage() else { continue };
            let scalar = Tensor::scalar(element, Scalar::Float(value)).map_err(warpforge::Error::from)?;
            inputs.insert(slot.name, scalar);
        }
        Ok(inputs)
    }

    /// The results, where they are known without an engine.
    pub(super) fn known(&self) -> Result<Option<Vec<Tensor>>, StressError> {
        let Kind::RowSums { rows } = self.kind else { return Ok(None) };
        let array = array(rows);
        let sums: Vec<f32> = array.chunks(COLUMNS).map(|row| row.iter().sum()).collect();
        let with = |addend: &u32| {
            let values: Vec<f32> = sums.iter().map(|sum| sum + (*addend as usize * COLUMNS) as f32).collect();
            tensor(&[rows], &values)
        };
        ADDENDS.iter().map(with).collect::<Result<_, _>>().map(Some)
    }
}

/// Whole numbers from 0 to 7 from a seed.
fn array(rows: usize) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(0xa77a);
    (0..rows * COLUMNS).map(|_| f32::from(random.u8(..8))).collect()
}

fn tensor(dims: &[usize], values: &[f32]) -> Result<Tensor, StressError> {
    Ok(Tensor::from_slice(dims, values).map_err(warpforge::Error::from)?)
}

/// A grid moved by one point along a dimension; what leaves at one edge enters at the other.
fn rolled(name: &str, grid: &str, size: usize, dimension: usize, forward: bool) -> String {
    let (split, whole) = (if forward { size - 1 } else { 1 }, format!("{size}x{size}"));
    let slice = |part: &str, from: usize, to: usize| {
        let (ranges, dims) = if dimension == 0 {
            (format!("{from}:{to}, 0:{size}"), format!("{}x{size}", to - from))
        } else {
            (format!("0:{size}, {from}:{to}"), format!("{size}x{}", to - from))
        };
        let ty = format!("tensor<{dims}xf32>");
        let line =
            format!("{name}{part} = stablehlo.slice {grid} [{ranges}] : (tensor<{whole}xf32>) -> {ty}\n");
        (line, ty)
    };
    let (tail, tail_type) = slice("a", split, size);
    let (head, head_type) = slice("b", 0, split);
    format!(
        "{tail}{head}{name} = stablehlo.concatenate {name}a, {name}b, dim = {dimension} : \
         ({tail_type}, {head_type}) -> tensor<{whole}xf32>\n"
    )
}
