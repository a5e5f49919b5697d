//! All of a vendor's libraries of products, the best first.

use std::sync::Arc;

use super::rocblas::Rocblas;
use super::{Places, Plan, Product, Products, Side, WORKSPACE};
use crate::driver::{Gpu, Stream};
use crate::error::{GpuError, Result};
use crate::library::Vendor;

/// A product that is ready.
pub(crate) trait Runs: Send + Sync {
    /// Starts it.
    fn run(&self, stream: &Stream) -> Result<()>;
}

impl Runs for Plan {
    fn run(&self, stream: &Stream) -> Result<()> {
        Plan::run(self, stream)
    }
}

/// The libraries of products for a device.
#[derive(Clone)]
pub(crate) struct Library {
    /// cuBLASLt or hipBLASLt.
    pub(crate) first: Option<Arc<Products>>,
    /// rocBLAS.
    pub(crate) second: Option<Arc<Rocblas>>,
}

impl Library {
    /// What there is for a device.
    ///
    /// # Errors
    ///
    /// When there is nothing.
    pub(crate) fn of(gpu: &Arc<Gpu>) -> Result<Self> {
        let first = Products::of(gpu).map(Arc::new);
        let second = match gpu.driver.vendor {
            Vendor::Cuda => None,
            Vendor::Hip => {
                Rocblas::of(gpu).map(Arc::new).inspect_err(|error| tracing::debug!(%error, "no rocBLAS")).ok()
            }
        };
        match (first, &second) {
            (Err(error), None) => Err(error),
            (Err(error), Some(_)) => {
                tracing::warn!(%error, "rocBLAS computes products, and kernels what follows them");
                Ok(Self { first: None, second })
            }
            (Ok(first), _) => Ok(Self { first: Some(first), second }),
        }
    }

    /// Whether bias and activation can be had with a product.
    pub(crate) fn has_epilogues(&self) -> bool {
        self.first.is_some()
    }

    /// Whether a product without an epilogue may succeed where one with it was refused.
    pub(crate) fn has_second(&self) -> bool {
        self.second.is_some()
    }

    /// Makes a product ready; what is at the places is overwritten.
    ///
    /// # Errors
    ///
    /// When no library has it.
    pub(crate) fn plan(&self, product: &Product, places: Places, stream: &Stream) -> Result<Box<dyn Runs>> {
        let refused = match &self.first {
            None => None,
            Some(first) => match Plan::new(first, product, places, stream) {
                Ok(plan) => return Ok(Box::new(plan)),
                Err(error @ (GpuError::Lost { .. } | GpuError::OutOfMemory { .. })) => return Err(error),
                Err(error) => Some(error),
            },
        };
        let Some(second) = &self.second else {
            return Err(refused.unwrap_or_else(|| GpuError::Other("no library of products".to_owned())));
        };
        if let Some(error) = refused {
            tracing::info!(%error, "hipBLASLt refuses a product; rocBLAS is asked");
        }
        Ok(Box::new(second.plan(product, places, stream)?))
    }

    /// Makes a product that gives the sums of an operand too ready, where it takes no longer than one without and a look at
    /// the operand, which is about what the sums cost by themselves: measured as a copy of it.
    ///
    /// # Errors
    ///
    /// When it takes longer, or the library does not have it.
    pub(crate) fn plan_with_sums(
        &self,
        product: &Product,
        side: Side,
        places: Places,
        stream: &Stream,
    ) -> Result<Box<dyn Runs>> {
        let library = self.first.as_ref().ok_or_else(|| GpuError::Other("no sums of operands".to_owned()))?;
        let with = Plan::new(library, product, places, stream)?;
        let alone = Product { summed: None, ..*product };
        let alone = Plan::new(library, &alone, Places { bias: 0, ..places }, stream)?;
        let (from, elements, element) = match side {
            Side::Left => (places.lhs, product.m * product.k, product.lhs.element),
            Side::Right => (places.rhs, product.k * product.n, product.rhs.element),
        };
        let bytes = elements * element.byte_width();
        let copied = library.time_of_copy(places.workspace, from, bytes.min(WORKSPACE), stream)?;
        let copied = copied.mul_f64(bytes.div_ceil(WORKSPACE).max(1) as f64);
        let (took, without) = (with.time(), alone.time());
        if took > without + copied {
            return Err(GpuError::Other(format!(
                "{took:?} with the sums of an operand, {without:?} without"
            )));
        }
        Ok(Box::new(with))
    }
}
