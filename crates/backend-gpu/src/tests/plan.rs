//! What a plan shows is what a GPU runs.

use std::sync::Arc;

use warpforge_codegen::emit;
use warpforge_diag::Source;
use warpforge_fusion::Graph;
use warpforge_fusion::pipeline::Plan;
use warpforge_runtime::{Device, Precision, Program, Target, Tier, Weights};
use warpforge_snakeburger::text;

use crate::compile::{CompileRequest, build, options};
use crate::fake;
use crate::lower;
use crate::program::CompiledProgram;
use crate::vendor::Vendor;

/// An encoder layer, as PyTorch exports it.
const MODEL: &str = include_str!("../../../../docs/images/encoder_layer.mlir");

/// The plan of the model, and what a fake GPU runs for it.
fn planned_and_compiled(vendor: Vendor, tier: Tier, precision: Precision) -> (Plan, CompiledProgram) {
    let module = text::parse(&Source::new("m", MODEL), &text::Options::default()).unwrap();
    let program = Program::new(Arc::new(module), "main", Weights::default()).unwrap();
    let device = match vendor {
        Vendor::Cuda => Device::Cuda(0),
        Vendor::Hip => Device::Hip(0),
    };
    let plan = lower::plan(&program, vendor, &Target::new(device, tier, precision)).unwrap();
    let gpu = fake::gpu(vendor).unwrap();
    let blas = Some(fake::blas(&gpu).unwrap());
    let request = CompileRequest { precision, blas, ..fake::request(&program, tier) };
    let compiled = build(&gpu, &request).unwrap_or_else(|_| panic!("{precision} does not compile"));
    (plan, compiled)
}

/// The nodes of a graph as text; lowering adds nodes behind them.
fn nodes(graph: &Graph, count: usize) -> Vec<String> {
    let node = |node: &warpforge_fusion::Node| {
        format!("{:?} {:?} {} {:?}", node.op, node.inputs, node.element, node.dims)
    };
    graph.nodes.iter().take(count).map(node).collect()
}

#[test]
fn steps_compute_the_clusters_of_the_plan() {
    for vendor in [Vendor::Cuda, Vendor::Hip] {
        let mut graphs = Vec::new();
        for precision in Precision::ALL {
            let (plan, compiled) = planned_and_compiled(vendor, Tier::Production, precision);
            let count = plan.graph.nodes.len();
            let planned = nodes(&plan.graph, count);
            assert_eq!(planned, nodes(&compiled.nodes, count), "{precision}");
            // A cluster may be several steps, such as a GEMM of the library and a kernel for its epilogue.
            for cluster in &plan.clusters.clusters {
                let own = compiled.steps.iter().filter(|step| cluster.nodes.contains(&step.node));
                let flops: u64 = own.map(|step| step.flops).sum();
                assert_eq!(flops, cluster.cost(&plan.graph).flops, "{precision}: {:?}", cluster.nodes);
            }
            let known = |step: &&crate::steps::PlannedStep| step.node.index() < count;
            for step in compiled.steps.iter().filter(known) {
                let owner = plan.clusters.clusters.iter().any(|cluster| cluster.nodes.contains(&step.node));
                assert!(owner, "{precision}: {} is of no cluster", step.step.name());
            }
            graphs.push(planned);
        }
        assert_eq!(graphs[0], graphs[1], "tf32 is rounded by the kernels");
        assert_ne!(graphs[0], graphs[2], "bf16 has conversions");
        assert_ne!(graphs[2], graphs[3], "f16 has others");
    }
}

#[test]
fn generated_kernels_are_those_of_the_clusters() {
    for tier in [Tier::Observable, Tier::Correctness] {
        for precision in Precision::ALL {
            let (plan, compiled) = planned_and_compiled(Vendor::Cuda, tier, precision);
            let options = options(&compiled.gpu, tier, precision).unwrap();
            let mut shown = 0;
            for cluster in &plan.clusters.clusters {
                let own = compiled.steps.iter().filter(|step| cluster.nodes.contains(&step.node));
                let ran: Vec<String> = own.map(|step| step.step.name()).collect();
                shown += ran.len();
                match emit(&plan.graph, cluster, &options) {
                    Ok(emitted) => {
                        let titles: Vec<String> =
                            emitted.kernels.into_iter().map(|kernel| kernel.title).collect();
                        assert_eq!(titles, ran, "{tier} {precision}");
                    }
                    // Attention of f32 has no kernel in one piece; its parts have.
                    Err(refused) => {
                        assert_eq!(refused.what, "attention in one piece");
                        assert_eq!(ran.len(), 3, "{tier} {precision}: {ran:?}");
                    }
                }
            }
            assert_eq!(shown, compiled.steps.len(), "{tier} {precision}");
        }
    }
}
