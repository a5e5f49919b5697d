//! MIOpen descriptors of tensors and convolutions.

use std::sync::Arc;

use warpforge_tensor::{ElementType, FloatType};

use super::problem::TensorLayout;
use super::{Miopen, check};
use crate::dnn::window::ConvWindow;
use crate::driver::Handle;
use crate::error::{GpuError, Result};

/// Cross-correlation, which models call convolution.
const CONVOLUTION: i32 = 0;

/// A tensor descriptor.
pub(super) struct TensorDescriptor {
    library: Arc<Miopen>,
    pub(super) handle: Handle,
}

impl TensorDescriptor {
    /// A tensor of these sizes and strides.
    pub(super) fn new(library: &Arc<Miopen>, element: ElementType, of: &TensorLayout) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        check(unsafe { (library.functions.tensor_create)(&raw mut handle) }, "describe a tensor")?;
        let tensor = Self { library: Arc::clone(library), handle };
        let (dims, strides) = (int32s(&of.dims)?, int32s(&of.strides)?);
        let rank = dims.len() as i32;
        // SAFETY: the description lives, and both lists have so many numbers.
        let code = unsafe {
            let set = library.functions.tensor_set;
            set(handle, data_type(element)?, rank, dims.as_ptr(), strides.as_ptr())
        };
        check(code, "describe a tensor")?;
        Ok(tensor)
    }
}

impl Drop for TensorDescriptor {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { (self.library.functions.tensor_destroy)(self.handle) };
    }
}

/// A convolution descriptor.
pub(super) struct ConvDescriptor {
    library: Arc<Miopen>,
    pub(super) handle: Handle,
}

impl ConvDescriptor {
    /// A grouped convolution.
    pub(super) fn new(library: &Arc<Miopen>, window: &ConvWindow, groups: usize) -> Result<Self> {
        if window.before != window.after {
            return Err(GpuError::Other("MIOpen pads both sides alike".to_owned()));
        }
        let functions = &library.functions;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        check(unsafe { (functions.convolution_create)(&raw mut handle) }, "describe a convolution")?;
        let convolution = Self { library: Arc::clone(library), handle };
        let (padding, strides) = (int32s(&window.before)?, int32s(&window.strides)?);
        let dilations = int32s(&window.dilations)?;
        let (spatial, groups) = (padding.len() as i32, whole(groups)?);
        // SAFETY: the description lives, and the lists have so many numbers.
        let code = unsafe {
            let set = functions.convolution_set;
            set(handle, spatial, padding.as_ptr(), strides.as_ptr(), dilations.as_ptr(), CONVOLUTION)
        };
        check(code, "describe a convolution")?;
        // SAFETY: the description lives.
        check(unsafe { (functions.convolution_groups)(handle, groups) }, "describe a convolution")?;
        Ok(convolution)
    }
}

impl Drop for ConvDescriptor {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { (self.library.functions.convolution_destroy)(self.handle) };
    }
}

fn whole<T: TryInto<i32>>(number: T) -> Result<i32> {
    number.try_into().map_err(|_| GpuError::Other("a size is too large for MIOpen".to_owned()))
}

fn int32s(values: &[i64]) -> Result<Vec<i32>> {
    values.iter().map(|&value| whole(value)).collect()
}

/// The data-type code of an element type.
fn data_type(element: ElementType) -> Result<i32> {
    Ok(match element {
        ElementType::Float(FloatType::F16) => 0,
        ElementType::Float(FloatType::F32) => 1,
        ElementType::Float(FloatType::Bf16) => 5,
        _ => return Err(GpuError::Other(format!("MIOpen computes nothing here in {element}"))),
    })
}

/// Descriptors of a convolution.
pub(super) struct ConvDescriptors {
    pub(super) input: TensorDescriptor,
    pub(super) weights: TensorDescriptor,
    pub(super) output: TensorDescriptor,
    pub(super) convolution: ConvDescriptor,
}
