use std::sync::Arc;

use warpforge::{CompileOptions, Model};
use warpforge_fusion::cluster::Kind;

use super::*;
use crate::profile::Operation;
use crate::profile::testing::{linear, profile};
use crate::verdict::Verdict;

const MLP: &str = "func.func @main(%x: tensor<512x1024xf32>, \
    %w: tensor<1024x1024xf32> {warpforge.name = \"w\", warpforge.role = \"parameter\"}) -> tensor<512x1024xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x1024xf32>, tensor<1024x1024xf32>) -> tensor<512x1024xf32>
    %z = stablehlo.constant dense<0.0> : tensor<512x1024xf32>
    %1 = stablehlo.maximum %0, %z : tensor<512x1024xf32>
    func.return %1 : tensor<512x1024xf32>
}";

fn model(text: &str) -> Model {
    let mut model = Model::from_text("m.mlir", text).unwrap();
    let weights = warpforge::Tensor::from_slice(&[1024, 1024], &vec![0.5f32; 1 << 20]).unwrap();
    model.bind_weights(&[("w".to_owned(), weights)].into()).unwrap();
    model
}

#[test]
fn a_matmul_of_the_sweep_takes_what_it_took() {
    let profile = profile();
    let cost = CostModel::new(&profile, "cpu", "p.json").unwrap();
    let plan = model(MLP).plan(&CompileOptions::default()).unwrap();
    let (ms, kernels) = cost.model(&plan);
    assert_eq!(kernels.len(), 1);
    let measured = profile.operations[0].ms;
    assert!((ms - measured).abs() < 0.01 * measured, "{ms} {measured}");
    assert_eq!(kernels[0].bound, Bound::Arithmetic("f32".to_owned()));
    assert!(kernels[0].distance.unwrap() < 1e-9);
}

#[test]
fn between_sizes_the_rate_is_between_and_work_counts() {
    let mut profile = profile();
    profile.operations = [32, 128, 512, 2048].map(|m| linear(m, 1024, 1024, 50.0)).to_vec();
    let cost = CostModel::new(&profile, "cpu", "p.json").unwrap();
    let plan = model(&MLP.replace("512x1024", "300x1024")).plan(&CompileOptions::default()).unwrap();
    let (ms, _) = cost.model(&plan);
    let expected = 2.0 * 300.0 * 1024.0 * 1024.0 / 50e9 * 1e3;
    assert!((ms / expected - 1.0).abs() < 0.02, "{ms} {expected}");
}

#[test]
fn what_was_not_measured_is_bounded_by_the_roofline() {
    let cost = CostModel::new(&profile(), "cpu", "p.json").unwrap();
    let text = "func.func @main(%x: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
        %0 = stablehlo.add %x, %x : tensor<4096x4096xf32>
        func.return %0 : tensor<4096x4096xf32>
    }";
    let plan = Model::from_text("m.mlir", text).unwrap().plan(&CompileOptions::default()).unwrap();
    let (ms, kernels) = cost.model(&plan);
    assert_eq!((&kernels[0].bound, kernels[0].distance), (&Bound::Memory("DRAM".to_owned()), None));
    // 128 MiB at 10 GB/s.
    assert!((ms - 13.4).abs() < 0.1, "{ms}");
}

#[test]
fn a_device_that_was_not_measured_is_refused() {
    let error = CostModel::new(&profile(), "cuda:0", "p.json").unwrap_err().to_string();
    assert!(error.contains("nothing about cuda:0; it is about cpu"), "{error}");
}

#[test]
fn a_fusion_that_was_slower_is_not_made_and_the_plan_is_the_same_each_time() {
    let mut profile = profile();
    profile.fusion_profiles[0].fusion_pattern = "Linear_Bias".to_owned();
    let plans = |profile: &Profile| {
        let cost = CostModel::new(profile, "cpu", "p.json").unwrap();
        let options = CompileOptions { machine: Some(Arc::new(cost)), ..CompileOptions::default() };
        let plan = model(MLP).plan(&options).unwrap();
        plan.clusters.clusters.iter().map(|cluster| matches!(cluster.kind, Kind::Loop(_))).collect::<Vec<_>>()
    };
    assert_eq!(plans(&profile), [false]);
    profile.fusion_profiles[0].verdict = Verdict::Slower;
    assert_eq!(plans(&profile), [false, true]);
    assert_eq!(plans(&profile), plans(&profile));
    // Too far away to say anything.
    profile.fusion_profiles[0].input_shape = vec![4, 1024, 1024];
    assert_eq!(plans(&profile), [false]);
}

#[test]
fn single_elements_are_gathered_at_their_own_rate() {
    let mut profile = profile();
    let operation = |op: &str, gbps: f64| Operation {
        op: op.to_owned(),
        shape: vec![1024, 1024],
        bytes: 12 << 20,
        ms: f64::from(12 << 20) / gbps / 1e6,
        ..linear(1, 1, 1, 1.0)
    };
    profile.operations.extend([operation("gather", 10.0), operation("gather_elements", 0.5)]);
    let cost = CostModel::new(&profile, "cpu", "p.json").unwrap();
    let predicted = |table: &str, indices: &str, dims: &str, slice: &str| {
        let text = format!(
            "func.func @main(%t: tensor<{table}xf32>, %i: tensor<{indices}xi64>) -> tensor<1024x1024xf32> {{
            %0 = \"stablehlo.gather\"(%t, %i) <{{dimension_numbers = #stablehlo.gather<{dims}>, \
            indices_are_sorted = false, slice_sizes = array<i64: {slice}>}}> : \
            (tensor<{table}xf32>, tensor<{indices}xi64>) -> tensor<1024x1024xf32>
            func.return %0 : tensor<1024x1024xf32>
        }}"
        );
        let plan = Model::from_text("m.mlir", text).unwrap().plan(&CompileOptions::default()).unwrap();
        cost.model(&plan).0
    };
    let elements = "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2";
    let elements = predicted("8192", "1024x1024", elements, "1");
    assert!(elements > 20.0, "{elements}");
    let rows = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1";
    let rows = predicted("8192x1024", "1024", rows, "1, 1024");
    assert!(rows < 2.0, "{rows}");
}

#[test]
fn outputs_are_computed_in_whole_vectors() {
    let mut profile = profile();
    profile.operations = vec![linear(196, 768, 384, 50.0)];
    let cost = CostModel::new(&profile, "cpu", "p.json").unwrap();
    let narrow = |n: usize| {
        let text = MLP.replace("1024x1024", &format!("1024x{n}"));
        let text = text.replace("-> tensor<512x1024xf32>", &format!("-> tensor<512x{n}xf32>"));
        let text =
            text.replace("dense<0.0> : tensor<512x1024xf32>", &format!("dense<0.0> : tensor<512x{n}xf32>"));
        let text = text.replace("%z : tensor<512x1024xf32>", &format!("%z : tensor<512x{n}xf32>"));
        let text = text.replace("%1 : tensor<512x1024xf32>", &format!("%1 : tensor<512x{n}xf32>"));
        let mut model = Model::from_text("m.mlir", text).unwrap();
        let weights = warpforge::Tensor::from_slice(&[1024, n], &vec![0.5f32; 1024 * n]).unwrap();
        model.bind_weights(&[("w".to_owned(), weights)].into()).unwrap();
        let plan = model.plan(&CompileOptions::default()).unwrap();
        cost.work(&plan.graph, &plan.clusters.clusters[0]).contraction_flops
    };
    assert_eq!(narrow(2), narrow(16));
    assert_eq!(2.0 * narrow(16), narrow(17));
}
