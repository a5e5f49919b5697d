//! A product by the vendor's library.

use super::{Layout, Step};
use crate::driver::Stream;
use crate::error::Result;
use crate::lower::Call;
use crate::products::{Activation, Library, Places, Runs};

/// A product, in as many calls as its batches need.
pub(crate) struct Multiply {
    plans: Vec<Box<dyn Runs>>,
    name: String,
}

impl Multiply {
    /// Describes the product, and measures which algorithm is the best.
    pub(crate) fn new(call: &Call, library: &Library, layout: &Layout, stream: &Stream) -> Result<Self> {
        let offset = |view: &warpforge_fusion::View| {
            u64::try_from(view.offset).unwrap_or(0) * call.product.lhs.element.byte_width() as u64
        };
        let of = |id: Option<warpforge_fusion::NodeId>| id.map_or(0, |id| layout.address(id));
        let plans = call.parts.iter().map(|part| {
            let residual = of(call.residual);
            let places = Places {
                lhs: layout.address(call.lhs.value) + offset(&call.lhs.view) + part.lhs as u64,
                rhs: layout.address(call.rhs.value) + offset(&call.rhs.view) + part.rhs as u64,
                out: layout.address(call.output) + part.out as u64,
                bias: of(call.bias.or(call.sums)),
                residual: if residual == 0 { 0 } else { residual + part.out as u64 },
                beside: of(call.beside),
                workspace: layout.workspace.address(),
            };
            library.plan(&call.product, places, stream)
        });
        Ok(Self { plans: plans.collect::<Result<_>>()?, name: name(call) })
    }
}

fn name(call: &Call) -> String {
    let product = &call.product;
    let calls = call.parts.len();
    let batch = match (calls, product.batch) {
        (1, 1) => String::new(),
        (1, batch) => format!("{batch}x"),
        (calls, batch) => format!("{calls}x{batch}x"),
    };
    let bias = if product.bias.is_some() { " + bias" } else { "" };
    let residual = if product.residual { " + residual" } else { "" };
    let activation = match product.activation {
        Activation::None => "",
        Activation::Relu => " + relu",
        Activation::Gelu => " + gelu",
        Activation::GeluGradient => " * gradient of gelu",
        Activation::ReluGradient => " * gradient of relu",
    };
    let sums = if product.summed.is_some() { " + bias gradient" } else { "" };
    let (m, n, k, element) = (product.m, product.n, product.k, product.lhs.element);
    format!("library dot {batch}{m}x{n}x{k} {element}{bias}{residual}{activation}{sums}")
}

impl Step for Multiply {
    fn start(&self, stream: &Stream) -> Result<()> {
        self.plans.iter().try_for_each(|plan| plan.run(stream))
    }

    fn launches(&self) -> u64 {
        self.plans.len() as u64
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
