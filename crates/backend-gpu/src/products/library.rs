//! All of a vendor's libraries of products, the best first.

use std::sync::Arc;

use super::rocblas::Rocblas;
use super::{Activation, Places, Plan, Product, Products, Side, WORKSPACE};
use crate::driver::{Address, Gpu, Stream};
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

    /// Whether the gradient of ReLU can be had with a product, by bits that say where.
    pub(crate) fn has_relu_gradient(&self) -> bool {
        self.first.as_ref().is_some_and(|first| first.vendor() == Vendor::Cuda)
    }

    /// Whether a product without an epilogue may succeed where one with it was refused.
    pub(crate) fn has_second(&self) -> bool {
        self.second.is_some()
    }

    /// Makes a product ready; what is at the places is overwritten.
    ///
    /// # Errors
    ///
    /// When no library has it, or a kernel besides a product that does less is faster.
    pub(crate) fn plan(&self, product: &Product, places: Places, stream: &Stream) -> Result<Box<dyn Runs>> {
        if let Some(extra) = Extra::of(product, &places) {
            return self.plan_with_extra(product, &extra, places, stream);
        }
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

    /// Makes a product ready that does what a kernel could do too, where it takes no longer than one without and that kernel.
    fn plan_with_extra(
        &self,
        product: &Product,
        extra: &Extra,
        places: Places,
        stream: &Stream,
    ) -> Result<Box<dyn Runs>> {
        let library = self.first.as_ref().ok_or_else(|| GpuError::Other(format!("no {}", extra.what)))?;
        let with = Plan::new(library, product, places, stream)?;
        let alone = Plan::new(library, &extra.without, Places { bias: 0, beside: 0, ..places }, stream)?;
        let copied =
            library.time_of_copy(places.workspace, extra.from, extra.bytes.min(WORKSPACE), stream)?;
        let copied = copied.mul_f64(extra.bytes.div_ceil(WORKSPACE).max(1) as f64);
        let (took, without) = (with.time(), alone.time());
        if took > without + copied {
            return Err(GpuError::Other(format!("{took:?} with the {}, {without:?} without", extra.what)));
        }
        Ok(Box::new(with))
    }
}

/// What a product may do that a kernel does as well, for about the time of a copy.
struct Extra {
    what: &'static str,
    /// The product that does not do it.
    without: Product,
    /// What is copied.
    from: Address,
    bytes: usize,
}

impl Extra {
    fn of(product: &Product, places: &Places) -> Option<Self> {
        let Product { m, n, k, .. } = *product;
        let (what, from, bytes) = match (product.summed, product.activation) {
            (Some(Side::Left), _) => {
                ("sums of an operand", places.lhs, m * k * product.lhs.element.byte_width())
            }
            (Some(Side::Right), _) => {
                ("sums of an operand", places.rhs, k * n * product.rhs.element.byte_width())
            }
            // One kernel makes the bits, another has the gradient itself: that reads and writes the result besides.
            (None, Activation::ReluGradient) => {
                ("gradient of ReLU", places.out, m * n * product.out.byte_width())
            }
            _ => return None,
        };
        let activation = match product.activation {
            Activation::ReluGradient => Activation::None,
            other => other,
        };
        Some(Self { what, without: Product { summed: None, activation, ..*product }, from, bytes })
    }
}
