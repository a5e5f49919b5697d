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

/// The weight `%f{of}` of 512x512 from `%p{of}`, two codes of 4 bits a byte, the table `%t` of 16 numbers and a scale `%s{of}` for 64 codes.
fn restored(of: usize) -> String {
    format!(
        "%w{of} = stablehlo.convert %p{of} : (tensor<131072xui8>) -> tensor<131072xi32>
    %a{of} = stablehlo.and %w{of}, %low : tensor<131072xi32>
    %h{of} = stablehlo.shift_right_logical %w{of}, %four : tensor<131072xi32>
    %hc{of} = stablehlo.reshape %h{of} : (tensor<131072xi32>) -> tensor<131072x1xi32>
    %ac{of} = stablehlo.reshape %a{of} : (tensor<131072xi32>) -> tensor<131072x1xi32>
    %c{of} = stablehlo.concatenate %hc{of}, %ac{of}, dim = 1 : (tensor<131072x1xi32>, tensor<131072x1xi32>) -> tensor<131072x2xi32>
    %k{of} = stablehlo.reshape %c{of} : (tensor<131072x2xi32>) -> tensor<262144x1xi32>
    %r{of} = \"stablehlo.gather\"(%t, %k{of}) <{{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}}> : (tensor<16xf32>, tensor<262144x1xi32>) -> tensor<262144xf32>
    %b{of} = stablehlo.reshape %r{of} : (tensor<262144xf32>) -> tensor<4096x64xf32>
    %g{of} = stablehlo.broadcast_in_dim %s{of}, dims = [0] : (tensor<4096xf32>) -> tensor<4096x64xf32>
    %m{of} = stablehlo.multiply %b{of}, %g{of} : tensor<4096x64xf32>
    %f{of} = stablehlo.reshape %m{of} : (tensor<4096x64xf32>) -> tensor<512x512xf32>"
    )
}

/// Three products one after the other; the first and the last have the same weight, one of them transposed.
fn model() -> String {
    let product = |to: &str, by: &str, contract: usize| {
        let types = "(tensor<256x512xf32>, tensor<512x512xf32>) -> tensor<256x512xf32>";
        format!("stablehlo.dot_general {to}, {by}, contracting_dims = [1] x [{contract}] : {types}")
    };
    format!(
        "func.func @main(%x: tensor<256x512xf32>, %t: tensor<16xf32>, %p0: tensor<131072xui8>, %s0: tensor<4096xf32>, %p1: tensor<131072xui8>, %s1: tensor<4096xf32>) -> tensor<256x512xf32> {{
    %low = stablehlo.constant dense<15> : tensor<131072xi32>
    %four = stablehlo.constant dense<4> : tensor<131072xi32>
    {}
    {}
    %y = {}
    %e = stablehlo.tanh %y : tensor<256x512xf32>
    %z = {}
    %u = stablehlo.tanh %z : tensor<256x512xf32>
    %q = {}
    return %q : tensor<256x512xf32>
}}",
        restored(0),
        restored(1),
        product("%x", "%f0", 1),
        product("%e", "%f1", 0),
        product("%u", "%f0", 0)
    )
}

fn planned() -> Plan {
    let module = text::parse(&Source::new("m", model()), &text::Options::default()).unwrap();
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
                    body.loads.iter().find(|load| matches!(graph.node(load.value).op, Op::Argument(2 | 4)));
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
