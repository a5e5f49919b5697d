//! GEMMs by the vendor's BLAS.

use super::{DeviceLayout, ExecutionStep};
use crate::blas::{Activation, Blas, GemmBuffers, RunGemm};
use crate::driver::Stream;
use crate::error::Result;
use crate::lower::GemmCall;

/// A GEMM, in as many calls as its batches need.
pub(crate) struct GemmStep {
    plans: Vec<Box<dyn RunGemm>>,
    name: String,
}

impl GemmStep {
    /// Plans the GEMM.
    pub(crate) fn new(
        call: &GemmCall,
        library: &Blas,
        layout: &DeviceLayout,
        stream: &Stream,
    ) -> Result<Self> {
        let offset = |view: &warpforge_fusion::View| {
            u64::try_from(view.offset).unwrap_or(0) * call.gemm.lhs.element.byte_width() as u64
        };
        let of = |id: Option<warpforge_fusion::NodeId>| id.map_or(0, |id| layout.address(id));
        let plans = call.parts.iter().map(|part| {
            let residual = of(call.residual);
            let buffers = GemmBuffers {
                lhs: layout.address(call.lhs.value) + offset(&call.lhs.view) + part.lhs as u64,
                rhs: layout.address(call.rhs.value) + offset(&call.rhs.view) + part.rhs as u64,
                out: layout.address(call.output) + part.out as u64,
                bias: of(call.bias.or(call.bias_gradient)),
                residual: if residual == 0 { 0 } else { residual + part.out as u64 },
                scales: call.scales.map_or([0; 2], |scales| scales.map(|id| layout.address(id))),
                aux: of(call.aux),
                workspace: layout.workspace.address(),
            };
            library.plan(&call.gemm, buffers, stream)
        });
        Ok(Self { plans: plans.collect::<Result<_>>()?, name: name(call) })
    }
}

fn name(call: &GemmCall) -> String {
    let gemm = &call.gemm;
    let calls = call.parts.len();
    let batch = match (calls, gemm.batch) {
        (1, 1) => String::new(),
        (1, batch) => format!("{batch}x"),
        (calls, batch) => format!("{calls}x{batch}x"),
    };
    let bias = if gemm.bias.is_some() { " + bias" } else { "" };
    let scales = if gemm.scales.is_some() { " * scales" } else { "" };
    let residual = if gemm.residual { " + residual" } else { "" };
    let activation = match gemm.activation {
        Activation::None => "",
        Activation::Relu => " + relu",
        Activation::Gelu => " + gelu",
        Activation::GeluGradient => " * gradient of gelu",
        Activation::ReluGradient => " * gradient of relu",
    };
    let gradient = if gemm.bias_gradient.is_some() { " + bias gradient" } else { "" };
    let (m, n, k, element) = (gemm.m, gemm.n, gemm.k, gemm.lhs.element);
    format!("library dot {batch}{m}x{n}x{k} {element}{scales}{bias}{residual}{activation}{gradient}")
}

impl ExecutionStep for GemmStep {
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
