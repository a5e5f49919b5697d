//! Programs of several ranks on fake GPUs, each rank a thread: all-reduces are computed, kernels are not.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warpforge_diag::Source;
use warpforge_fusion::{Graph, Op};
use warpforge_interp::{CustomCall, Value};
use warpforge_ir::OpRef;
use warpforge_runtime::{
    CustomCalls, DeviceCollectives, DeviceGroup, DeviceReduction, Executable, Precision, Program, RankPlace,
    RunOptions, State, StateBinding, Tier, Weights,
};
use warpforge_snakeburger::text;
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use crate::compile_error::CompileError;
use crate::executable::GpuExecutable;
use crate::fake::collectives::all_reduced;
use crate::fake::{self, Fakes};
use crate::processes::{self, CompileOptions, Devices};
use crate::ranks::RankDevice;
use crate::state::DeviceStore;
use crate::vendor::Vendor;

const VENDORS: [Vendor; 2] = [Vendor::Cuda, Vendor::Hip];

/// Two buckets; the second gradient is computed after the first is on its way.
const TWO: &str = "func.func @main(%a: tensor<4xf32>, %b: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
    %0 = stablehlo.custom_call @start(%a) {backend_config = \"0/2\"} : (tensor<4xf32>) -> tensor<i64>
    %g = stablehlo.tanh %b : tensor<2xf32>
    %1 = stablehlo.custom_call @start(%g) {backend_config = \"1/2\"} : (tensor<2xf32>) -> tensor<i64>
    %2 = stablehlo.custom_call @done(%0, %1) : (tensor<i64>, tensor<i64>) -> tensor<4xf32>
    %3 = stablehlo.custom_call @done(%1, %0) : (tensor<i64>, tensor<i64>) -> tensor<2xf32>
    func.return %2, %3 : tensor<4xf32>, tensor<2xf32>\n}";

/// A bucket of two gradients, which are sent only when they are complete.
const CONDITIONAL: &str =
    "func.func @main(%r: tensor<i1>, %a: tensor<4xf32>, %b: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
    %0 = stablehlo.custom_call @start(%r, %a, %b) {backend_config = \"0/1\"} : (tensor<i1>, tensor<4xf32>, tensor<2xf32>) -> tensor<i64>
    %1:2 = stablehlo.custom_call @done(%0) : (tensor<i64>) -> (tensor<4xf32>, tensor<2xf32>)
    func.return %1#0, %1#1 : tensor<4xf32>, tensor<2xf32>\n}";

/// What a thread has of its rank.
struct Rank {
    rank: usize,
    devices: Fakes,
    group: Arc<dyn DeviceGroup>,
}

impl Rank {
    fn program(&self, text: &str) -> Program {
        let module = text::parse(&Source::new("m", text), &text::Options::default()).unwrap();
        let program = Program::new(Arc::new(module), "main", Weights::default()).unwrap();
        program.with_calls(self.calls())
    }

    /// Calls that only a device can make.
    fn calls(&self) -> CustomCalls {
        let refuses = |_: OpRef<'_>, _: &[Value]| Err("made by the host".to_owned());
        let refuses: Arc<dyn CustomCall> = Arc::new(refuses);
        let calls: HashMap<String, Arc<dyn CustomCall>> =
            ["start", "done"].map(|target| (target.to_owned(), Arc::clone(&refuses))).into();
        let group = Arc::clone(&self.group);
        CustomCalls::new(calls).with_reduction(DeviceReduction { start: "start", done: "done", group })
    }

    fn try_compile(&self, program: &Program, tier: Tier, device: u32) -> Result<GpuExecutable, CompileError> {
        let options = CompileOptions {
            program,
            tier,
            precision: Precision::Model,
            machine: None,
            gradient_checkpointing: false,
        };
        processes::compile(&self.devices, device, options)
    }

    fn compile(&self, program: &Program, tier: Tier) -> GpuExecutable {
        match self.try_compile(program, tier, self.rank as u32) {
            Ok(compiled) => compiled,
            Err(CompileError::Unsupported(reason)) => panic!("{reason}"),
            Err(CompileError::Import(error)) => panic!("{error}"),
            Err(CompileError::Gpu(error)) => panic!("{error}"),
            Err(CompileError::Refused(_)) => panic!("refused"),
        }
    }
}

/// Ranks that each have a fake GPU, connected.
fn ranks<T: Send + 'static>(vendor: Vendor, size: usize, each: fn(Rank) -> T) -> Vec<T> {
    let id = device(&Fakes::new(vendor, size as u32), 0).new_id().unwrap();
    let start = |rank: usize| {
        let id = id.clone();
        std::thread::spawn(move || {
            let devices = Fakes::new(vendor, size as u32);
            let group = device(&devices, rank).connect(&id, RankPlace { rank, size }, &|| None).unwrap();
            each(Rank { rank, devices, group })
        })
    };
    let threads: Vec<_> = (0..size).map(start).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn device(devices: &Fakes, rank: usize) -> RankDevice {
    let gpu = devices.context(rank as u32).unwrap().gpu;
    RankDevice { gpu, library: devices.collectives.clone().unwrap() }
}

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

/// What the all-reduces of this thread gave.
fn sums() -> Vec<Vec<f32>> {
    let number = |bytes: &[u8]| f32::from_ne_bytes(bytes.try_into().unwrap());
    all_reduced().iter().map(|bytes| bytes.chunks_exact(4).map(number).collect()).collect()
}

#[test]
fn ranks_add_up_on_a_stream_of_their_own() {
    for vendor in VENDORS {
        let all = ranks(vendor, 2, |rank| {
            let compiled = rank.compile(&rank.program(TWO), Tier::Production);
            assert_eq!(compiled.fallbacks(), []);
            let own = rank.rank as f32;
            let inputs = [floats(&[own, 1.0, 2.0, 3.0]), floats(&[own, 5.0])];
            let run = |profile| {
                all_reduced();
                fake::calls();
                compiled.run(&inputs, &RunOptions { profile, ..RunOptions::default() }).unwrap();
                (fake::calls(), sums())
            };
            fake::show_events();
            let (profiled, first) = run(true);
            let (_, second) = run(false);
            // Then the work is captured, and replayed.
            let captured = run(false).0;
            let replayed = run(false).0;
            rank.group.finish();
            (profiled, first, second, captured, replayed)
        });
        for (profiled, first, second, captured, replayed) in all {
            // The second gradient comes from a kernel, which fakes do not run.
            assert_eq!(first[0], [1.0, 2.0, 4.0, 6.0]);
            assert_eq!((first.len(), &second), (2, &first));
            let lines = |calls: &[String]| -> Vec<String> {
                let kept = |call: &&String| !call.starts_with("copy in") && !call.starts_with("copy out");
                calls.iter().filter(kept).cloned().collect()
            };
            let between = |calls: &[String], from: &str, to: &str| {
                let place = |what: &str| calls.iter().position(|call| call.contains(what));
                place(from).unwrap_or_else(|| panic!("{from}: {calls:?}"))
                    < place(to).unwrap_or_else(|| panic!("{to}: {calls:?}"))
            };
            let calls = lines(&profiled);
            // Stream 1 computes, 2 communicates.
            assert!(between(&calls, "copy within 16 on 1", "reduce 4 on 2"), "{calls:?}");
            assert!(between(&calls, "reduce 4 on 2", "launch"), "{calls:?}");
            assert!(between(&calls, "launch", "reduce 2 on 2"), "{calls:?}");
            assert!(captured.contains(&"record".to_owned()) && captured.contains(&"launch all".to_owned()));
            assert!(!replayed.iter().any(|call| call.contains("reduce")), "{replayed:?}");
        }
    }
}

#[test]
fn events_order_computation_and_communication() {
    let all = ranks(Vendor::Cuda, 2, |rank| {
        fake::show_events();
        let compiled = rank.compile(&rank.program(TWO), Tier::Production);
        fake::calls();
        let inputs = [floats(&[1.0; 4]), floats(&[1.0; 2])];
        compiled.run(&inputs, &RunOptions::default()).unwrap();
        let calls = fake::calls();
        drop(compiled);
        rank.group.finish();
        calls
    });
    for calls in all {
        let begin = calls.iter().position(|call| call == "copy within 16 on 1").unwrap();
        // Inputs are copied to their places first.
        let begin =
            begin + 1 + calls[begin + 1..].iter().position(|call| call == "copy within 16 on 1").unwrap();
        let end = calls.iter().rposition(|call| call.starts_with("launch")).unwrap();
        let expected = [
            "copy within 16 on 1",
            "1 records event 1",
            "2 waits for event 1",
            "reduce 4 on 2",
            "2 records event 2",
            "launch 1 blocks of 256",
            "copy within 8 on 1",
            "1 records event 3",
            "2 waits for event 3",
            "reduce 2 on 2",
            "2 records event 4",
            "1 waits for event 2",
            "copy within 16 on 1",
        ];
        assert_eq!(calls[begin..begin + expected.len()], expected, "{calls:?}");
        let rest = &calls[begin + expected.len()..=end];
        assert!(rest.contains(&"1 waits for event 4".to_owned()), "{calls:?}");
    }
}

#[test]
fn buckets_are_sent_in_the_order_of_their_numbers() {
    let orders = ranks(Vendor::Cuda, 2, |rank| {
        // The program of one rank fills them in the other order.
        let text = match rank.rank {
            0 => TWO.to_owned(),
            _ => TWO.replace("0/2", "x/2").replace("1/2", "0/2").replace("x/2", "1/2"),
        };
        let text = text.replace("tensor<2xf32>", "tensor<4xf32>");
        let compiled = rank.compile(&rank.program(&text), Tier::Production);
        let own = rank.rank as f32;
        fake::show_events();
        compiled.run(&[floats(&[own; 4]), floats(&[own; 4])], &RunOptions::default()).unwrap();
        let order: Vec<String> = fake::calls()
            .into_iter()
            .filter(|call| call.contains("reduce") || call.starts_with("launch"))
            .take(3)
            .map(|call| call.split(' ').next().unwrap().to_owned())
            .collect();
        rank.group.finish();
        order
    });
    assert_eq!(orders[0], ["reduce", "launch", "reduce"]);
    // The first bucket waits for its values.
    assert_eq!(orders[1], ["launch", "reduce", "reduce"]);
}

#[test]
fn gradients_that_are_not_complete_stay() {
    ranks(Vendor::Cuda, 2, |rank| {
        for tier in Tier::ALL {
            let compiled = rank.compile(&rank.program(CONDITIONAL), tier);
            let own = rank.rank as f32;
            for complete in [false, true, false] {
                let condition = Tensor::from_scalars(
                    ElementType::Bool,
                    Shape::new(Vec::new()).unwrap(),
                    [Scalar::Bool(complete)],
                );
                let inputs = [condition.unwrap(), floats(&[own; 4]), floats(&[own + 2.0; 2])];
                all_reduced();
                compiled.run(&inputs, &RunOptions::default()).unwrap();
                // Both are in one bucket.
                let expected = vec![vec![1.0, 1.0, 1.0, 1.0, 5.0, 5.0]];
                assert_eq!(sums(), if complete { expected } else { Vec::new() }, "{tier:?}");
            }
        }
        rank.group.finish();
    });
}

#[test]
fn one_rank_keeps_its_values() {
    ranks(Vendor::Hip, 1, |rank| {
        let text = TWO
            .replace("stablehlo.tanh %b", "stablehlo.reshape %b")
            .replace("%b : tensor<2xf32>\n", "%b : (tensor<2xf32>) -> tensor<2xf32>\n");
        let compiled = rank.compile(&rank.program(&text), Tier::Production);
        let inputs = [floats(&[1.0, 2.0, 3.0, 4.0]), floats(&[5.0, 6.0])];
        for _ in 0..2 {
            let outputs = compiled.run(&inputs, &RunOptions::default()).unwrap().outputs;
            assert_eq!(outputs[0].as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
            assert_eq!(outputs[1].as_slice::<f32>().unwrap(), [5.0, 6.0]);
        }
        rank.group.finish();
    });
}

/// The functions of a graph's elementwise operations, with the types that they give.
fn functions(graph: &Graph) -> Vec<(Function, ElementType)> {
    let function = |node: &warpforge_fusion::Node| match node.op {
        Op::Elementwise(function) => Some((function, node.element)),
        _ => None,
    };
    graph.nodes.iter().filter_map(function).collect()
}

#[test]
fn sums_are_in_single_precision_and_divided_by_the_number_of_ranks() {
    use crate::collectives::lower_buckets;
    let lowered = ranks(Vendor::Cuda, 1, |rank| {
        let lowered = |text: &str, size: usize| {
            let program = rank.program(text);
            let graph = fake::imported(&program, Tier::Production).graph;
            let reduction = program.calls().reduction().unwrap();
            functions(&lower_buckets(&graph, reduction, size).unwrap().0)
        };
        let wide = TWO.replace("stablehlo.tanh", "stablehlo.sine");
        let all = [
            lowered(&wide, 3),
            lowered(&wide.replace("f32", "bf16"), 3),
            lowered(&wide.replace("f32", "f64"), 3),
            lowered(CONDITIONAL, 3),
            lowered(&wide, 1),
        ];
        rank.group.finish();
        all
    });
    let [single, narrow, double, conditional, alone] = &lowered[0];
    let sine = |element| (Function::Sine, element);
    let mean = |element| (Function::Divide, element);
    let (f32, f64) = (ElementType::F32, ElementType::F64);
    assert_eq!(*single, [sine(f32), mean(f32), mean(f32)]);
    assert_eq!(*double, [sine(f64), mean(f64), mean(f64)]);
    let (up, down) = ((Function::Convert, f32), (Function::Convert, ElementType::BF16));
    assert_eq!(*narrow, [up, sine(ElementType::BF16), up, mean(f32), down, mean(f32), down]);
    let count = (Function::Select, f32);
    assert_eq!(*conditional, [count, mean(f32), count, mean(f32)]);
    assert_eq!(*alone, [sine(f32)]);
}

/// A step whose state is not whole when its gradients are lost.
const STEP: &str = "func.func @main(%w: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @start(%g) {backend_config = \"0/1\"} : (tensor<4xf32>) -> tensor<i64>
    %1 = stablehlo.custom_call @done(%0) : (tensor<i64>) -> tensor<4xf32>
    %2 = stablehlo.subtract %w, %1 : tensor<4xf32>
    func.return %2 : tensor<4xf32>\n}";

#[test]
fn a_rank_that_is_gone_ends_the_runs_of_others() {
    for vendor in VENDORS {
        let said = ranks(vendor, 2, |rank| {
            let gpu = rank.devices.context(rank.rank as u32).unwrap().gpu;
            if rank.rank == 1 {
                // It never starts its part: one falls silent, of another the library sees the end.
                if gpu.driver.vendor == Vendor::Cuda {
                    std::mem::forget(rank);
                }
                return None;
            }
            let state: Arc<State> = Arc::new(DeviceStore::state(&gpu, &[floats(&[1.0; 4])]).unwrap());
            let binding = StateBinding { argument: 0, result: 0, value: 0 };
            let program = rank.program(STEP).with_state(Arc::clone(&state), vec![binding]).unwrap();
            let compiled = rank.compile(&program, Tier::Production);
            let group = Arc::clone(&rank.group);
            let begin = Instant::now();
            let watch = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(100));
                group.abort("rank 1 is gone: its process has ended");
            });
            let error = compiled.run(&[floats(&[1.0; 4])], &RunOptions::default()).unwrap_err();
            watch.join().unwrap();
            assert!(begin.elapsed() < Duration::from_secs(10));
            // No checkpoint is made of gradients that never came.
            assert!(state.read(0).unwrap_err().to_string().contains("half-way"));
            Some(error.to_string())
        });
        let expected = format!("{}: rank 1 is gone: its process has ended", vendor.name());
        assert_eq!(said, [Some(expected), None]);
    }
}

