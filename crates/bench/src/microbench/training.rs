//! Training: the forward and the backward pass, each a module of its own, with float8 operands where a recipe asks for them.
//!
//! The forward pass gives, besides its result, the results of products that the backward pass reads. What lies between products is computed
//! again.

use warpforge::profile::{Event, Profile};
use warpforge::{
    CompileOptions, CompiledModel, Device, ElementType, Executable, Model, QuantizationRecipe, RunOptions,
    Tensor,
};

use super::config::{Config, Entry, ModelParams};
use super::gradient::gradients;
use super::graph::{Graph, Op, Value};
use super::inference::{emulates, wide};
use super::layers::{Layers, Scaling};
use super::model::{self, Case};
use super::noise::{Noise, compared_rows};
use super::power::Power;
use super::row::Row;
use super::shapes::MatrixShape;
use super::timeline::Timeline;
use super::times::{Measured, times};

/// What sizes are multiples of in products of 8 bits.
const ALIGNED: usize = 16;

/// How linear layers compute by a recipe.
fn layers(config: &Config, entry: &Entry) -> Result<Layers, String> {
    let by_row = match entry {
        Entry::Recipe(QuantizationRecipe::Float8DynamicRow) => true,
        Entry::Recipe(QuantizationRecipe::Float8DynamicTensor) => false,
        Entry::Baseline => return Ok(Layers::Plain),
        other => return Err(format!("`{}` has no backward pass", other.name())),
    };
    let [input, weight, grad_output] = [0, 1, 2].map(|at: usize| config.scaling[at] == "dynamic");
    let fast_accum = config.scaling[4] == "true";
    Ok(Layers::Scaled(Scaling { by_row, input, weight, grad_output, fast_accum }))
}

/// The granularity that a recipe names.
pub(super) fn granularity(recipe: &str) -> Option<&'static str> {
    match recipe {
        "float8dq-tensor" => Some("tensorwise"),
        "float8dq-row" => Some("rowwise"),
        _ => None,
    }
}

/// A model with its gradients.
struct Step {
    case: Case,
    /// The gradient of the result.
    of_result: Value,
    /// The gradients of the input and of the weights.
    gradients: Vec<Value>,
    /// The results of products that the backward pass reads.
    saved: Vec<Value>,
}

impl Step {
    fn new(model_type: &str, shape: &MatrixShape, m: usize, element: ElementType, layers: Layers) -> Self {
        let mut case = model::case(model_type, shape, m, Graph::with_layers(element, layers));
        let forward = case.graph.nodes.len();
        let dims = case.graph.dims(case.result).to_vec();
        let of_result = case.graph.argument(&dims, element);
        let wanted = case.arguments();
        let gradients = gradients(&mut case.graph, case.result, of_result, &wanted);
        let graph = &case.graph;
        let product = |value: &Value| {
            value.0 < forward
                && (graph.linears.iter().any(|linear| linear.result == *value)
                    || matches!(graph.nodes[value.0].op, Op::Dot([a, _], 1.., ..) if graph.element_of(a) == element))
        };
        let products: Vec<Value> = (0..forward).map(Value).filter(product).collect();
        let arguments: Vec<Value> =
            wanted.iter().copied().chain([of_result]).chain(products.clone()).collect();
        let read = graph.read(&arguments, &gradients);
        let saved = products.into_iter().filter(|value| read.contains(value)).collect();
        Self { case, of_result, gradients, saved }
    }

    /// The forward pass: from input and weights to the result, and what is saved.
    fn forward(&self) -> String {
        let results = [&[self.case.result], &self.saved[..]].concat();
        self.case.graph.function_of(&self.case.arguments(), &results)
    }

    /// The backward pass: from input, weights, what is saved and the gradient of the result to those of input and weights.
    fn backward(&self) -> String {
        let inputs = [&self.case.arguments()[..], &self.saved, &[self.of_result]].concat();
        self.case.graph.function_of(&inputs, &self.gradients)
    }

    /// Both passes: from input, weights and the gradient of the result to the result and the gradients.
    fn whole(&self) -> String {
        let inputs = [&self.case.arguments()[..], &[self.of_result]].concat();
        let results = [&[self.case.result], &self.gradients[..]].concat();
        self.case.graph.function_of(&inputs, &results)
    }
}

