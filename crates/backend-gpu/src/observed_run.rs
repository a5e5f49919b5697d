//! Observed runs: step by step, each result is shown when it is computed. Memory is shared as in other runs, so a
//! value is read before it is overwritten.

use std::collections::HashMap;
use std::sync::Arc;

use warpforge_fusion::graph::OpSpan;
use warpforge_fusion::{NodeId, Op};
use warpforge_interp::Value;
use warpforge_runtime::{ClusterValues, Observer, Source};
use warpforge_tensor::{Shape, Tensor};

use crate::error::{GpuError, Result, runtime_error};
use crate::observe::RunObserver;
use crate::program::CompiledProgram;

/// Runs all steps and shows the observer each operation's results. Inputs are on the device.
///
/// # Errors
///
/// When the device fails, or the observer stops the run.
pub(crate) fn run(
    made: &CompiledProgram,
    marks: &[OpSpan],
    inputs: &[Tensor],
    observer: &Arc<dyn Observer>,
) -> warpforge_runtime::Result<()> {
    let failed = |error: GpuError| runtime_error(made.gpu.driver.vendor, &error);
    let module = Arc::clone(made.program.module());
    let run_observer = Arc::new(RunObserver::new(module, Arc::clone(observer)));
    // The run overwrites them.
    let state = made.program.bindings().iter().map(|binding| match made.program.state() {
        Some(state) => state.store().read(binding.value),
        None => Err(failed(GpuError::Other("a binding without state".to_owned()))),
    });
    let state = state.collect::<warpforge_runtime::Result<Vec<_>>>()?;
    let mut values = Values { made, inputs, state, last: last_mentions(marks), kept: HashMap::new() };
    let mut steps = made.steps.iter().peekable();
    made.gpu.enter().map_err(failed)?;
    for (at, mark) in marks.iter().enumerate() {
        while let Some(planned) = steps.next_if(|planned| planned.node.index() < mark.nodes) {
            let started = planned.step.start_observed(&made.stream, &run_observer);
            started.map_err(|error| run_observer.stop().map_or_else(|| failed(error), Into::into))?;
        }
        let op = run_observer.op(mark.op);
        let Some(results) = &mark.results else {
            observer.begins(op);
            continue;
        };
        let shown: Result<Vec<Value>> =
            results.iter().map(|&id| values.get(id, at).map(Value::Tensor)).collect();
        observer
            .results(op, &shown.map_err(failed)?)
            .map_err(|reason| warpforge_interp::Error::stopped(op, reason))?;
        values.forget(at);
    }
    // Copies of state come after all operations.
    steps.try_for_each(|planned| planned.step.start(&made.stream)).map_err(failed)
}

/// Runs all steps and reads what each cluster leaves in memory. Inputs are on the device.
///
/// # Errors
///
/// When the device fails.
pub(crate) fn clusters(made: &CompiledProgram) -> Result<Vec<ClusterValues>> {
    let given = made.steps.iter().flat_map(|planned| planned.gives.iter().copied()).collect();
    let borders = made.nodes.values_in(&given);
    let mut clusters = Vec::new();
    made.gpu.enter()?;
    for planned in &made.steps {
        planned.step.start(&made.stream)?;
        let mut values = Vec::new();
        for &id in &planned.gives {
            let Some(sources) = borders.get(&id) else { continue };
            let held = read(made, id)?;
            values.extend(sources.iter().filter_map(|source| Some((source.value, source.read(&held)?))));
        }
        if !planned.gives.is_empty() {
            clusters.push(ClusterValues { kernel: planned.step.name(), ops: planned.ops.clone(), values });
        }
    }
    Ok(clusters)
}

/// The last operation that has each value among its results.
fn last_mentions(marks: &[OpSpan]) -> HashMap<NodeId, usize> {
    let mentions = marks.iter().enumerate();
    mentions.flat_map(|(at, mark)| mark.results.iter().flatten().map(move |&id| (id, at))).collect()
}

