//! Training of linear layers: the forward and the backward pass, each a module of its own, with operands of 8 bits where a recipe asks for them.

use warpforge::{
    CompileOptions, CompiledModel, Device, ElementType, FloatType, Model, Precision, QuantizationRecipe,
    RunOptions, Tensor, seeded,
};

use super::config::{Config, Entry, ModelParams};
use super::model::{Text, Value, ty};
use super::noise::{COMPARED_ROWS, Noise};
use super::shapes::MatrixShape;
use super::times::times;

const F8E4M3: ElementType = ElementType::Float(FloatType::F8E4M3Fn);
const F8E5M2: ElementType = ElementType::Float(FloatType::F8E5M2);

/// What sizes are multiples of in products of 8 bits.
const ALIGNED: usize = 16;

/// The least scale of a value, so that zeros have one.
const LEAST_SCALE: f64 = 1e-12;

/// How operands are rounded to 8 bits.
#[derive(Debug, Clone, Copy)]
struct Scaling {
    /// A scale for each row and each column of a product, instead of one for each operand.
    by_row: bool,
    input: bool,
    weight: bool,
    grad_output: bool,
    fast_accum: bool,
}

impl Scaling {
    /// None where operands stay as they are.
    fn of(config: &Config, entry: &Entry) -> Result<Option<Self>, String> {
        let Entry::Recipe(recipe) = entry else { return Ok(None) };
        let by_row = match recipe {
            QuantizationRecipe::Float8DynamicRow => true,
            QuantizationRecipe::Float8DynamicTensor => false,
            _ => return Err(format!("`{recipe}` has no backward pass")),
        };
        let [input, weight, grad_output] = [0, 1, 2].map(|at: usize| config.scaling[at] == "dynamic");
        let fast_accum = config.scaling[4] == "true";
        Ok(Some(Self { by_row, input, weight, grad_output, fast_accum }))
    }
}

/// The granularity that a recipe names.
pub(super) fn granularity(recipe: &str) -> Option<&'static str> {
    match recipe {
        "float8dq-tensor" => Some("tensorwise"),
        "float8dq-row" => Some("rowwise"),
        _ => None,
    }
}

/// What was measured of the forward and the backward pass.
#[derive(Default)]
pub(super) struct Passes {
    pub(super) times_ms: [Vec<f64>; 2],
    /// Of results and of gradients of the input.
    pub(super) noise: Noise,
}

/// Measures both passes, and how far results and gradients of the input are from those in f64.
pub(super) fn measure(
    config: &Config,
    params: &ModelParams,
    shape: &MatrixShape,
    entry: &Entry,
    device: Device,
) -> Result<Passes, String> {
    let text = |error: warpforge::Error| error.to_string();
    if params.model_type != "linear" {
        return Err(format!(
            "the backward pass of `{}` is not made here: training measures `linear`",
            params.model_type
        ));
    }
    let scaling = Scaling::of(config, entry)?;
    if scaling.is_some() {
        if !matches!(device, Device::Cuda(_)) {
            return Err("float8 operands are multiplied on NVIDIA GPUs alone".to_owned());
        }
        if [shape.m, shape.k, shape.n].iter().any(|size| !size.is_multiple_of(ALIGNED)) {
            return Err(format!("float8 operands have sizes that are multiples of {ALIGNED}"));
        }
    }
    let options = CompileOptions {
        device,
        precision: Precision::Model,
        no_fallback: true,
        ..CompileOptions::default()
    };
    let [x, w, g] = inputs(shape, params.dtype).map_err(text)?;
    let exact = exact(shape, [&x, &w, &g]).map_err(text)?;
    let mut passes = Passes::default();
    for (pass, (module, exact)) in modules(shape, params.dtype, scaling).into_iter().zip(exact).enumerate() {
        let inputs = match pass {
            0 => vec![x.clone(), w.clone()],
            _ => vec![x.clone(), w.clone(), g.clone()],
        };
        let compiled = Model::from_text("microbench.mlir", module.as_str())
            .and_then(|model| model.compile(&options))
            .map_err(text)?;
        passes.noise.add(&exact, &first_result(&compiled, &inputs).map_err(text)?);
        let executable = compiled.prepare(&inputs).map_err(text)?;
        passes.times_ms[pass] = times(config.repeat, &*executable, &inputs)?;
    }
    Ok(passes)
}

