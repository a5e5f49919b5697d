//! Programs of several processes on fake GPUs: collectives are computed, kernels are not.

use std::sync::Arc;

use warpforge_diag::Source;
use warpforge_runtime::{
    Backend, Executable, Precision, Program, Reference, RunOptions, Target, Tier, Weights,
};
use warpforge_snakeburger::text;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use super::steps;
use crate::compile_error::CompileError;
use crate::executable::GpuExecutable;
use crate::fake::collectives::{UNLUCKY, told};
use crate::fake::{self, Fakes};
use crate::library::{Missing, Vendor};
use crate::processes::{self, CompileOptions};

/// A program that runs `@p` in each process of a grid.
fn parallel(
    function: &str,
    (replicas, partitions): (usize, usize),
    takes: &[&str],
    gives: &[&str],
) -> String {
    let row = format!("[{}]", vec!["@p"; partitions].join(", "));
    let grid = vec![row; replicas].join(", ");
    let count = replicas * partitions;
    let all = |types: &[&str]| vec![types.join(", "); if types.is_empty() { 0 } else { count }].join(", ");
    let names: Vec<String> = (0..count * takes.len()).map(|at| format!("%a{at}")).collect();
    let arguments: Vec<String> =
        names.iter().enumerate().map(|(at, name)| format!("{name}: {}", takes[at % takes.len()])).collect();
    let results: Vec<String> = match count * gives.len() {
        1 => vec!["%r".to_owned()],
        many => (0..many).map(|at| format!("%r#{at}")).collect(),
    };
    let given = if results.len() == 1 { "%r".to_owned() } else { format!("%r:{}", results.len()) };
    format!(
        "{function}\nfunc.func @main({}) -> ({}) {{
    {given} = \"interpreter.run_parallel\"({}) {{programs = [{grid}]}} : ({}) -> ({})
    return {} : {}\n}}",
        arguments.join(", "),
        all(gives),
        names.join(", "),
        all(takes),
        all(gives),
        results.join(", "),
        all(gives),
    )
}

fn program(text: &str) -> Program {
    let module = text::parse(&Source::new("m", text), &text::Options::default()).unwrap();
    Program::new(Arc::new(module), "main", Weights::default()).unwrap()
}

fn compiled(text: &str, devices: &Fakes) -> GpuExecutable {
    let (program, tier, precision) = (program(text), Tier::Production, Precision::Model);
    match processes::compile(
        devices,
        0,
        CompileOptions { program: &program, tier, precision, machine: None, gradient_checkpointing: false },
    ) {
        Ok(compiled) => compiled,
        Err(CompileError::Unsupported(reason)) => panic!("{reason}"),
        Err(CompileError::Import(error)) => panic!("{error}"),
        Err(CompileError::Gpu(error)) => panic!("{error}"),
        Err(CompileError::Refused(_)) => panic!("refused"),
    }
}

/// Distinct values.
fn inputs(program: &Program) -> Vec<Tensor> {
    let mut next = 0;
    let mut tensor = |ty: &warpforge_ir::TensorType| {
        let (element, shape) =
            (ty.element().storage().unwrap(), Shape::new(ty.shape_usize().unwrap()).unwrap());
        let values: Vec<Scalar> = (0..shape.num_elements())
            .map(|_| {
                next += 1;
                match element {
                    ElementType::Float(_) => Scalar::Float(f64::from(next)),
                    ElementType::Bool => Scalar::Bool(next % 3 == 0),
                    _ => Scalar::Int(next.into()),
                }
            })
            .collect();
        Tensor::from_scalars(element, shape, values).unwrap()
    };
    program.inputs().iter().map(|(_, ty)| tensor(ty)).collect()
}

/// The fallbacks of a program, as they are said.
fn said(compiled: &dyn Executable) -> Vec<String> {
    compiled.fallbacks().iter().map(ToString::to_string).collect()
}

fn reference(program: &Program, inputs: &[Tensor]) -> Vec<Tensor> {
    Reference
        .compile(program, &Target::reference())
        .unwrap()
        .run(inputs, &RunOptions::default())
        .unwrap()
        .outputs
}

