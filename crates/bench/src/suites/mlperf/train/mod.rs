//! `resnet50_train`: training steps of ResNet-50.
//!
//! PyTorch traces the model with its loss and gradients; the optimizer is appended here, and the whole step is one program
//! whose parameters, moments and running statistics stay in place. The losses of the first steps must be PyTorch's.

mod graph;
mod settings;
mod torch;

use warpforge::{CompiledModel, Inputs, Precision};

use self::graph::Graph;
use self::settings::{MOMENTUM, RATE, Settings, WEIGHT_DECAY};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, Peer, RunContext};
use crate::record::{BenchmarkComponent, BenchmarkId, BenchmarkKind, BenchmarkSpec, Params};
use crate::suites::stages::{measure, report_memory};

/// Steps whose losses are held to PyTorch's.
const CHECKED: usize = 3;

/// A loss may be this many times as far from PyTorch's as PyTorch's own runs are from one another: the rounding of a step is in the
/// weights of the next one, and batch norms of few images make it larger.
const NOISE_FLOORS: f64 = 4.0;

/// The benchmark.
#[derive(Debug)]
pub(super) struct Resnet50Train;

impl Benchmark for Resnet50Train {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Training steps of ResNet-50 with SGD: forward, backward and update as one program, traced by PyTorch; the \
                           first losses must be PyTorch's. Not an MLPerf result.";
        BenchmarkSpec {
            components: vec![BenchmarkComponent::Cpu],
            description: Some(description.to_owned()),
            default_duration_seconds: Some(30),
            external_tool: Some("torch".to_owned()),
            params: Some(settings::params()),
            ..BenchmarkId::new("mlperf", "resnet50_train").spec(BenchmarkKind::Application)
        }
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        settings::takes()
    }

    fn peers(&self) -> &'static [&'static dyn Peer] {
        &[&torch::Torch]
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from(params)?;
        graph::python().map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        context.plan(2);
        context.begin("trace");
        let graph = Graph::of(&settings, &|| context.stopped())?;
        context.warn("division=unofficial, not an MLPerf result: the images are generated, and nothing is trained to an accuracy");
        let recipe = format!("sgd,lr={RATE},momentum={MOMENTUM},weight-decay={WEIGHT_DECAY}");
        let recipe = recipe.parse().map_err(failed)?;
        let step = graph.model.train(&recipe).map_err(failed)?;
        let step =
            step.compile_with_state(&settings.options(), Inputs::new()).map_err(|error| {
                match error.is_not_offered() {
                    true => BenchmarkError::NotPossible(error.to_string()),
                    false => failed(error),
                }
            })?;
        context.begin("train");
        for (number, (&right, &noise)) in graph.steps.losses.iter().zip(&graph.steps.noise).enumerate() {
            let allowed = (settings.tolerance() * right.abs()).max(NOISE_FLOORS * noise);
            held(number, loss(&step, &graph.batch)?, right, allowed)?;
        }
        let work = |_: &mut _| loss(&step, &graph.batch);
        let gate = |loss: &f64| match loss.is_finite() {
            true => Ok(()),
            false => Err(failed(format!("wrong answer: the loss is {loss}"))),
        };
        let (_, samples) = measure(context, work, gate, context.time())?;
        let key = MetricKey::more_is_better("samples_per_second", "samples/s");
        samples.report(context, &settings, key, settings.batch as f64)?;
        report_memory(context, &settings)
    }
}

/// Trains for one step, and gives the loss before its update.
fn loss(step: &CompiledModel, batch: &Inputs) -> Result<f64, BenchmarkError> {
    let outputs = step.run(batch.clone()).map_err(failed)?;
    let loss = outputs.get("loss").ok_or_else(|| failed("the program gave no loss"))?;
    let loss = loss.as_slice::<f32>().map_err(failed)?;
    loss.first().map(|&loss| f64::from(loss)).ok_or_else(|| failed("the loss is empty"))
}

/// Holds the loss of a step to PyTorch's.
fn held(number: usize, found: f64, right: f64, allowed: f64) -> Result<(), BenchmarkError> {
    if (found - right).abs() <= allowed {
        return Ok(());
    }
    let step = number + 1;
    Err(failed(format!(
        "wrong answer: the loss of step {step} is {found}, PyTorch's is {right}; they may be {allowed:.2e} apart"
    )))
}

impl Settings {
    /// How far a loss may be from PyTorch's at least, relative to it.
    fn tolerance(&self) -> f64 {
        if self.precision == Precision::Bf16 { 5e-2 } else { 1e-3 }
    }
}

fn failed(error: impl std::fmt::Display) -> BenchmarkError {
    BenchmarkError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_must_be_pytorchs() {
        held(0, 7.0, 7.001, 7e-3).unwrap();
        for wrong in [7.1, 0.0, -7.0, f64::NAN, f64::INFINITY] {
            let error = held(1, wrong, 7.0, 7e-3).unwrap_err().to_string();
            assert!(error.contains("the loss of step 2"), "{error}");
        }
    }
}
