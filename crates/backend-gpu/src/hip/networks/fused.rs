//! A convolution with bias and ReLU in one: a fusion plan.

use std::ffi::c_void;
use std::sync::Arc;

use super::descriptor::Tensor;
use super::plan::{Described, Places, Problem, Shaped};
use super::{Networks, check};
use crate::driver::{Handle, Stream};
use crate::error::Result;

/// One operation after the other.
const VERTICAL: i32 = 0;

/// Nothing below zero.
const RELU: i32 = 3;

/// A compiled plan and its arguments.
pub(super) struct Fused {
    library: Arc<Networks>,
    plan: Handle,
    arguments: Handle,
    _bias: Option<Tensor>,
}

impl Fused {
    /// Plans and compiles.
    ///
    /// # Errors
    ///
    /// When the library does not fuse this.
    pub(super) fn new(
        library: &Arc<Networks>,
        described: &Described,
        problem: &Problem,
        places: &Places,
        stream: &Stream,
    ) -> Result<Self> {
        let functions = &library.functions;
        let null = std::ptr::null_mut();
        let bias = problem.bias.then(|| Tensor::new(library, problem.element, &per_channel(&problem.output)));
        let bias = bias.transpose()?;
        let mut made = Self { library: Arc::clone(library), plan: null, arguments: null, _bias: None };
        let [mut convolution, mut added, mut cut] = [null; 3];
        let (one, zero) = (1.0f32, 0.0f32);
        let (one, zero): (*const c_void, *const c_void) = ((&raw const one).cast(), (&raw const zero).cast());
        // SAFETY: descriptions live, addresses are those of variables, numbers are read before a call returns.
        unsafe {
            let input = described.input.handle;
            check((functions.fusion_create)(&raw mut made.plan, VERTICAL, input), "plan a fusion")?;
            let (windows, weights) = (described.convolution.handle, described.weights.handle);
            let code = (functions.fuse_convolution)(made.plan, &raw mut convolution, windows, weights);
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
                (functions.arguments_convolution)(made.arguments, convolution, one, zero, places.weights);
            check(code, "give a fusion its weights")?;
            if bias.is_some() {
                let code = (functions.arguments_bias)(made.arguments, added, one, zero, places.bias);
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

    /// Starts the plan by a handle that nobody else uses now.
    pub(super) fn run(&self, handle: Handle, described: &Described, places: &Places) -> Result<()> {
        let (input, output) = (described.input.handle, described.output.handle);
        // SAFETY: handle, plan, arguments and descriptions live, and the places belong to them.
        let code = unsafe {
            let run = self.library.functions.fusion_run;
            run(handle, self.plan, input, places.input, output, places.output, self.arguments)
        };
        check(code, "run a fusion")
    }
}

/// A number for each channel of a result.
fn per_channel(output: &Shaped) -> Shaped {
    let channels = output.dims.get(1).copied().unwrap_or(1);
    let of = |fill: i64, second: i64| -> Vec<i64> {
        (0..output.dims.len()).map(|at| if at == 1 { second } else { fill }).collect()
    };
    Shaped { dims: of(1, channels), strides: of(channels, 1) }
}

impl Drop for Fused {
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
