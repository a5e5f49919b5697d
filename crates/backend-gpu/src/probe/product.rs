//! Products of large matrices by the vendor's library.

use std::sync::Arc;

use warpforge_tensor::ElementType;

use super::Probe;
use super::numbers::{Numbers, pattern};
use crate::driver::Buffer;
use crate::error::{GpuError, Result};
use crate::products::{Activation, Matrix, Places, Plan, Product, Products, WORKSPACE};

/// A product of two square matrices of random numbers.
pub struct ProductProbe<'p> {
    probe: &'p Probe,
    plan: Plan,
    numbers: Numbers,
    /// Operations of one product.
    flops: f64,
    _memory: [Buffer; 4],
}

impl<'p> ProductProbe<'p> {
    /// Fills two matrices and measures which algorithm is the best for them.
    ///
    /// # Errors
    ///
    /// When there is no library of products, no memory, or the library has no such product.
    pub fn new(probe: &'p Probe, numbers: Numbers, size: usize) -> Result<Self> {
        let [lhs, rhs, out] = numbers.elements();
        let bytes = |element: ElementType| {
            let square = size.checked_mul(size).and_then(|count| count.checked_mul(element.byte_width()));
            square.ok_or_else(|| GpuError::Other(format!("a matrix of {size} rows is too large")))
        };
        let memory = [
            probe.filled(bytes(lhs)?, &pattern(lhs))?,
            probe.filled(bytes(rhs)?, &pattern(rhs))?,
            probe.gpu.allocate(bytes(out)?)?,
            probe.gpu.allocate(WORKSPACE)?,
        ];
        let matrix =
            Matrix { element: lhs, by_columns: false, stride: size, batch_stride: 0, alignment: 256 };
        let product = Product {
            batch: 1,
            m: size,
            n: size,
            k: size,
            lhs: matrix,
            // Products of 8-bit numbers want what is summed side by side in both operands.
            rhs: Matrix { element: rhs, by_columns: rhs.byte_width() == 1, ..matrix },
            out,
            sums: numbers.sums(),
            bias: None,
            activation: Activation::None,
            residual: false,
            summed: None,
        };
        let [lhs, rhs, out, workspace] = &memory;
        let places = Places {
            lhs: lhs.address(),
            rhs: rhs.address(),
            out: out.address(),
            workspace: workspace.address(),
            ..Places::default()
        };
        let library = Arc::new(Products::of(&probe.gpu)?);
        let plan = Plan::new(&library, &product, places, &probe.stream)?;
        Ok(Self { probe, plan, numbers, flops: 2.0 * (size as f64).powi(3), _memory: memory })
    }

    /// Whether it runs on tensor cores.
    #[must_use]
    pub fn on_tensor_cores(&self) -> bool {
        let gpu = &self.probe.gpu;
        self.numbers.on_tensor_cores(gpu.driver.vendor, gpu.properties.capability)
    }

    /// Runs once: operations each second.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn rate(&self) -> Result<f64> {
        let time = self.probe.timed(|| self.plan.run(&self.probe.stream))?;
        Ok(self.flops / time.as_secs_f64().max(1e-9))
    }
}
