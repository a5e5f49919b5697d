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
fn a_profile_that_is_not_complete_is_refused() {
    let begun = Profile { complete: false, ..profile() };
    let error = CostModel::new(&begun, "cpu", "p.json").unwrap_err().to_string();
    assert!(error.contains("p.json") && error.contains("is not complete"), "{error}");
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

/// A convolution in groups of so many channels, with as many outputs.
fn grouped(channels: usize, width: usize) -> Model {
    let (x, w) = (format!("1x28x28x{channels}xf32"), format!("3x3x{width}x{channels}xf32"));
    let text = format!(
        "func.func @main(%x: tensor<{x}>, %w: tensor<{w}>) -> tensor<{x}> {{
        %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
            window = {{stride = [1, 1], pad = [[1, 1], [1, 1]]}}
            {{batch_group_count = 1 : i64, feature_group_count = {} : i64}} : (tensor<{x}>, tensor<{w}>) -> tensor<{x}>
        func.return %0 : tensor<{x}>
    }}",
        channels / width
    );
    Model::from_text("m.mlir", &text).unwrap()
}

#[test]
fn narrow_groups_take_what_they_took_and_more_of_them_as_much_more() {
    let mut profile = profile();
    let ms = 0.24;
    profile.operations = vec![Operation {
        op: "conv2d".to_owned(),
        shape: vec![1, 64, 28, 28, 64, 3, 1, 8],
        ms,
        ..linear(1, 1, 1, 1.0)
    }];
    let cost = CostModel::new(&profile, "cpu", "p.json").unwrap();
    let predicted = |channels| {
        let plan = grouped(channels, 8).plan(&CompileOptions::default()).unwrap();
        cost.model(&plan).0
    };
    assert!((predicted(64) / ms - 1.0).abs() < 0.05, "{}", predicted(64));
    assert!((predicted(128) / (2.0 * ms) - 1.0).abs() < 0.05, "{}", predicted(128));
}

#[test]
fn what_another_thread_wrote_takes_longer_while_it_is_in_caches() {
    let text = |rows: usize| {
        let ty = format!("tensor<{rows}x1024xf32>");
        format!(
            "func.func @main(%x: {ty}, %y: {ty}) -> ({ty}, {ty}) {{
            %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({ty}, tensor<1024x1024xf32>) -> {ty}
            %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : ({ty}, tensor<1024x1024xf32>) -> {ty}
            func.return %0, %1 : {ty}, {ty}
        }}"
        )
        .replace(
            "(%x:",
            "(%w: tensor<1024x1024xf32> {warpforge.name = \"w\", warpforge.role = \"parameter\"}, %x:",
        )
    };
    let mut without = profile();
    assert_eq!(without.bandwidth[1].level, "L2");
    // The L2 caches of both threads hold 16 MiB then.
    without.bandwidth[1].working_set_bytes = 4 << 20;
    let mut with = without.clone();
    let mut exchange = with.bandwidth[1].clone();
    (exchange.access, exchange.gbps) = ("exchange".to_owned(), 20.0);
    with.bandwidth.push(exchange);
    let more = |rows: usize| {
        let plan = model(&text(rows)).plan(&CompileOptions::default()).unwrap();
        let kernels = |profile| CostModel::new(profile, "cpu", "p.json").unwrap().model(&plan).1;
        let (before, after) = (kernels(&without), kernels(&with));
        assert_eq!(before[0], after[0], "arguments were written by nobody in the run");
        after[1].ms - before[1].ms
    };
    // Half of 512 KiB at 20 instead of 100 GB/s.
    let expected = 262_144.0 * (1.0 / 20e9 - 1.0 / 100e9) * 1e3;
    assert!((more(128) / expected - 1.0).abs() < 1e-6, "{} {expected}", more(128));
    assert_eq!(more(4096), 0.0, "16 MiB are not in L2 any more");
}