/// The values of a run, read on demand.
struct Values<'a> {
    made: &'a CompiledProgram,
    inputs: &'a [Tensor],
    /// The state before the run.
    state: Vec<Tensor>,
    last: HashMap<NodeId, usize>,
    /// Values that are shown again after their memory may be reused.
    kept: HashMap<NodeId, Tensor>,
}

impl Values<'_> {
    /// A value after an operation.
    fn get(&mut self, id: NodeId, at: usize) -> Result<Tensor> {
        let known = match &self.made.nodes.node(id).op {
            Op::Argument(at) => match self.made.sources.get(*at) {
                Some(&Source::Input(at)) => self.inputs.get(at),
                Some(&Source::State(at)) => self.state.get(at),
                None => None,
            },
            Op::Constant(tensor) => Some(tensor),
            _ => self.kept.get(&id),
        };
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let tensor = read(self.made, id)?;
        if self.last.get(&id).is_some_and(|&last| last > at) {
            self.kept.insert(id, tensor.clone());
        }
        Ok(tensor)
    }

    /// Drops values that are not shown again.
    fn forget(&mut self, at: usize) {
        let last = &self.last;
        self.kept.retain(|id, _| last.get(id).is_some_and(|&last| last > at));
    }
}

/// A value on the device.
fn read(made: &CompiledProgram, id: NodeId) -> Result<Tensor> {
    let other = |error: warpforge_tensor::Error| GpuError::Other(error.to_string());
    let node = made.nodes.node(id);
    let mut tensor =
        Tensor::zeros(node.element, Shape::new(node.dims.clone()).map_err(other)?).map_err(other)?;
    if node.is_empty() {
        return Ok(tensor);
    }
    let address = made.layout.address(id);
    if address == 0 {
        return Err(GpuError::Other(format!("{} has no place on the device", node.op.name())));
    }
    made.stream.read(address, tensor.bytes_mut())?;
    Ok(tensor)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::compile::build;
    use crate::executable::GpuExecutable;
    use crate::fake;
    use crate::tests::programs::AS_WRITTEN;
    use crate::vendor::Vendor;
    use warpforge_ir::{OpId, OpRef};
    use warpforge_runtime::{
        Backend, ErrorKind, Executable, Program, Reference, RunOptions, Target, Tier, Weights,
    };
    use warpforge_snakeburger::text;

    /// Records every operation with its result sizes; stops at a name.
    #[derive(Default)]
    struct Notes {
        seen: Mutex<Vec<(OpId, String, Vec<usize>)>>,
        stop_at: Option<&'static str>,
    }

    impl Observer for Notes {
        fn results(&self, op: OpRef<'_>, results: &[Value]) -> std::result::Result<(), String> {
            let sizes = results.iter().filter_map(|value| Some(value.as_tensor().ok()?.len())).collect();
            self.seen.lock().unwrap().push((op.id(), op.name().to_owned(), sizes));
            if self.stop_at == Some(op.name()) { Err("seen enough".to_owned()) } else { Ok(()) }
        }
    }

    fn program(text: &str) -> Program {
        let module = text::parse(&warpforge_diag::Source::new("m", text), &text::Options::default()).unwrap();
        Program::new(Arc::new(module), "main", Weights::default()).unwrap()
    }

    /// A program for a fake GPU.
    fn compiled(program: &Program, vendor: Vendor, tier: Tier) -> GpuExecutable {
        let Ok(made) = build(&fake::gpu(vendor).unwrap(), &fake::request(program, tier)) else {
            panic!("not made")
        };
        GpuExecutable::new(made)
    }

    fn observed(notes: &Arc<Notes>) -> RunOptions {
        RunOptions { observer: Some(notes.clone()), ..RunOptions::default() }
    }

    fn reference(program: &Program) -> Box<dyn Executable> {
        Reference.compile(program, &Target::reference()).unwrap()
    }

    const CHAIN: &str = "func.func @main(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
    %0 = stablehlo.multiply %a, %b : tensor<64xf32>
    %1 = stablehlo.tanh %0 : tensor<64xf32>
    func.return %1 : tensor<64xf32>\n}";

    fn inputs() -> [Tensor; 2] {
        [0, 1].map(|_| Tensor::from_slice(&[64], &[1.0f32; 64]).unwrap())
    }

    #[test]
    fn a_value_is_read_right_after_its_kernel() {
        for vendor in [Vendor::Cuda, Vendor::Hip] {
            let compiled = compiled(&program(CHAIN), vendor, Tier::Correctness);
            assert_eq!(compiled.counters().unwrap().kernel_launches, 2);
            fake::calls();
            let notes = Arc::new(Notes::default());
            compiled.run(&inputs(), &observed(&notes)).unwrap();
            let calls: Vec<String> = fake::calls()
                .iter()
                .map(|call| call.split(' ').take(2).collect::<Vec<_>>().join(" "))
                .collect();
            let kernel = |calls: &[String], at: usize| calls[at].starts_with("launch");
            let copies: Vec<usize> = (0..calls.len()).filter(|&at| calls[at] == "copy out").collect();
            let launches: Vec<usize> = (0..calls.len()).filter(|&at| kernel(&calls, at)).collect();
            assert!(!calls.contains(&"record".to_owned()), "{calls:?}");
            assert_eq!((copies.len(), launches.len()), (3, 2), "{calls:?}");
            assert!(
                launches[0] < copies[0] && copies[0] < launches[1] && launches[1] < copies[1],
                "{calls:?}"
            );
        }
    }

    fn mixed_inputs() -> [Tensor; 2] {
        [Tensor::from_slice(&[4], &[1i32, 2, 3, 4]).unwrap(), Tensor::from_slice(&[], &[3i32]).unwrap()]
    }

    #[test]
    fn observed_operations_match_the_reference() {
        let program = program(AS_WRITTEN);
        let (found, expected) = (Arc::new(Notes::default()), Arc::new(Notes::default()));
        reference(&program).run(&mixed_inputs(), &observed(&expected)).unwrap();
        let compiled = compiled(&program, Vendor::Cuda, Tier::Correctness);
        let outcome = compiled.run(&mixed_inputs(), &observed(&found)).unwrap();
        let (found, expected) = (found.seen.lock().unwrap(), expected.seen.lock().unwrap());
        assert_eq!(*found, *expected);
        assert_eq!(found.iter().filter(|(_, name, _)| name == "stablehlo.subtract").count(), 3);
        // Host operations are computed even on a fake device.
        assert_eq!(outcome.outputs[1].as_slice::<i32>().unwrap(), [0]);
    }

    #[test]
    fn an_observer_can_stop_a_run() {
        let program = program(AS_WRITTEN);
        let compiled = compiled(&program, Vendor::Cuda, Tier::Correctness);
        for name in ["stablehlo.add", "stablehlo.subtract", "stablehlo.while"] {
            let notes = Arc::new(Notes { stop_at: Some(name), ..Notes::default() });
            let error = compiled.run(&mixed_inputs(), &observed(&notes)).unwrap_err();
            let ErrorKind::Evaluation(stopped) = error.kind() else { panic!("{error}") };
            assert_eq!((stopped.op(), stopped.to_string().contains("seen enough")), (Some(name), true));
            assert_eq!(notes.seen.lock().unwrap().last().unwrap().1, name);
        }
        compiled.run(&mixed_inputs(), &RunOptions::default()).unwrap();
    }

    #[test]
    fn other_tiers_refuse_observation() {
        let compiled = compiled(&program(CHAIN), Vendor::Cuda, Tier::Observable);
        let error = compiled.run(&inputs(), &observed(&Arc::new(Notes::default()))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cuda cannot observe values outside the correctness tier, or where processes meet"
        );
    }
}