/// The device of a rank that is gone ends what it computes, without the values.
#[test]
fn results_after_an_abort_are_not_given() {
    ranks(Vendor::Cuda, 1, |rank| {
        let compiled = rank.compile(&rank.program(TWO), Tier::Production);
        let inputs = [floats(&[1.0; 4]), floats(&[1.0; 2])];
        for _ in 0..3 {
            compiled.run(&inputs, &RunOptions::default()).unwrap();
        }
        rank.group.abort("rank 7 is gone: its process has ended");
        rank.group.abort("rank 8 is gone: rank 0 says so");
        fake::calls();
        let profiled = RunOptions { profile: true, ..RunOptions::default() };
        for options in [RunOptions::default(), profiled] {
            let error = compiled.run(&inputs, &options).unwrap_err().to_string();
            assert_eq!(error, "cuda: rank 7 is gone: its process has ended");
        }
        let mut bound = compiled.bind(&inputs).unwrap().unwrap();
        assert!(bound.run().is_err() && bound.outputs().is_err());
        assert!(!fake::calls().contains(&"launch all".to_owned()));
    });
}

#[test]
fn a_rank_that_never_connects_ends_the_wait_of_others() {
    let devices = Fakes::new(Vendor::Cuda, 2);
    let device = device(&devices, 0);
    let id = device.new_id().unwrap();
    let begin = Instant::now();
    let failed = || {
        let late = begin.elapsed() > Duration::from_millis(200);
        late.then(|| "rank 1 is gone: nothing was heard of it for 6 s".to_owned())
    };
    let error = device.connect(&id, RankPlace { rank: 0, size: 2 }, &failed).unwrap_err().to_string();
    assert_eq!(error, "cuda: rank 1 is gone: nothing was heard of it for 6 s");
    assert!(device.connect(&[1, 2], RankPlace { rank: 0, size: 2 }, &failed).is_err(), "no such id");
}