/// Measures both passes: times, how far result and gradients are from those in f64, and where asked for a trace and the memory.
pub(super) fn measure(
    config: &Config,
    params: &ModelParams,
    shape: &MatrixShape,
    entry: &Entry,
    device: Device,
    power: &mut Power,
    row: &mut Row,
) -> Result<(), String> {
    let text = |error: warpforge::Error| error.to_string();
    let layers = layers(config, entry)?;
    let emulated = match layers {
        Layers::Scaled(_) => emulates(device),
        _ => None,
    };
    let step = Step::new(&params.model_type, shape, shape.m, params.dtype, layers);
    let rows = compared_rows(&params.model_type, shape.m);
    if matches!(layers, Layers::Scaled(_)) && emulated.is_none() {
        aligned(&step)?;
    }
    let options = CompileOptions { device, no_fallback: emulated.is_none(), ..CompileOptions::default() };
    let [forward, backward] = [step.forward(), step.backward()].map(|module| compiled(&module, &options));
    let (forward, backward) = (forward.map_err(text)?, backward.map_err(text)?);

    // Rows do not depend on one another: gradients of the weights are those of a few rows where only these have one.
    let mut inputs = step.case.inputs(params.dtype).map_err(text)?;
    let outputs = results(&forward, &inputs).map_err(text)?;
    let mut ours = vec![outputs[0].clone()];
    let given = inputs.clone();
    inputs.extend_from_slice(&outputs[1..]);
    drop(outputs);
    inputs.push(step.case.of_result(params.dtype, rows).map_err(text)?);
    ours.extend(results(&backward, &inputs).map_err(text)?);
    let noise = noise(params, shape, rows, &ours).map_err(text)?;
    (row.sqnr_db, row.max_rel_error) = (Some(noise.sqnr_db()), Some(noise.max_rel_error()));
    row.weight_bytes = Some(given[1..].iter().map(|weights| weights.bytes().len() as u64).sum());
    if let Some(who) = emulated {
        return Err(format!("{who} no float8 arithmetic: accuracy by emulation, no speed"));
    }
    drop(ours);

    inputs.pop();
    inputs.push(step.case.of_result(params.dtype, usize::MAX).map_err(text)?);
    let passes = [(&forward, &given), (&backward, &inputs)];
    let mut executables = Vec::new();
    for (compiled, inputs) in passes {
        executables.push(compiled.prepare(inputs).map_err(text)?);
    }
    let mut measured = Vec::new();
    for (executable, (_, inputs)) in executables.iter().zip(passes) {
        measured.push(times(config.repeat, &**executable, inputs, power, device)?);
    }
    row.watts =
        measured.iter().map(Measured::watts).sum::<Option<f64>>().map(|sum| sum / measured.len() as f64);
    row.joules = measured.iter().map(Measured::joules).sum();
    [row.times_ms, row.backward_ms] =
        measured.into_iter().map(|pass| pass.ms).collect::<Vec<_>>().try_into().unwrap_or_default();
    row.peak_bytes = executables.iter().map(|executable| executable.peak_memory_bytes()).max().flatten();
    if params.enable_profiler || params.enable_memory_profiler {
        let both =
            executables.iter().zip(passes).map(|(executable, (_, inputs))| profiled(&**executable, inputs));
        let both = both.collect::<Result<Vec<_>, String>>()?;
        let timelines: Option<Vec<Timeline>> = executables
            .iter()
            .zip(&both)
            .map(|(executable, profile)| Timeline::new(executable.lifetimes(), profile))
            .collect();
        let timeline = timelines.and_then(|all| all.into_iter().reduce(Timeline::then));
        row.keep(params, in_turn(both), timeline);
    }
    Ok(())
}

fn profiled(executable: &dyn Executable, inputs: &[Tensor]) -> Result<Profile, String> {
    let options = RunOptions { profile: true, ..RunOptions::default() };
    Ok(executable.run(inputs, &options).map_err(|error| error.to_string())?.profile)
}

/// The events of runs, one run after the other.
fn in_turn(profiles: Vec<Profile>) -> Profile {
    let mut all = Profile::default();
    let mut begin = std::time::Duration::ZERO;
    for profile in profiles {
        let mut end = begin;
        all.dropped += profile.dropped;
        for event in profile.events {
            let event = Event { start: begin + event.start, ..event };
            end = end.max(event.start + event.duration);
            all.push(event);
        }
        begin = end;
    }
    all
}

/// Refuses sizes that float8 products on a GPU do not have.
fn aligned(step: &Step) -> Result<(), String> {
    let graph = &step.case.graph;
    let odd = |value: Value| graph.dims(value).iter().any(|size| !size.is_multiple_of(ALIGNED));
    match graph.linears.iter().any(|linear| odd(linear.input) || odd(linear.weights)) {
        true => Err(format!("float8 operands have sizes that are multiples of {ALIGNED}")),
        false => Ok(()),
    }
}

fn compiled(module: &str, options: &CompileOptions) -> warpforge::Result<CompiledModel> {
    Model::from_text("microbench.mlir", module)?.compile(options)
}

fn results(compiled: &CompiledModel, inputs: &[Tensor]) -> warpforge::Result<Vec<Tensor>> {
    let outputs = compiled.run_in_order(inputs, &RunOptions::default())?;
    Ok(outputs.iter().map(|(_, tensor)| tensor.clone()).collect())
}

/// How far the result and the gradient of the input, in the first rows, and the gradients of the weights are from those in f64.
fn noise(
    params: &ModelParams,
    shape: &MatrixShape,
    rows: usize,
    ours: &[Tensor],
) -> warpforge::Result<Noise> {
    let exact = Step::new(&params.model_type, shape, rows, ElementType::F64, Layers::Plain);
    let mut inputs = exact.case.inputs(params.dtype)?;
    inputs.push(exact.case.of_result(params.dtype, rows)?);
    let inputs = inputs.iter().map(wide).collect::<warpforge::Result<Vec<_>>>()?;
    let options = CompileOptions { no_fallback: true, ..CompileOptions::default() };
    let exact = results(&compiled(&exact.whole(), &options)?, &inputs)?;
    let mut noise = Noise::default();
    for (exact, ours) in exact.iter().zip(ours) {
        noise.add(exact, ours);
    }
    Ok(noise)
}

