use std::sync::Arc;

use warpforge::{CompileOptions, Model};
use warpforge_fusion::cluster::Kind;

use super::*;
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