#[test]
fn communicators_are_destroyed_together_or_aborted() {
    for (finishes, call) in [(true, "destroy"), (false, "abort")] {
        let id = device(&Fakes::new(Vendor::Hip, 1), 0).new_id().unwrap();
        let devices = Fakes::new(Vendor::Hip, 1);
        let group = device(&devices, 0).connect(&id, RankPlace { rank: 0, size: 1 }, &|| None).unwrap();
        if finishes {
            group.finish();
        }
        fake::calls();
        drop(group);
        assert_eq!(fake::calls(), [call]);
    }
}

#[test]
fn a_program_for_another_device_is_refused() {
    ranks(Vendor::Cuda, 2, |rank| {
        let refused = rank.try_compile(&rank.program(TWO), Tier::Production, 1 - rank.rank as u32);
        let Err(CompileError::Gpu(error)) = refused else { panic!("compiled") };
        assert!(error.to_string().contains("connected on another device"), "{error}");
        rank.group.finish();
    });
}

#[test]
fn devices_are_told_apart() {
    let devices = Fakes::new(Vendor::Cuda, 2);
    let [one, two] = [0, 1].map(|rank| device(&devices, rank));
    assert!(one.device().is_some() && one.device() != two.device());
    assert_eq!(one.version(), "2.28.3");
}