/// `x`, `w` and the gradient of the result.
fn inputs(shape: &MatrixShape, element: ElementType) -> warpforge::Result<[Tensor; 3]> {
    let MatrixShape { m, k, n, .. } = *shape;
    let tensor = |dims: [usize; 2], stream: u64| {
        let ty = warpforge::TensorType::fixed(&dims.map(|dim| dim as u64), element);
        seeded(&ty, 7, stream)
    };
    Ok([tensor([m, k], 0)?, tensor([n, k], 1)?, tensor([m, n], 2)?])
}

/// The result and the gradient of the input in f64, of the first rows.
fn exact(shape: &MatrixShape, [x, w, g]: [&Tensor; 3]) -> warpforge::Result<Vec<Tensor>> {
    let rows = shape.m.min(COMPARED_ROWS);
    let wide = |tensor: &Tensor, rows: usize| {
        let columns = tensor.dims()[1];
        let values: Vec<f64> = tensor.iter().take(rows * columns).map(warpforge::Scalar::to_f64).collect();
        Tensor::from_slice(&[rows, columns], &values)
    };
    let (x, w, g) = (wide(x, rows)?, wide(w, shape.n)?, wide(g, rows)?);
    let few = MatrixShape { m: rows, ..shape.clone() };
    let [forward, backward] = modules(&few, ElementType::F64, None);
    let options = CompileOptions { no_fallback: true, ..CompileOptions::default() };
    [(forward, vec![x.clone(), w.clone()]), (backward, vec![x, w, g])]
        .into_iter()
        .map(|(module, inputs)| {
            first_result(&Model::from_text("microbench.mlir", module.as_str())?.compile(&options)?, &inputs)
        })
        .collect()
}

/// The first result of a pass: that of the layer, or the gradient of its input.
fn first_result(compiled: &CompiledModel, inputs: &[Tensor]) -> warpforge::Result<Tensor> {
    let outputs = compiled.run_in_order(inputs, &RunOptions::default())?;
    Ok(outputs.iter().map(|(_, tensor)| tensor.clone()).next().expect("both passes have results"))
}

/// The forward pass of a linear layer with weights as an input, and its backward pass: gradients of input and weights.
fn modules(shape: &MatrixShape, element: ElementType, scaling: Option<Scaling>) -> [String; 2] {
    let MatrixShape { m, k, n, .. } = *shape;
    let value = |name: &str, dims: [usize; 2]| Value { name: name.to_owned(), dims: dims.to_vec(), element };
    let (x, w, g) = (value("%x", [m, k]), value("%w", [n, k]), value("%g", [m, n]));
    // Gradients vary more: one scale for all needs a larger range.
    let of_gradients = if scaling.is_some_and(|scaling| scaling.by_row) { F8E4M3 } else { F8E5M2 };
    let rounds = |wanted: fn(&Scaling) -> bool| scaling.filter(wanted);
    let mut text = Text::new(element);
    let forward = rounds(|scaling| scaling.input && scaling.weight);
    let y = text.product([(&x, 1, F8E4M3), (&w, 1, F8E4M3)], forward);
    let forward = text.function(&[&x, &w], &[&y]);
    let mut text = Text::new(element);
    // Fewer bits are for results alone: errors of gradients add up.
    let exact = |scaling: Scaling| Scaling { fast_accum: false, ..scaling };
    let input = rounds(|scaling| scaling.grad_output && scaling.weight).map(exact);
    let dx = text.product([(&g, 1, of_gradients), (&w, 0, F8E4M3)], input);
    let weights = rounds(|scaling| scaling.grad_output && scaling.input).map(exact);
    let dw = text.product([(&g, 0, of_gradients), (&x, 0, F8E4M3)], weights);
    [forward, text.function(&[&x, &w, &g], &[&dx, &dw])]
}

