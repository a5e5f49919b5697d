//! Convolutions.

use warpforge_fusion::Id;
use warpforge_fusion::cluster::Product;

use super::{Kernel, KernelError, Result, Setting};

/// The kernel of a convolution.
pub(super) fn kernel(_: &Setting<'_>, _: &Product, _: Id) -> Result<Box<dyn Kernel>> {
    Err(KernelError::Other("there is no kernel for convolutions yet".to_owned()))
}
