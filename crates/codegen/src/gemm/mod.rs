//! GEMMs and convolutions with their epilogues.

mod conv_naive;
mod epilogue;
mod few_rows;
pub(crate) mod geometry;
mod hopper;
mod implicit;
mod naive;
mod rounding;
mod staged;
mod tensor_core;
pub(crate) mod tile;
mod tiled;

pub(crate) use epilogue::{EpilogueLoop, Store};
pub(crate) use tensor_core::store_pair;

use warpforge_fusion::cluster::Contraction;
use warpforge_fusion::{Graph, Op};
use warpforge_tensor::{ElementType, FloatType};

use crate::kernel::{Emitted, Request, Unsupported};
use crate::options::{ComputePrecision, Dialect, Effort, Options};
use crate::types::tensor_core_type;
use geometry::Geometry;

/// The kernels of a GEMM.
pub(crate) fn dot(request: Request<'_>, contraction: &Contraction) -> Result<Emitted, Unsupported> {
    let Request { graph, cluster, options } = request;
    if graph.node(cluster.output).is_empty() {
        return Ok(Emitted::default());
    }
    if options.compute_precision != ComputePrecision::Model
        && matches!(&graph.node(contraction.node).op, Op::Dot(dot) if dot.keeps_precision)
    {
        let options = Options { compute_precision: ComputePrecision::Model, ..options.clone() };
        return dot(Request { options: &options, ..request }, contraction);
    }
    if let Some(weights) = &contraction.weights {
        return few_rows::emit(request, contraction, weights);
    }
    if options.effort == Effort::Fast {
        let geometry = Geometry::new(graph, contraction)?;
        let narrow = tensor_core_type(&[geometry.lhs.element, geometry.rhs.element])
            .filter(|_| options.dialect == Dialect::Cuda);
        if let Some(ty) = narrow.filter(|_| accumulates_in_f32(graph, contraction)) {
            if hopper::supports(&geometry, options) {
                return hopper::emit(request, contraction, &geometry, ty);
            }
            return tensor_core::emit(request, contraction, &geometry, ty);
        }
        if tiled::supports(graph, contraction, &geometry) {
            return tiled::emit(request, contraction, &geometry);
        }
    }
    naive::emit(request, contraction)
}

fn accumulates_in_f32(graph: &Graph, contraction: &Contraction) -> bool {
    let element = graph.node(contraction.node).element;
    matches!(element, ElementType::Float(FloatType::F32 | FloatType::F16 | FloatType::Bf16))
}

/// The kernels of a convolution.
pub(crate) fn conv(request: Request<'_>, contraction: &Contraction) -> Result<Emitted, Unsupported> {
    let Request { graph, cluster, options } = request;
    if graph.node(cluster.output).is_empty() {
        return Ok(Emitted::default());
    }
    if options.effort == Effort::Fast && implicit::supports(graph, contraction) {
        return implicit::emit(request, contraction);
    }
    conv_naive::emit(request, contraction)
}