#[cfg(test)]
mod tests {
    use super::super::config::MODELS;
    use super::super::model::BLOCK;
    use super::*;

    const ALL: Scaling =
        Scaling { by_row: true, input: true, weight: true, grad_output: true, fast_accum: true };

    fn shape(model_type: &str) -> MatrixShape {
        let m = if model_type == BLOCK { 2 } else { 32 };
        MatrixShape { name: String::new(), m, k: 48, n: 16 }
    }

    /// The signal of the result and of each gradient against f64.
    fn signal(model_type: &str, layers: Layers) -> Vec<f64> {
        let shape = shape(model_type);
        let made = |element, layers| Step::new(model_type, &shape, shape.m, element, layers);
        let run = |module: &str, inputs: &[Tensor]| {
            results(&compiled(module, &CompileOptions::default()).unwrap(), inputs).unwrap()
        };
        let exact = made(ElementType::F64, Layers::Plain);
        let of_result = exact.case.of_result(ElementType::F32, usize::MAX).unwrap();
        let mut inputs = exact.case.inputs(ElementType::F32).unwrap();
        let given = inputs.clone();
        inputs.push(of_result.clone());
        let wider: Vec<Tensor> = inputs.iter().map(|tensor| wide(tensor).unwrap()).collect();
        let exact = run(&exact.whole(), &wider);

        let ours = made(ElementType::F32, layers);
        let mut found = run(&ours.forward(), &given);
        let mut inputs = given;
        inputs.extend(found.drain(1..));
        inputs.push(of_result);
        found.extend(run(&ours.backward(), &inputs));
        assert_eq!(exact.len(), found.len());
        exact
            .iter()
            .zip(&found)
            .map(|(exact, found)| {
                let mut noise = Noise::default();
                noise.add(exact, found);
                noise.sqnr_db()
            })
            .collect()
    }

    #[test]
    fn both_passes_keep_what_8_bits_hold() {
        for by_row in [true, false] {
            let found = signal("linear", Layers::Scaled(Scaling { by_row, ..ALL }));
            assert!(found[0] > 26.0 && found[0] < 45.0, "{found:?}");
            // One scale for all gradients goes with two bits of mantissa.
            let least = if by_row { 26.0 } else { 22.0 };
            assert!(found[1..].iter().all(|&db| db > least && db < 45.0), "{found:?}");
        }
        // What is not rounded is not multiplied with what is.
        let found = signal("linear", Layers::Scaled(Scaling { input: false, ..ALL }));
        assert!(found[0] > 120.0 && found[1] < 45.0 && found[2] > 120.0, "{found:?}");
    }

    #[test]
    fn every_model_has_the_gradients_of_its_result() {
        for model_type in MODELS {
            let found = signal(model_type, Layers::Plain);
            assert!(found.iter().all(|&db| db > 90.0), "{model_type}: {found:?}");
            let found = signal(model_type, Layers::Scaled(ALL));
            // Rounding moves some values to the other side of a kink.
            assert!(found.iter().all(|&db| db > 12.0 && db < 60.0), "{model_type}: {found:?}");
        }
    }

    /// Against differences, so that the rules themselves are tested and not only their rounding.
    #[test]
    fn gradients_are_slopes() {
        for model_type in MODELS {
            let shape = shape(model_type);
            let step = Step::new(model_type, &shape, shape.m, ElementType::F64, Layers::Plain);
            let inputs = step.case.inputs(ElementType::F64).unwrap();
            let of_result = step.case.of_result(ElementType::F64, usize::MAX).unwrap();
            let whole = compiled(&step.whole(), &CompileOptions::default()).unwrap();
            let run = |inputs: &[Tensor]| {
                let mut inputs = inputs.to_vec();
                inputs.push(of_result.clone());
                results(&whole, &inputs).unwrap()
            };
            let sum = |result: &Tensor| -> f64 {
                result.iter().zip(of_result.iter()).map(|(a, b)| a.to_f64() * b.to_f64()).sum()
            };
            let found = run(&inputs);
            for at in 0..inputs.len() {
                for element in [0, 37] {
                    let moved = |by: f64| {
                        let mut values = inputs[at].as_slice::<f64>().unwrap().to_vec();
                        values[element] += by;
                        let mut inputs = inputs.clone();
                        inputs[at] = Tensor::from_slice(inputs[at].dims(), &values).unwrap();
                        sum(&run(&inputs)[0])
                    };
                    let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                    let gradient = found[at + 1].as_slice::<f64>().unwrap()[element];
                    assert!(
                        (slope - gradient).abs() < 1e-5 * slope.abs().max(1.0),
                        "{model_type}: {slope} {gradient}"
                    );
                }
            }
        }
    }
}
