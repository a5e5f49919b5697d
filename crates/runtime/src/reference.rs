//! The reference evaluator as a backend: the correctness tier on the host.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

use warpforge_interp::trace::Several;
use warpforge_interp::{Interpreter, Observer, Options, Value, why_unsupported};
use warpforge_ir::{Attribute, Func, OpRef};
use warpforge_tensor::Tensor;

use crate::error::{ErrorKind, Result};
use crate::profile::{Event, Profile};
use crate::registry::Target;
use crate::{
    Backend, Capabilities, ClusterValues, Device, Executable, Outcome, Precision, Program, RunOptions, Tier,
};

/// Its name in records.
const NAME: &str = "reference";

/// The reference evaluator: every operation, one after the other, every value traceable.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reference;

impl Backend for Reference {
    fn name(&self) -> &'static str {
        NAME
    }

    fn serves(&self, device: Device) -> bool {
        device == Device::Cpu
    }

    fn devices(&self) -> Vec<Device> {
        vec![Device::Cpu]
    }

    fn capabilities(&self, _: Device) -> Capabilities {
        Capabilities {
            tiers: vec![Tier::Correctness],
            precisions: vec![Precision::Model],
            observes_values: true,
        }
    }

    /// Nothing is prepared: the operations are looked through for what could not be evaluated.
    fn compile(&self, program: &Program, target: &Target) -> Result<Box<dyn Executable>> {
        let mut operations = unsupported(program);
        if operations.is_empty() {
            return Ok(Box::new(Compiled { program: program.clone(), threads: target.threads }));
        }
        operations.sort();
        operations.dedup();
        Err(ErrorKind::Unsupported { backend: NAME, operations }.into())
    }
}

/// The operations that could not be evaluated, in the entry function and those that it calls.
fn unsupported(program: &Program) -> Vec<String> {
    let (module, entry) = (program.module(), program.entry());
    let mut found = Vec::new();
    let mut called: HashSet<&str> = HashSet::from([entry]);
    let options = program.calls().options();
    let mut pending: Vec<OpRef<'_>> = module.function(entry).into_iter().map(Func::op).collect();
    while let Some(op) = pending.pop() {
        found.extend(why_unsupported(op, &options).map(|reason| format!("{}: {reason}", op.name())));
        let blocks = op.regions().iter().flat_map(|&region| module.blocks(region));
        pending.extend(blocks.flat_map(|&block| module.ops_in(block)));
        for name in op.attrs().entries().iter().flat_map(|(_, value)| symbols(value)) {
            if called.insert(name) {
                pending.extend(module.function(name).map(Func::op));
            }
        }
    }
    found
}

/// The functions that an attribute names, itself or in its lists.
fn symbols(attribute: &Attribute) -> Vec<&str> {
    let lists = attribute.as_array().unwrap_or_default();
    let inner =
        lists.iter().flat_map(|item| item.as_array().map_or(std::slice::from_ref(item), |items| items));
    std::iter::once(attribute).chain(inner).filter_map(Attribute::as_symbol).collect()
}

struct Compiled {
    program: Program,
    threads: Option<NonZeroUsize>,
}

impl Executable for Compiled {
    fn program(&self) -> &Program {
        &self.program
    }

    fn run(&self, inputs: &[Tensor], options: &RunOptions) -> Result<Outcome> {
        self.program.check_inputs(inputs)?;
        let update = self.program.state().map(|state| state.begin()).transpose()?;
        let state: Vec<Tensor> = match &update {
            Some(update) => {
                let bindings = self.program.bindings().iter();
                bindings.map(|binding| update.store().read(binding.value)).collect::<Result<_>>()?
            }
            None => Vec::new(),
        };
        let arguments = self.program.arguments(inputs, &state)?.into_iter().map(Value::Tensor).collect();
        let timeline = options.profile.then(|| Arc::new(Timeline::new(options.observer.clone())));
        let observer = match &timeline {
            Some(timeline) => Some(Arc::clone(timeline) as Arc<dyn Observer>),
            None => options.observer.clone(),
        };
        let operations = options.clusters.then(|| Arc::new(Operations::default()));
        let observer = match &operations {
            Some(operations) => {
                let all = std::iter::once(Arc::clone(operations) as Arc<dyn Observer>).chain(observer);
                Some(Arc::new(Several(all.collect())) as Arc<dyn Observer>)
            }
            None => observer,
        };
        let threads = self.threads.map(NonZeroUsize::get);
        let options = Options { observer, threads, ..self.program.calls().options() };
        let values = Interpreter::new(self.program.module(), options).run(self.program.entry(), arguments)?;
        let outputs: std::result::Result<Vec<Tensor>, _> =
            values.iter().map(|value| value.as_tensor().cloned()).collect();
        let profile = timeline.map_or_else(Profile::default, |timeline| timeline.take());
        let mut outputs = outputs?;
        if let Some(update) = update {
            for binding in self.program.bindings() {
                let missing = || ErrorKind::State(format!("the run gave no result {}", binding.result));
                let content = outputs.get(binding.result).ok_or_else(missing)?;
                update.store().write(binding.value, content)?;
            }
            let given = self.program.given_results();
            outputs = given.into_iter().filter_map(|at| outputs.get(at).cloned()).collect();
            update.end();
        }
        let clusters = operations.map(|operations| operations.take()).unwrap_or_default();
        Ok(Outcome { outputs, profile, clusters })
    }

    fn threads(&self) -> usize {
        self.threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
    }

    fn peak_memory_bytes(&self) -> Option<u64> {
        None
    }
}