#[test]
fn sums_across_rows_have_a_rate_of_their_own() {
    let stream = |op: &str, gbps: f64| {
        let bytes = 4 << 20;
        let ms = bytes as f64 / gbps / 1e6;
        Operation {
            op: op.to_owned(),
            shape: vec![1024, 1024],
            flops: 1 << 20,
            bytes,
            ms,
            ..linear(8, 8, 8, 1.0)
        }
    };
    let mut profile = profile();
    (profile.overheads[0].us, profile.operations) = (1e-6, vec![stream("layer_norm", 50.0)]);
    let sum = |axis: usize| {
        let text = format!(
            "func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024xf32> {{
                %z = stablehlo.constant dense<0.0> : tensor<f32>
                %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [{axis}] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
                func.return %0 : tensor<1024xf32>
            }}"
        );
        Model::from_text("m.mlir", text).unwrap().plan(&CompileOptions::default()).unwrap()
    };
    let ms = |profile: &Profile, axis| CostModel::new(profile, "cpu", "p.json").unwrap().model(&sum(axis)).0;
    // Older profiles know rows alone.
    assert!((ms(&profile, 0) / ms(&profile, 1) - 1.0).abs() < 0.01);
    profile.operations.push(stream("column_sum", 5.0));
    let (across, along) = (ms(&profile, 0), ms(&profile, 1));
    assert!((across / along - 10.0).abs() < 0.1, "{across} {along}");
}

#[test]
fn streams_of_16_bits_have_a_rate_of_their_own_and_that_of_32_where_they_were_not_measured() {
    let add = |dtype: &str, gbps: f64| {
        let bytes = 12 << 20;
        let ms = bytes as f64 / gbps / 1e6;
        Operation {
            op: "add".to_owned(),
            dtype: dtype.to_owned(),
            shape: vec![1024, 1024],
            bytes,
            ms,
            ..linear(8, 8, 8, 1.0)
        }
    };
    let text = "func.func @main(%x: tensor<2048x1024xbf16>) -> tensor<2048x1024xbf16> {
        %0 = stablehlo.add %x, %x : tensor<2048x1024xbf16>
        func.return %0 : tensor<2048x1024xbf16>
    }";
    let plan = Model::from_text("m.mlir", text).unwrap().plan(&CompileOptions::default()).unwrap();
    let mut profile = profile();
    (profile.overheads[0].us, profile.operations) = (1e-6, vec![add("f32", 40.0)]);
    let ms = |profile: &Profile| CostModel::new(profile, "cpu", "p.json").unwrap().model(&plan).0;
    let wide = ms(&profile);
    profile.operations.push(add("bf16", 10.0));
    assert!((ms(&profile) / wide - 4.0).abs() < 0.01, "{} {wide}", ms(&profile));
}

#[test]
fn kernels_are_held_against_the_limits_of_their_threads_and_of_what_they_compute_in() {
    let mut profile = profile();
    let of_one = profile.peaks[1].clone();
    profile.peaks.push(crate::profile::Peak { threads: 1, gops: 45.0, ..of_one });
    let of_one = profile.bandwidth[2].clone();
    profile.bandwidth.push(crate::profile::Bandwidth { threads: 1, gbps: 5.0, ..of_one });
    let cost = CostModel::new(&profile, "cpu", "p.json").unwrap();
    let least = |threads| cost.bound(threads, "f32", 90_000_000_000, 1).map(|(_, least)| least);
    assert_eq!((least(2), least(1), least(3)), (Some(1.0), Some(2.0), None));

    let narrow = MLP.replace("xf32", "xbf16");
    let mut model = Model::from_text("m.mlir", narrow).unwrap();
    let weights = warpforge::Tensor::from_bytes(
        ElementType::BF16,
        warpforge::Shape::new(vec![1024, 1024]).unwrap(),
        &[0; 2 << 20],
    );
    model.bind_weights(&[("w".to_owned(), weights.unwrap())].into()).unwrap();
    let plan = model.plan(&CompileOptions::default()).unwrap();
    let kernel = plan.clusters.clusters[0].cost(&plan.graph);
    assert_eq!(cost.arithmetic(&plan).get(&(kernel.flops, kernel.bytes)), Some(&"bf16"));
}
