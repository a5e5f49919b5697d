//! Weights that a model restores from codes of 4 bits.

use std::sync::Arc;

use warpforge_diag::Source;
use warpforge_fusion::Op;
use warpforge_fusion::cluster::Kind;
use warpforge_fusion::pipeline::Plan;
use warpforge_runtime::{Device, Precision, Program, Target, Tier, Weights};
use warpforge_snakeburger::text;

use crate::lower;
use crate::vendor::Vendor;

/// Two weights, the first of which two products multiply by: two codes a byte, a table of 16 numbers, a scale for 64 codes.
const MODEL: &str = "func.func @main(%x: tensor<256x512xf32>, %p: tensor<131072xui8>, %t: tensor<16xf32>, %s: tensor<4096xf32>, %p2: tensor<131072xui8>, %s2: tensor<4096xf32>) -> tensor<256x512xf32> {
    %low = stablehlo.constant dense<15> : tensor<131072xi32>
    %four = stablehlo.constant dense<4> : tensor<131072xi32>
    %w = stablehlo.convert %p : (tensor<131072xui8>) -> tensor<131072xi32>
    %a = stablehlo.and %w, %low : tensor<131072xi32>
    %h = stablehlo.shift_right_logical %w, %four : tensor<131072xi32>
    %hc = stablehlo.reshape %h : (tensor<131072xi32>) -> tensor<131072x1xi32>
    %ac = stablehlo.reshape %a : (tensor<131072xi32>) -> tensor<131072x1xi32>
    %c = stablehlo.concatenate %hc, %ac, dim = 1 : (tensor<131072x1xi32>, tensor<131072x1xi32>) -> tensor<131072x2xi32>
    %k = stablehlo.reshape %c : (tensor<131072x2xi32>) -> tensor<262144x1xi32>
    %r = \"stablehlo.gather\"(%t, %k) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<16xf32>, tensor<262144x1xi32>) -> tensor<262144xf32>
    %b = stablehlo.reshape %r : (tensor<262144xf32>) -> tensor<4096x64xf32>
    %g = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4096xf32>) -> tensor<4096x64xf32>
    %m = stablehlo.multiply %b, %g : tensor<4096x64xf32>
    %f = stablehlo.reshape %m : (tensor<4096x64xf32>) -> tensor<512x512xf32>
    %w2 = stablehlo.convert %p2 : (tensor<131072xui8>) -> tensor<131072xi32>
    %a2 = stablehlo.and %w2, %low : tensor<131072xi32>
    %h2 = stablehlo.shift_right_logical %w2, %four : tensor<131072xi32>
    %hc2 = stablehlo.reshape %h2 : (tensor<131072xi32>) -> tensor<131072x1xi32>
    %ac2 = stablehlo.reshape %a2 : (tensor<131072xi32>) -> tensor<131072x1xi32>
    %c2 = stablehlo.concatenate %hc2, %ac2, dim = 1 : (tensor<131072x1xi32>, tensor<131072x1xi32>) -> tensor<131072x2xi32>
    %k2 = stablehlo.reshape %c2 : (tensor<131072x2xi32>) -> tensor<262144x1xi32>
    %r2 = \"stablehlo.gather\"(%t, %k2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<16xf32>, tensor<262144x1xi32>) -> tensor<262144xf32>
    %b2 = stablehlo.reshape %r2 : (tensor<262144xf32>) -> tensor<4096x64xf32>
    %g2 = stablehlo.broadcast_in_dim %s2, dims = [0] : (tensor<4096xf32>) -> tensor<4096x64xf32>
    %m2 = stablehlo.multiply %b2, %g2 : tensor<4096x64xf32>
    %f2 = stablehlo.reshape %m2 : (tensor<4096x64xf32>) -> tensor<512x512xf32>
    %y = stablehlo.dot_general %x, %f, contracting_dims = [1] x [1] : (tensor<256x512xf32>, tensor<512x512xf32>) -> tensor<256x512xf32>
    %e = stablehlo.tanh %y : tensor<256x512xf32>
    %z = stablehlo.dot_general %e, %f2, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x512xf32>) -> tensor<256x512xf32>
    %u = stablehlo.tanh %z : tensor<256x512xf32>
    %q = stablehlo.dot_general %u, %f, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x512xf32>) -> tensor<256x512xf32>
    return %q : tensor<256x512xf32>
}";

fn planned() -> Plan {
    let module = text::parse(&Source::new("m", MODEL), &text::Options::default()).unwrap();
    let program = Program::new(Arc::new(module), "main", Weights::default()).unwrap();
    lower::plan(&program, Vendor::Cuda, &Target::new(Device::Cuda(0), Tier::Production, Precision::Bf16))
        .unwrap()
}

#[test]
fn each_product_has_its_weight_from_one_loop_over_the_codes() {
    let Plan { graph, clusters, .. } = planned();
    let mut restored = Vec::new();
    for cluster in &clusters.clusters {
        match &cluster.kind {
            Kind::Loop(body) if graph.node(cluster.output).len() == 512 * 512 => {
                let codes =
                    body.loads.iter().find(|load| matches!(graph.node(load.value).op, Op::Argument(1 | 4)));
                assert!(codes.is_some(), "{:?}", body.loads);
                restored.push(cluster.output);
            }
            Kind::Dot(product) => {
                // The weight is the loop's before it.
                assert_eq!(Some(&product.operands[1].value), restored.last());
            }
            _ => assert_ne!(graph.node(cluster.output).len(), 512 * 512),
        }
    }
    assert_eq!(restored.len(), 3);
}
