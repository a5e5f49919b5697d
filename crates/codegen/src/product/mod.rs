//! Products and convolutions, with what is done to their results.

mod conv;
mod epilogue;
pub(crate) mod geometry;
mod naive;

pub(crate) use epilogue::{Cells, Store};

use warpforge_fusion::Graph;
use warpforge_fusion::cluster::{Cluster, Product};
use warpforge_tensor::{ElementType, FloatType};

use crate::kernel::{Emitted, Unsupported};
use crate::options::{Options, Products};

/// The kernels of a matrix product.
pub(crate) fn dot(
    graph: &Graph,
    cluster: &Cluster,
    product: &Product,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    if graph.node(cluster.output).is_empty() {
        return Ok(Emitted::default());
    }
    naive::emit(graph, cluster, product, options)
}

/// The kernels of a convolution.
pub(crate) fn conv(
    graph: &Graph,
    cluster: &Cluster,
    product: &Product,
    options: &Options,
) -> Result<Emitted, Unsupported> {
    if graph.node(cluster.output).is_empty() {
        return Ok(Emitted::default());
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