/// Keeps what each operation of the entry function gives: to the reference, every operation is a cluster.
#[derive(Default)]
struct Operations(Mutex<Vec<ClusterValues>>);

impl Operations {
    fn take(&self) -> Vec<ClusterValues> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Operations {
    fn results(&self, op: OpRef<'_>, results: &[Value]) -> std::result::Result<(), String> {
        if op.parent_op().and_then(Func::new).is_none() {
            return Ok(());
        }
        let tensors = op.results().zip(results);
        let values = tensors.filter_map(|(value, given)| Some((value, given.as_tensor().ok()?.clone())));
        let given =
            ClusterValues { kernel: op.name().to_owned(), ops: vec![op.id()], values: values.collect() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(given);
        Ok(())
    }
}

/// Notes when each operation ran, and passes the values on.
struct Timeline {
    origin: Instant,
    next: Option<Arc<dyn Observer>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tracks: HashMap<ThreadId, Track>,
    profile: Profile,
}

/// The operations of a thread that have begun and not ended, outermost first.
struct Track {
    number: u32,
    begun: Vec<Instant>,
}

impl Timeline {
    fn new(next: Option<Arc<dyn Observer>>) -> Self {
        Self { origin: Instant::now(), next, state: Mutex::default() }
    }

    fn take(&self) -> Profile {
        std::mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).profile)
    }
}

impl Observer for Timeline {
    fn begins(&self, op: OpRef<'_>) {
        if let Some(next) = &self.next {
            next.begins(op);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let number = u32::try_from(state.tracks.len()).unwrap_or(u32::MAX);
        let track = state.tracks.entry(std::thread::current().id());
        track.or_insert(Track { number, begun: Vec::new() }).begun.push(Instant::now());
    }

    fn results(&self, op: OpRef<'_>, results: &[Value]) -> std::result::Result<(), String> {
        let now = Instant::now();
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let track = state.tracks.get_mut(&std::thread::current().id());
            if let Some((number, begun)) = track.and_then(|track| Some((track.number, track.begun.pop()?))) {
                let mut details = vec![("results", types(op))];
                details.extend(op.module().location(op.id()).map(|text| ("location", text.to_owned())));
                state.profile.push(Event {
                    name: op.name().to_owned(),
                    category: "op",
                    track: number,
                    start: begun.duration_since(self.origin),
                    duration: now.duration_since(begun),
                    details,
                });
            }
        }
        self.next.as_ref().map_or(Ok(()), |next| next.results(op, results))
    }
}

fn types(op: OpRef<'_>) -> String {
    op.result_types().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompileOptions, Weights, choose};
    use warpforge_diag::Source;
    use warpforge_snakeburger::text;
    use warpforge_tensor::{ElementType, Scalar};

    fn compile(text: &str) -> Result<Box<dyn Executable>> {
        let module = text::parse(&Source::new("m", text), &text::Options::default()).unwrap();
        let choice = choose(&[Arc::new(Reference)], &CompileOptions::default())?;
        choice.backend.compile(&Program::new(Arc::new(module), "main", Weights::default())?, &choice.target)
    }

    #[test]
    fn what_cannot_be_evaluated_is_named_before_the_run() {
        let error = compile(
            "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
                %0 = stablehlo.custom_call @nobody_knows(%a) : (tensor<2xf32>) -> tensor<2xf32>
                %1 = \"other.op\"(%0) : (tensor<2xf32>) -> tensor<2xf32>
                func.return %1 : tensor<2xf32>\n}",
        );
        let text = error.err().unwrap().to_string();
        assert!(text.contains("nobody_knows") && text.contains("other.op"), "{text}");
    }

    #[test]
    fn only_what_is_called_counts() {
        let text = |called: &str| {
            format!(
                "func.func @main() -> tensor<f32> {{
                %0 = func.call @{called}() : () -> tensor<f32>
                func.return %0 : tensor<f32>\n}}
                func.func private @good() -> tensor<f32> {{
                %0 = stablehlo.constant dense<1.0> : tensor<f32>
                func.return %0 : tensor<f32>\n}}
                func.func private @bad() -> tensor<f32> {{
                %0 = stablehlo.custom_call @nobody_knows() : () -> tensor<f32>
                func.return %0 : tensor<f32>\n}}"
            )
        };
        assert!(compile(&text("good")).is_ok());
        assert!(compile(&text("bad")).is_err());
    }

    #[test]
    fn a_profile_has_every_operation_inside_the_one_that_runs_it() {
        let executable = compile(
            "func.func @main(%a: tensor<i1>) -> tensor<i32> {
                %0 = \"stablehlo.if\"(%a) ({
                  %c = stablehlo.constant dense<1> : tensor<i32>
                  stablehlo.return %c : tensor<i32>
                }, {
                  %c = stablehlo.constant dense<2> : tensor<i32>
                  stablehlo.return %c : tensor<i32>
                }) : (tensor<i1>) -> tensor<i32>
                func.return %0 : tensor<i32>\n}",
        )
        .unwrap();
        let options = RunOptions { profile: true, ..RunOptions::default() };
        let yes = Tensor::scalar(ElementType::Bool, Scalar::Bool(true)).unwrap();
        let outcome = executable.run(&[yes], &options).unwrap();
        let [inner, outer] = outcome.profile.events.as_slice() else { panic!("{:?}", outcome.profile) };
        assert_eq!((inner.name.as_str(), outer.name.as_str()), ("stablehlo.constant", "stablehlo.if"));
        assert!(outer.start <= inner.start);
        assert!(inner.start + inner.duration <= outer.start + outer.duration);
        assert_eq!(outer.details, [("results", "tensor<i32>".to_owned())]);
    }
}