/// Runs a program on one GPU per process; returns the calls of each communicator.
fn agrees(text: &str, vendor: Vendor, count: u32) -> Vec<Vec<String>> {
    told();
    let compiled = compiled(text, &Fakes::new(vendor, count));
    assert_eq!(compiled.fallbacks(), []);
    let inputs = inputs(compiled.program());
    let outcome = compiled.run(&inputs, &RunOptions::default()).unwrap();
    let expected = reference(compiled.program(), &inputs);
    for (at, (found, expected)) in outcome.outputs.iter().zip(&expected).enumerate() {
        assert_eq!(found.bytes(), expected.bytes(), "result {at}: {found:?}, {expected:?} expected\n{text}");
    }
    assert_eq!(outcome.outputs.len(), expected.len());
    told()
}

const VENDORS: [Vendor; 2] = [Vendor::Cuda, Vendor::Hip];

/// An all-reduce with this computation.
fn all_reduce(kind: &str, ty: &str, element: &str, attributes: &str) -> String {
    format!(
        "func.func @p(%a: {ty}) -> {ty} {{
    %r = \"stablehlo.all_reduce\"(%a) <{{{attributes}}}> ({{
    ^bb0(%x: tensor<{element}>, %y: tensor<{element}>):
      %s = stablehlo.{kind} %x, %y : tensor<{element}>
      stablehlo.return %s : tensor<{element}>
    }}) : ({ty}) -> {ty}
    return %r : {ty}\n}}"
    )
}

const CHANNEL: &str = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>";

#[test]
fn all_reduce_matches_the_reference() {
    let both = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>";
    // Codes: types 1 (byte), 2 (i32), 7 (f32); sum 0, product 1, max 2, min 3.
    for (kind, element, call) in [
        ("add", "f32", "all_reduce 4 of 7 by 0"),
        ("multiply", "i32", "all_reduce 4 of 2 by 1"),
        ("maximum", "i32", "all_reduce 4 of 2 by 2"),
        ("minimum", "i64", "all_reduce 4 of 4 by 3"),
        ("and", "i1", "all_reduce 4 of 1 by 3"),
        ("or", "i1", "all_reduce 4 of 1 by 2"),
    ] {
        for vendor in VENDORS {
            let ty = format!("tensor<4x{element}>");
            let function = all_reduce(kind, &ty, element, both);
            let calls = agrees(&parallel(&function, (2, 1), &[&ty], &[&ty]), vendor, 2);
            assert_eq!(calls, [[format!("0: {call}"), format!("1: {call}")]]);
        }
    }
}

#[test]
fn communicators_are_created_once_per_group() {
    let ty = "tensor<4xi32>";
    let pairs = all_reduce("add", ty, "i32", "replica_groups = dense<[[0, 2], [3, 1]]> : tensor<2x2xi64>");
    fake::calls();
    let compiled = compiled(&parallel(&pairs, (4, 1), &[ty], &[ty]), &Fakes::new(Vendor::Cuda, 4));
    let connected = |calls: Vec<String>| -> Vec<String> {
        calls.into_iter().filter(|call| call.contains("rank") || call.contains("unique")).collect()
    };
    let two = ["unique id", "rank 0 of 2", "rank 1 of 2"];
    assert_eq!(connected(fake::calls()), [two, two].concat());
    let inputs = inputs(compiled.program());
    for _ in 0..2 {
        compiled.run(&inputs, &RunOptions::default()).unwrap();
    }
    assert_eq!(connected(fake::calls()), Vec::<String>::new());
}

#[test]
fn replica_groups_match_the_reference() {
    let ty = "tensor<2xi32>";
    for (groups, flattened) in [
        // Replicas of each partition; replicas with all partitions; flattened ids.
        (String::from("replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"), vec![2, 2]),
        (format!("replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, {CHANNEL}"), vec![4]),
        (format!("replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>, {CHANNEL}"), vec![2, 2]),
        (
            format!(
                "replica_groups = dense<[[0, 3, 1], [2, -1, -1]]> : tensor<2x3xi64>, {CHANNEL}, use_global_device_ids"
            ),
            vec![3, 1],
        ),
    ] {
        for vendor in VENDORS {
            let text = parallel(&all_reduce("add", ty, "i32", &groups), (2, 2), &[ty], &[ty]);
            let calls = agrees(&text, vendor, 4);
            assert_eq!(calls.iter().map(Vec::len).collect::<Vec<_>>(), flattened, "{groups}");
        }
    }
}

