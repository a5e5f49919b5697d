//! Fusion plans: convolution with bias and ReLU.

use std::ffi::c_void;
use std::sync::Arc;

use super::descriptor::{ConvDescriptors, TensorDescriptor};
use super::problem::{ConvBuffers, ConvProblem, TensorLayout};
use super::{Miopen, check};
use crate::driver::{Handle, Stream};
use crate::error::Result;

/// Vertical fusion.
const VERTICAL: i32 = 0;

/// ReLU.
const RELU: i32 = 3;

/// A compiled fusion plan with its arguments.
pub(super) struct FusionPlan {
    library: Arc<Miopen>,
    plan: Handle,
    arguments: Handle,
    _bias: Option<TensorDescriptor>,
}

impl FusionPlan {
    /// Creates and compiles the plan.
    ///
    /// # Errors
    ///
    /// When MIOpen does not support the fusion.
    pub(super) fn new(
        library: &Arc<Miopen>,
        descriptors: &ConvDescriptors,
        problem: &ConvProblem,
        buffers: &ConvBuffers,
        stream: &Stream,
    ) -> Result<Self> {
        let functions = &library.functions;
        let null = std::ptr::null_mut();
        let bias = problem
            .bias
            .then(|| TensorDescriptor::new(library, problem.element, &per_channel(&problem.output)));
        let bias = bias.transpose()?;
        let mut made = Self { library: Arc::clone(library), plan: null, arguments: null, _bias: None };
        let [mut convolution, mut added, mut cut] = [null; 3];
        let (one, zero) = (1.0f32, 0.0f32);
        let (one, zero): (*const c_void, *const c_void) = ((&raw const one).cast(), (&raw const zero).cast());
        // SAFETY: descriptions live, addresses are those of variables, numbers are read before a call returns.
        unsafe {
            let input = descriptors.input.handle;
            check((functions.fusion_create)(&raw mut made.plan, VERTICAL, input), "plan a fusion")?;
            let (window, weights) = (descriptors.convolution.handle, descriptors.weights.handle);
            let code = (functions.fuse_convolution)(made.plan, &raw mut convolution, window, weights);
            check(code, "fuse a convolution")?;
            if let Some(bias) = &bias {
                check((functions.fuse_bias)(made.plan, &raw mut added, bias.handle), "fuse a bias")?;
            }
            if problem.relu {
                check((functions.fuse_activation)(made.plan, &raw mut cut, RELU), "fuse a ReLU")?;
            }
            let handle = library.on(stream)?;
            check((functions.fusion_compile)(*handle, made.plan), "compile a fusion")?;
            check((functions.arguments_create)(&raw mut made.arguments), "give a fusion its arguments")?;
            let code =
                (functions.arguments_convolution)(made.arguments, convolution, one, zero, buffers.weights);
            check(code, "give a fusion its weights")?;
            if bias.is_some() {
                let code = (functions.arguments_bias)(made.arguments, added, one, zero, buffers.bias);
                check(code, "give a fusion its bias")?;
            }
            if problem.relu {
                let code = (functions.arguments_activation)(made.arguments, cut, one, zero, 0.0, 0.0, 0.0);
                check(code, "give a fusion its ReLU")?;
            }
        }
        made._bias = bias;
        Ok(made)
    }

    /// Launches the plan with a locked handle.
    pub(super) fn run(
        &self,
        handle: Handle,
        descriptors: &ConvDescriptors,
        buffers: &ConvBuffers,
    ) -> Result<()> {
        let (input, output) = (descriptors.input.handle, descriptors.output.handle);
        // SAFETY: handle, plan, arguments and descriptions live, and the places belong to them.
        let code = unsafe {
            let run = self.library.functions.fusion_run;
            run(handle, self.plan, input, buffers.input, output, buffers.output, self.arguments)
        };
        check(code, "run a fusion")
    }
}

/// A tensor with one element per channel.
fn per_channel(output: &TensorLayout) -> TensorLayout {
    let channels = output.dims.get(1).copied().unwrap_or(1);
    let of = |fill: i64, second: i64| -> Vec<i64> {
        (0..output.dims.len()).map(|at| if at == 1 { second } else { fill }).collect()
    };
    TensorLayout { dims: of(1, channels), strides: of(channels, 1) }
}

impl Drop for FusionPlan {
    fn drop(&mut self) {
        let functions = &self.library.functions;
        if !self.arguments.is_null() {
            // SAFETY: nobody uses them any more.
            unsafe { (functions.arguments_destroy)(self.arguments) };
        }
        if !self.plan.is_null() {
            // SAFETY: as above.
            unsafe { (functions.fusion_destroy)(self.plan) };
        }
    }
}
