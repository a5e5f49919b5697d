//! Collectives of a single process, and grids of processes on one GPU.

use std::sync::Arc;

use libtest_mimic::Trial;
use warpforge_backend_gpu::Gpus;
use warpforge_runtime::{Backend, RunOptions, Tier};

use crate::NEEDS_GPU;
use crate::case::{Case, inputs};

const ALONE: &str = "replica_groups = dense<0> : tensor<1x1xi64>";

pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (kind, element) in [
        ("add", "f32"),
        ("multiply", "bf16"),
        ("maximum", "f32"),
        ("minimum", "i32"),
        ("and", "i1"),
        ("or", "i32"),
        ("add", "i16"),
    ] {
        let case = Case::new(format!("all_reduce_{kind}_{element}"), all_reduce(kind, element, ALONE), 1e-6);
        all.push(case.with_step("all_reduce among 1"));
    }
    let ty = "tensor<6x37xf32>";
    let sum = "({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    })";
    for (name, line) in [
        ("all_gather", format!("\"stablehlo.all_gather\"(%b) <{{all_gather_dim = 1 : i64, {ALONE}}}>")),
        (
            "reduce_scatter",
            format!("\"stablehlo.reduce_scatter\"(%b) <{{scatter_dimension = 1 : i64, {ALONE}}}> {sum}"),
        ),
        (
            "all_to_all",
            format!(
                "\"stablehlo.all_to_all\"(%b) <{{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 1 : i64, {ALONE}}}>"
            ),
        ),
        ("collective_broadcast", format!("\"stablehlo.collective_broadcast\"(%b) <{{{ALONE}}}>")),
        (
            "collective_permute",
            "\"stablehlo.collective_permute\"(%b) <{source_target_pairs = dense<0> : tensor<1x2xi64>}>"
                .to_owned(),
        ),
    ] {
        // Kernels before and after: the exchange is between them in the recorded work.
        let body = format!(
            "(%a: {ty}) -> {ty} {{
    %b = stablehlo.tanh %a : {ty}
    %c = {line} : ({ty}) -> {ty}
    %d = stablehlo.multiply %c, %a : {ty}
    return %d : {ty}\n}}"
        );
        let alone = Case::new(name, format!("func.func @main{body}"), 1e-6);
        all.push(alone.with_step("among 1"));
        let text = format!(
            "func.func @p{body}\nfunc.func @main(%a: {ty}) -> {ty} {{
    %r = \"interpreter.run_parallel\"(%a) {{programs = [[@p]]}} : ({ty}) -> {ty}
    return %r : {ty}\n}}"
        );
        all.push(Case::new(format!("{name}_in_a_process"), text, 1e-6).with_step("1 x 1 processes on 1 GPU"));
    }
    let who = "func.func @main(%a: tensor<ui32>) -> tensor<ui32> {
    %r = stablehlo.replica_id : tensor<ui32>
    %p = stablehlo.partition_id : tensor<ui32>
    %s = stablehlo.add %r, %p : tensor<ui32>
    %t = stablehlo.add %s, %a : tensor<ui32>
    return %t : tensor<ui32>\n}";
    all.push(Case::new("who", who, 0.0));
    all.into_iter().map(Case::unseen).collect()
}

fn all_reduce(kind: &str, element: &str, groups: &str) -> String {
    let ty = format!("tensor<5x33x{element}>");
    format!(
        "func.func @main(%a: {ty}) -> {ty} {{
    %r = \"stablehlo.all_reduce\"(%a) <{{{groups}}}> ({{
    ^bb0(%x: tensor<{element}>, %y: tensor<{element}>):
      %s = stablehlo.{kind} %x, %y : tensor<{element}>
      stablehlo.return %s : tensor<{element}>
    }}) : ({ty}) -> {ty}
    return %r : {ty}\n}}"
    )
}

/// More processes than GPUs: the reference runs them and the counts are reported.
pub(crate) fn too_few(gpus: &Arc<Gpus>) -> Trial {
    let gpus = Arc::clone(gpus);
    let test = move || {
        let there = gpus.devices().len();
        let count = there + 1;
        let groups: Vec<String> = (0..count).map(|at| at.to_string()).collect();
        let groups = format!("replica_groups = dense<[[{}]]> : tensor<1x{count}xi64>", groups.join(", "));
        let function = all_reduce("add", "f32", &groups).replace("@main", "@p");
        let ty = "tensor<5x33xf32>";
        let (types, rows) = (vec![ty; count].join(", "), vec!["[@p]"; count].join(", "));
        let results: Vec<String> = (0..count).map(|at| format!("%r#{at}")).collect();
        let text = format!(
            "{function}\nfunc.func @main(%a: {ty}) -> ({types}) {{
    %r:{count} = \"interpreter.run_parallel\"({}) {{programs = [{rows}]}} : ({types}) -> ({types})
    return {} : {types}\n}}",
            vec!["%a"; count].join(", "),
            results.join(", "),
        );
        let executable = Case::new("too_few", text, 0.0).compile(&gpus, Tier::Production)?;
        let is = if there == 1 { "is" } else { "are" };
        let expected = format!("interpreter.run_parallel: needs {count} GPUs, {there} {is} there");
        let said: Vec<String> = executable.fallbacks().iter().map(ToString::to_string).collect();
        if said != [expected.clone()] {
            return Err(format!("{said:?}, {expected} expected").into());
        }
        let outcome = executable.run(&inputs(executable.program()), &RunOptions::default())?;
        if outcome.outputs.len() == count { Ok(()) } else { Err("results are missing".into()) }
    };
    Trial::test("more_processes_than_gpus", test).with_kind(NEEDS_GPU)
}