#[test]
fn gather_scatter_all_to_all_and_permute_match_the_reference() {
    let ty = "tensor<2x3xi32>";
    let groups = "replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>";
    let function = format!(
        "func.func @p(%a: {ty}) -> (tensor<4x3xi32>, tensor<1x3xi32>, {ty}, {ty}, {ty}) {{
    %g = \"stablehlo.all_gather\"(%a) <{{all_gather_dim = 0 : i64, {groups}}}> : ({ty}) -> tensor<4x3xi32>
    %s = \"stablehlo.reduce_scatter\"(%a) <{{scatter_dimension = 0 : i64, {groups}}}> ({{
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %0 = stablehlo.add %x, %y : tensor<i32>
      stablehlo.return %0 : tensor<i32>
    }}) : ({ty}) -> tensor<1x3xi32>
    %t = \"stablehlo.all_to_all\"(%a) <{{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, {groups}}}> : ({ty}) -> {ty}
    %b = \"stablehlo.collective_broadcast\"(%a) <{{{groups}}}> : ({ty}) -> {ty}
    %q = \"stablehlo.collective_permute\"(%a) <{{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}}> : ({ty}) -> {ty}
    return %g, %s, %t, %b, %q : tensor<4x3xi32>, tensor<1x3xi32>, {ty}, {ty}, {ty}\n}}"
    );
    let gives = ["tensor<4x3xi32>", "tensor<1x3xi32>", ty, ty, ty];
    for vendor in VENDORS {
        let calls = agrees(&parallel(&function, (2, 1), &[ty], &gives), vendor, 2);
        let [first, second] = calls.as_slice() else { panic!("{calls:?}") };
        let each = |rank: usize| {
            [
                "all_gather 24 bytes",
                "reduce_scatter 3 of 2 by 0",
                "send 12 bytes to 0",
                "receive 12 bytes from 0",
                "send 12 bytes to 1",
                "receive 12 bytes from 1",
                "broadcast 24 bytes of 0",
            ]
            .map(|call| format!("{rank}: {call}"))
        };
        assert_eq!(*first, [each(0), each(1)].concat());
        assert_eq!(*second, ["0: send 24 bytes to 1", "1: receive 24 bytes from 0"]);
    }
}

#[test]
fn replica_ids_and_cyclic_permutes() {
    let ty = "tensor<3xf32>";
    let function = format!(
        "func.func @p(%a: {ty}) -> (tensor<ui32>, tensor<ui32>, {ty}) {{
    %r = stablehlo.replica_id : tensor<ui32>
    %q = stablehlo.partition_id : tensor<ui32>
    %c = \"stablehlo.collective_permute\"(%a) <{{source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>, {CHANNEL}}}> : ({ty}) -> {ty}
    return %r, %q, %c : tensor<ui32>, tensor<ui32>, {ty}\n}}"
    );
    let calls =
        agrees(&parallel(&function, (1, 4), &[ty], &["tensor<ui32>", "tensor<ui32>", ty]), Vendor::Cuda, 4);
    assert_eq!(calls[0][..2], ["0: send 12 bytes to 1", "0: receive 12 bytes from 3"]);
}

#[test]
fn unsupported_reductions_gather_and_reduce_in_a_kernel() {
    let both = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>";
    // Bitwise operations, and float comparisons, in which the libraries drop NaN.
    for (kind, element) in
        [("and", "i32"), ("or", "i32"), ("maximum", "f32"), ("minimum", "bf16"), ("add", "i16")]
    {
        let ty = format!("tensor<8x{element}>");
        told();
        let text = parallel(&all_reduce(kind, &ty, element, both), (2, 1), &[&ty], &[&ty]);
        let compiled = compiled(&text, &Fakes::new(Vendor::Hip, 2));
        assert_eq!(compiled.fallbacks(), []);
        compiled.run(&inputs(compiled.program()), &RunOptions::default()).unwrap();
        assert!(told()[0][0].starts_with("0: all_gather"));
        // A collective and a kernel per process.
        assert_eq!(compiled.counters().unwrap().kernel_launches, 4);
    }
}

