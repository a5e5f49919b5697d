//! Products and convolutions, with what is done to their results.

mod conv;
mod epilogue;
pub(crate) mod geometry;
mod hopper;
mod naive;
mod staged;
mod tensor;
pub(crate) mod tile;
mod tiled;
mod windows;

pub(crate) use epilogue::{Cells, Store};
pub(crate) use tensor::store_pair;

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Cluster, Contraction};
use warpforge_tensor::{ElementType, FloatType};

use crate::kernel::{Emitted, Unsupported};
use crate::options::{Dialect, Effort, Options, Products};
use geometry::Geometry;

/// The kernels of a matrix product.
pub(crate) fn dot(
    graph: &Graph,
    cluster: &Cluster,
    product: &Contraction,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    if graph.node(cluster.output).is_empty() {
        return Ok(Emitted::default());
    }
    if options.effort == Effort::Fast {
        let geometry = Geometry::new(graph, product)?;
        let narrow = tensor::narrow(&geometry, options.products).filter(|_| options.dialect == Dialect::Cuda);
        if let Some(ty) = narrow.filter(|_| sums_in_f32(graph, product)) {
            if hopper::takes(&geometry, options) {
                return hopper::emit(graph, cluster, product, &geometry, ty, options);
            }
            return tensor::emit(graph, cluster, product, &geometry, ty, options);
        }
        if tiled::takes(graph, product, &geometry) {
            return tiled::emit(graph, cluster, product, &geometry, options);
        }
    }
    naive::emit(graph, cluster, product, options)
}

fn sums_in_f32(graph: &Graph, product: &Contraction) -> bool {
    let element = graph.node(product.node).element;
    matches!(element, ElementType::Float(FloatType::F32 | FloatType::F16 | FloatType::Bf16))
}

/// The kernels of a convolution.
pub(crate) fn conv(
    graph: &Graph,
    cluster: &Cluster,
    product: &Contraction,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    if graph.node(cluster.output).is_empty() {
        return Ok(Emitted::default());
    }
    if options.effort == Effort::Fast && windows::takes(graph, product) {
        return windows::emit(graph, cluster, product, options);
    }
    conv::emit(graph, cluster, product, options)
}

/// An operand's number as a product takes it.
fn taken(element: ElementType, products: Products, value: String) -> String {
    match (element, products) {
        (ElementType::Float(FloatType::F32), Products::Tf32) => format!("wf_tf32({value})"),
        (ElementType::Float(FloatType::F32), Products::Bf16) => format!("wf_round<wf_bf16>({value})"),
        (ElementType::Float(FloatType::F32), Products::F16) => format!("wf_round<wf_f16>({value})"),
        _ => value,
    }
}
