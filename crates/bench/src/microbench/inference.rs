//! Inference: a forward pass with constant weights.

use warpforge::{CompileOptions, Device, ElementType, Model, RunOptions, Tensor};

use super::bounds::weight_bytes;
use super::config::{Config, Entry, ModelParams};
use super::format::Format;
use super::graph::Graph;
use super::layers::Layers;
use super::model;
use super::noise::{Noise, compared_rows};
use super::power::Power;
use super::row::Row;
use super::shapes::MatrixShape;
use super::timeline::Timeline;
use super::times::times;

/// Who has no float8 arithmetic, where a device computes with rounded values instead.
pub(super) fn emulates(device: Device) -> Option<&'static str> {
    match device {
        Device::Cpu => Some("CPUs have"),
        Device::Hip(_) => Some("the libraries for AMD have"),
        Device::Cuda(_) => None,
    }
}

/// Measures a recipe that the engine has: accuracy, times, and where asked for a trace and the memory.
pub(super) fn measure(
    config: &Config,
    params: &ModelParams,
    shape: &MatrixShape,
    entry: &Entry,
    options: &CompileOptions,
    power: &mut Power,
    row: &mut Row,
) -> Result<(), String> {
    let text = |error: warpforge::Error| error.to_string();
    let case = model::case(&params.model_type, shape, shape.m, Graph::new(params.dtype));
    let mut model = Model::from_text("microbench.mlir", case.module().as_str()).map_err(text)?;
    model.bind_weights(&case.weights(params.dtype).map_err(text)?).map_err(text)?;
    let compiled = model.compile(options).map_err(text)?;
    drop(model);
    let inputs = [case.input(params.dtype).map_err(text)?];
    let executable = compiled.prepare(&inputs).map_err(text)?;
    let outputs = compiled.run_in_order(&inputs, &RunOptions::default()).map_err(text)?;
    let ours = outputs.iter().next().map(|(_, tensor)| tensor.clone()).ok_or("the model gives nothing")?;
    compare(params, shape, &ours, row).map_err(text)?;
    row.weight_bytes = Some(weight_bytes(&case, entry, params.dtype));
    if let (Some(who), Entry::Recipe(recipe)) = (emulates(options.device), entry)
        && recipe.is_float8_dynamic()
    {
        return Err(format!("{who} no float8 arithmetic: accuracy by emulation, no speed"));
    }
    let measured = times(config.repeat, &*executable, &inputs, power, options.device)?;
    (row.watts, row.joules) = (measured.watts(), measured.joules());
    row.times_ms = measured.ms;
    row.peak_bytes = executable.peak_memory_bytes();
    if params.enable_profiler || params.enable_memory_profiler {
        let profiled = RunOptions { profile: true, ..RunOptions::default() };
        let outcome = executable.run(&inputs, &profiled).map_err(|error| error.to_string())?;
        let timeline = Timeline::new(executable.lifetimes(), &outcome.profile);
        row.keep(params, outcome.profile, timeline);
    }
    Ok(())
}

/// The accuracy of a format that has no kernels: its rounding, in f32.
pub(super) fn emulate(
    params: &ModelParams,
    shape: &MatrixShape,
    format: Format,
    row: &mut Row,
) -> Result<(), String> {
    let text = |error: warpforge::Error| error.to_string();
    let rows = compared_rows(&params.model_type, shape.m);
    let graph = Graph::with_layers(params.dtype, Layers::Emulated(format));
    let case = model::case(&params.model_type, shape, rows, graph);
    if let Some([_, odd]) = case.weight_dims().find(|[_, depth]| !depth.is_multiple_of(format.block())) {
        return Err(format!(
            "`{format}` has blocks of {}, which do not divide the depth {odd}",
            format.block()
        ));
    }
    // Weights are inputs: the compiler would evaluate the rounding of parameters element by element.
    let inputs = case.inputs(params.dtype).map_err(text)?;
    let module = case.graph.function_of(&case.arguments(), &[case.result]);
    let run = || {
        Model::from_text("microbench.mlir", module.as_str())?
            .compile(&CompileOptions::default())?
            .run_in_order(&inputs, &RunOptions::default())
    };
    let outputs = run().map_err(text)?;
    let ours = outputs.iter().next().map(|(_, tensor)| tensor.clone()).ok_or("the model gives nothing")?;
    compare(params, shape, &ours, row).map_err(text)?;
    row.weight_bytes = Some(weight_bytes(&case, &Entry::Emulated(format), params.dtype));
    Err(format!("`{format}` has no kernels in this engine: accuracy by emulation, no speed"))
}

/// The values of a tensor in f64.
pub(super) fn wide(tensor: &Tensor) -> warpforge::Result<Tensor> {
    let values: Vec<f64> = tensor.iter().map(warpforge::Scalar::to_f64).collect();
    Ok(Tensor::from_slice(tensor.dims(), &values)?)
}

/// SQNR and the largest relative error of the first rows against the model in f64.
fn compare(params: &ModelParams, shape: &MatrixShape, ours: &Tensor, row: &mut Row) -> warpforge::Result<()> {
    let m = compared_rows(&params.model_type, shape.m);
    let case = model::case(&params.model_type, shape, m, Graph::new(ElementType::F64));
    let mut model = Model::from_text("microbench.mlir", case.module().as_str())?;
    // Weights and inputs have the values that were rounded to the type of the model.
    let weights = case.weights(params.dtype)?.into_iter();
    model.bind_weights(
        &weights.map(|(name, tensor)| Ok((name, wide(&tensor)?))).collect::<warpforge::Result<_>>()?,
    )?;
    let input = wide(&case.input(params.dtype)?)?;
    let options = CompileOptions { no_fallback: true, ..CompileOptions::default() };
    let outputs = model.compile(&options)?.run_in_order(&[input], &RunOptions::default())?;
    let Some((_, exact)) = outputs.iter().next() else { return Ok(()) };
    let mut noise = Noise::default();
    noise.add(exact, ours);
    (row.sqnr_db, row.max_rel_error) = (Some(noise.sqnr_db()), Some(noise.max_rel_error()));
    Ok(())
}