#[test]
fn too_few_gpus_fall_back_to_the_reference() {
    let ty = "tensor<4xi32>";
    let function = all_reduce("add", ty, "i32", "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>");
    let text = parallel(&function, (2, 1), &[ty], &[ty]);
    let compiled = compiled(&text, &Fakes::new(Vendor::Cuda, 1));
    assert_eq!(said(&compiled), ["interpreter.run_parallel: needs 2 GPUs, 1 is there"]);
    let inputs = inputs(compiled.program());
    let found = compiled.run(&inputs, &RunOptions::default()).unwrap().outputs;
    assert_eq!(found[0].as_slice::<i32>().unwrap(), [6, 8, 10, 12]);
}

#[test]
fn a_single_process_needs_no_collective_library() {
    let missing = Missing {
        what: "NCCL",
        names: vec!["libnccl.so.2".to_owned()],
        searched: vec!["nowhere".to_owned()],
    };
    let without =
        |count| Fakes { collectives: Err(missing.clone().into()), ..Fakes::new(Vendor::Cuda, count) };
    let ty = "tensor<4xi32>";
    let two = all_reduce("add", ty, "i32", "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>");
    let reasons = said(&compiled(&parallel(&two, (2, 1), &[ty], &[ty]), &without(2)));
    assert_eq!(reasons, ["interpreter.run_parallel: no NCCL here: tried libnccl.so.2 in nowhere"]);
    let alone =
        all_reduce("add", ty, "i32", "replica_groups = dense<0> : tensor<1x1xi64>").replace("@p", "@main");
    for (devices, name) in [
        (without(1), "copied all_reduce among 1"),
        (Fakes::new(Vendor::Cuda, 1), "library all_reduce among 1"),
    ] {
        let compiled = compiled(&alone, &devices);
        assert_eq!(compiled.fallbacks(), []);
        let inputs = inputs(compiled.program());
        assert_eq!(steps(&compiled, &inputs), [name]);
        let found = compiled.run(&inputs, &RunOptions::default()).unwrap().outputs;
        assert_eq!(found[0].as_slice::<i32>().unwrap(), [1, 2, 3, 4]);
    }
}

#[test]
fn a_failing_process_aborts_the_others() {
    let ty = format!("tensor<{UNLUCKY}xi32>");
    let function = all_reduce("add", &ty, "i32", "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>");
    let compiled = compiled(&parallel(&function, (2, 1), &[&ty], &[&ty]), &Fakes::new(Vendor::Cuda, 2));
    let inputs = inputs(compiled.program());
    let failed =
        |compiled: &GpuExecutable| compiled.run(&inputs, &RunOptions::default()).unwrap_err().to_string();
    let first = failed(&compiled);
    assert!(
        first.contains("replica 1, partition 0: cuda: end a group of calls failed with code 1"),
        "{first}"
    );
    let second = failed(&compiled);
    assert!(second.contains("another process failed; compile the program again"), "{second}");
}

#[test]
fn unsupported_operations_move_all_processes_to_the_reference() {
    let ty = "tensor<2xi32>";
    let groups = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>";
    let odd = all_reduce("subtract", ty, "i32", groups);
    let inside = format!(
        "func.func @p(%a: {ty}) -> {ty} {{
    %t = stablehlo.constant dense<true> : tensor<i1>
    %r = \"stablehlo.if\"(%t) ({{
      %s = \"stablehlo.all_gather\"(%a) <{{all_gather_dim = 0 : i64, {groups}}}> : ({ty}) -> tensor<4xi32>
      %h = stablehlo.slice %s [2:4] : (tensor<4xi32>) -> {ty}
      stablehlo.return %h : {ty}
    }}, {{
      stablehlo.return %a : {ty}
    }}) : (tensor<i1>) -> {ty}
    return %r : {ty}\n}}"
    );
    for (function, reason) in [
        (odd, "all_reduce: its computation is not a single reduction"),
        (inside, "stablehlo.if has a collective inside"),
    ] {
        let compiled = compiled(&parallel(&function, (2, 1), &[ty], &[ty]), &Fakes::new(Vendor::Cuda, 2));
        assert_eq!(said(&compiled), [format!("interpreter.run_parallel: {reason}")]);
        let inputs = inputs(compiled.program());
        let found = compiled.run(&inputs, &RunOptions::default()).unwrap().outputs;
        assert_eq!(found.len(), reference(compiled.program(), &inputs).len());
    }
}
