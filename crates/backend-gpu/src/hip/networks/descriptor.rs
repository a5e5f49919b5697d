//! What the library is told about tensors and windows.

use std::sync::Arc;

use warpforge_tensor::{ElementType, FloatType};

use super::plan::Shaped;
use super::{Networks, check};
use crate::driver::Handle;
use crate::error::{GpuError, Result};
use crate::networks::Windows;

/// Cross-correlation, which is what models call a convolution.
const CONVOLUTION: i32 = 0;

/// The description of a tensor.
pub(super) struct Tensor {
    library: Arc<Networks>,
    pub(super) handle: Handle,
}

impl Tensor {
    /// A tensor of these sizes and strides.
    pub(super) fn new(library: &Arc<Networks>, element: ElementType, of: &Shaped) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        check(unsafe { (library.functions.tensor_create)(&raw mut handle) }, "describe a tensor")?;
        let tensor = Self { library: Arc::clone(library), handle };
        let (dims, strides) = (numbers(&of.dims)?, numbers(&of.strides)?);
        let rank = dims.len() as i32;
        // SAFETY: the description lives, and both lists have so many numbers.
        let code = unsafe {
            let set = library.functions.tensor_set;
            set(handle, number(element)?, rank, dims.as_ptr(), strides.as_ptr())
        };
        check(code, "describe a tensor")?;
        Ok(tensor)
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { (self.library.functions.tensor_destroy)(self.handle) };
    }
}

/// The description of windows over an input.
pub(super) struct Convolution {
    library: Arc<Networks>,
    pub(super) handle: Handle,
}

impl Convolution {
    /// Windows of channels in groups.
    pub(super) fn new(library: &Arc<Networks>, windows: &Windows, groups: usize) -> Result<Self> {
        if windows.before != windows.after {
            return Err(GpuError::Other("MIOpen pads both sides alike".to_owned()));
        }
        let functions = &library.functions;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        check(unsafe { (functions.convolution_create)(&raw mut handle) }, "describe a convolution")?;
        let convolution = Self { library: Arc::clone(library), handle };
        let (padding, strides) = (numbers(&windows.before)?, numbers(&windows.strides)?);
        let dilations = numbers(&windows.dilations)?;
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

impl Drop for Convolution {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { (self.library.functions.convolution_destroy)(self.handle) };
    }
}

fn whole<T: TryInto<i32>>(number: T) -> Result<i32> {
    number.try_into().map_err(|_| GpuError::Other("a size is too large for MIOpen".to_owned()))
}

fn numbers(values: &[i64]) -> Result<Vec<i32>> {
    values.iter().map(|&value| whole(value)).collect()
}

/// The number of a type of elements.
fn number(element: ElementType) -> Result<i32> {
    Ok(match element {
        ElementType::Float(FloatType::F16) => 0,
        ElementType::Float(FloatType::F32) => 1,
        ElementType::Float(FloatType::Bf16) => 5,
        _ => return Err(GpuError::Other(format!("MIOpen computes nothing here in {element}"))),
    })
}