impl Text {
    /// A product of matrices, each summed along a dimension, and rounded to a type of 8 bits where it is scaled.
    fn product(&mut self, sides: [(&Value, usize, ElementType); 2], scaling: Option<Scaling>) -> Value {
        let [left, right] = sides.map(|(value, along, _)| value.dims[1 - along]);
        let dims = [left, right];
        let along = [sides[0].1, sides[1].1];
        let Some(scaling) = scaling else {
            return self.dot([sides[0].0, sides[1].0], along, &dims, sides[0].0.element, "");
        };
        let [(a, of_left), (b, of_right)] =
            sides.map(|(value, along, element)| self.rounded(value, along, element, scaling.by_row));
        let algorithm = format!(
            ", algorithm = <lhs_precision_type = {}, rhs_precision_type = {}, accumulation_type = f32, lhs_component_count = 1, \
             rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = {}>",
            a.element, b.element, scaling.fast_accum
        );
        let mut result = self.dot([&a, &b], along, &dims, ElementType::F32, &algorithm);
        for (at, scale) in [of_left, of_right].iter().enumerate() {
            let map = if scaling.by_row { vec![at] } else { vec![] };
            let scale = self.repeated_along(scale, &map, &dims);
            result = self.map("multiply", &[&result, &scale]);
        }
        self.convert(&result, self.element)
    }

    fn dot(
        &mut self,
        sides: [&Value; 2],
        along: [usize; 2],
        dims: &[usize],
        to: ElementType,
        algorithm: &str,
    ) -> Value {
        let [a, b] = sides;
        let op = format!(
            "stablehlo.dot_general {}, {}, contracting_dims = [{}] x [{}]{algorithm} : ({}, {}) -> {}",
            a.name,
            b.name,
            along[0],
            along[1],
            a.ty(),
            b.ty(),
            ty(dims, to)
        );
        self.line(dims, to, &op)
    }

    /// A matrix in a type of 8 bits, and its scale or the scales of what is not summed.
    fn rounded(&mut self, of: &Value, along: usize, element: ElementType, by_row: bool) -> (Value, Value) {
        let most = if element == F8E5M2 { 57344.0 } else { 448.0 };
        let wide = self.convert(of, ElementType::F32);
        let size = self.map("abs", &[&wide]);
        let mut largest = self.reduced_along(&size, along, "maximum", "0.0");
        if !by_row {
            largest = self.reduced_along(&largest, 0, "maximum", "0.0");
        }
        let part = self.splat(1.0 / most, &largest);
        let scale = self.map("multiply", &[&largest, &part]);
        let least = self.splat(LEAST_SCALE, &scale);
        let scale = self.map("maximum", &[&scale, &least]);
        let one = self.splat(1.0, &scale);
        let inverse = self.map("divide", &[&one, &scale]);
        let map = if by_row { vec![1 - along] } else { vec![] };
        let inverse = self.repeated_along(&inverse, &map, &of.dims);
        let steps = self.map("multiply", &[&wide, &inverse]);
        (self.convert(&steps, element), scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_passes_keep_what_8_bits_hold() {
        let shape = MatrixShape { name: String::new(), m: 32, k: 48, n: 16 };
        let [x, w, g] = inputs(&shape, ElementType::F32).unwrap();
        let exact = exact(&shape, [&x, &w, &g]).unwrap();
        let noise = |scaling: Option<Scaling>| {
            let passes = modules(&shape, ElementType::F32, scaling).into_iter().zip(&exact).enumerate();
            passes
                .map(|(pass, (module, exact))| {
                    let inputs = if pass == 0 {
                        vec![x.clone(), w.clone()]
                    } else {
                        vec![x.clone(), w.clone(), g.clone()]
                    };
                    let compiled =
                        Model::from_text("m", module.as_str()).unwrap().compile(&CompileOptions::default());
                    let outputs = compiled.unwrap().run_in_order(&inputs, &RunOptions::default()).unwrap();
                    let mut noise = Noise::default();
                    noise.add(exact, outputs.iter().next().unwrap().1);
                    noise.sqnr_db()
                })
                .collect::<Vec<f64>>()
        };
        let all = Scaling { by_row: true, input: true, weight: true, grad_output: true, fast_accum: true };
        assert!(noise(None).iter().all(|&db| db > 120.0));
        for by_row in [true, false] {
            let [forward, backward] = noise(Some(Scaling { by_row, ..all }))[..] else {
                panic!("two passes")
            };
            assert!(forward > 28.0 && forward < 45.0, "{forward}");
            // One scale for all gradients goes with two bits of mantissa.
            let least = if by_row { 28.0 } else { 24.0 };
            assert!(backward > least && backward < 45.0, "{backward}");
        }
        // What is not rounded is not multiplied with what is.
        let [forward, backward] = noise(Some(Scaling { input: false, ..all }))[..] else {
            panic!("two passes")
        };
        assert!(forward > 120.0 && backward < 45.0, "{forward} {backward}");
    }
}
