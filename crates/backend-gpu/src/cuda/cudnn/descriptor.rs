//! cuDNN backend descriptors.

use std::ffi::c_void;
use std::sync::Arc;

use super::{Cudnn, check};
use crate::driver::Handle;
use crate::error::Result;

/// Descriptor types.
pub(super) mod kind {
    pub(in super::super) const POINTWISE: i32 = 0;
    pub(in super::super) const CONVOLUTION: i32 = 1;
    pub(in super::super) const ENGINE: i32 = 2;
    pub(in super::super) const CONFIGURATION: i32 = 3;
    pub(in super::super) const HEURISTICS: i32 = 4;
    pub(in super::super) const PLAN: i32 = 5;
    pub(in super::super) const RUN_CONVOLUTION: i32 = 10;
    pub(in super::super) const RUN_POINTWISE: i32 = 13;
    pub(in super::super) const GRAPH: i32 = 15;
    pub(in super::super) const VARIANT_PACK: i32 = 16;
    pub(in super::super) const TENSOR: i32 = 17;
    pub(in super::super) const MATMUL: i32 = 18;
    pub(in super::super) const RUN_MATMUL: i32 = 19;
    pub(in super::super) const REDUCTION: i32 = 21;
    pub(in super::super) const RUN_REDUCTION: i32 = 22;
    /// Since cuDNN 9.13.
    pub(in super::super) const RUN_ATTENTION: i32 = 41;
}

/// Attribute types.
const HANDLE: i32 = 0;
const DATA_TYPE: i32 = 1;
const BOOLEAN: i32 = 2;
const INT64: i32 = 3;
const FLOAT: i32 = 4;
const POINTER: i32 = 6;
const DESCRIPTOR: i32 = 15;

/// A descriptor of cuDNN.
pub(super) struct Descriptor {
    library: Arc<Cudnn>,
    handle: Handle,
}

// SAFETY: descriptors may be used from any thread, one at a time.
unsafe impl Send for Descriptor {}
// SAFETY: final descriptors are not changed any more.
unsafe impl Sync for Descriptor {}

impl Descriptor {
    pub(super) fn new(library: &Arc<Cudnn>, kind: i32) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the address is that of a variable.
        let code = unsafe { (library.functions.descriptor_create)(kind, &raw mut handle) };
        check(code, "create a descriptor")?;
        Ok(Self { library: Arc::clone(library), handle })
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    /// Sets an attribute to values of a type.
    fn set<T>(&self, attribute: i32, ty: i32, values: &[T]) -> Result<()> {
        let (count, data) = (values.len() as i64, values.as_ptr().cast::<c_void>());
        // SAFETY: there are so many values, of the type that the number says.
        let code = unsafe { (self.library.functions.set)(self.handle, attribute, ty, count, data) };
        check(code, "set an attribute of a descriptor")
    }

    pub(super) fn int64s(&self, attribute: i32, values: &[i64]) -> Result<()> {
        self.set(attribute, INT64, values)
    }

    pub(super) fn float(&self, attribute: i32, value: f32) -> Result<()> {
        self.set(attribute, FLOAT, &[value])
    }

    pub(super) fn flag(&self, attribute: i32, value: bool) -> Result<()> {
        self.set(attribute, BOOLEAN, &[value])
    }

    pub(super) fn data_type(&self, attribute: i32, value: i32) -> Result<()> {
        self.set(attribute, DATA_TYPE, &[value])
    }

    /// A value of an enumeration type.
    pub(super) fn choice(&self, attribute: i32, ty: i32, value: i32) -> Result<()> {
        self.set(attribute, ty, &[value])
    }

    pub(super) fn library_handle(&self, attribute: i32, value: Handle) -> Result<()> {
        self.set(attribute, HANDLE, &[value])
    }

    pub(super) fn pointers(&self, attribute: i32, values: &[u64]) -> Result<()> {
        self.set(attribute, POINTER, values)
    }

    pub(super) fn descriptors(&self, attribute: i32, values: &[Handle]) -> Result<()> {
        self.set(attribute, DESCRIPTOR, values)
    }

    /// Finalises the descriptor; its attributes cannot be set any more.
    pub(super) fn finalise(self) -> Result<Self> {
        // SAFETY: the descriptor lives.
        check(unsafe { (self.library.functions.finalise)(self.handle) }, "make a descriptor final")?;
        Ok(self)
    }

    fn get(&self, attribute: i32, ty: i32, most: usize, to: *mut c_void) -> Result<usize> {
        let mut count = 0;
        // SAFETY: there is room for so many values of that type.
        let code = unsafe {
            (self.library.functions.get)(self.handle, attribute, ty, most as i64, &raw mut count, to)
        };
        check(code, "read an attribute of a descriptor")?;
        Ok(usize::try_from(count).unwrap_or(0).min(most))
    }

    pub(super) fn int64(&self, attribute: i32) -> Result<i64> {
        let mut value = 0i64;
        self.get(attribute, INT64, 1, (&raw mut value).cast())?;
        Ok(value)
    }

    /// Enumeration values, at most `most`.
    pub(super) fn choices(&self, attribute: i32, ty: i32, most: usize) -> Result<Vec<i32>> {
        let mut values = vec![0i32; most];
        let count = self.get(attribute, ty, most, values.as_mut_ptr().cast())?;
        values.truncate(count);
        Ok(values)
    }

    /// Descriptors that this one contains, at most `most`.
    pub(super) fn inner(&self, attribute: i32, kind: i32, most: usize) -> Result<Vec<Self>> {
        let made: Vec<Self> = (0..most).map(|_| Self::new(&self.library, kind)).collect::<Result<_>>()?;
        let mut handles: Vec<Handle> = made.iter().map(Self::handle).collect();
        let count = self.get(attribute, DESCRIPTOR, most, handles.as_mut_ptr().cast())?;
        Ok(made.into_iter().take(count).collect())
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { (self.library.functions.descriptor_destroy)(self.handle) };
    }
}
