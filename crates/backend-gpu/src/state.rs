//! State on a device: buffers that stay there between runs.

use std::any::Any;
use std::sync::Arc;

use warpforge_runtime::state::Store;
use warpforge_runtime::{InputType, State};
use warpforge_tensor::{Shape, Tensor};

use crate::driver::{Address, Buffer, Gpu, Staging, Stream};
use crate::error::{GpuError, Result, runtime_error};

/// Values in the memory of a device.
pub(crate) struct DeviceStore {
    gpu: Arc<Gpu>,
    stream: Stream,
    types: Vec<InputType>,
    buffers: Vec<Buffer>,
}

impl DeviceStore {
    /// State with these values.
    pub(crate) fn state(gpu: &Arc<Gpu>, values: &[Tensor]) -> Result<State> {
        let types: Vec<InputType> = values.iter().map(InputType::of).collect();
        let buffers = values.iter().map(|tensor| gpu.allocate(tensor.bytes().len()));
        let store = Self {
            stream: Stream::new(gpu)?,
            types: types.clone(),
            buffers: buffers.collect::<Result<_>>()?,
            gpu: Arc::clone(gpu),
        };
        let mut staging = Staging::new(gpu)?;
        for (tensor, buffer) in values.iter().zip(&store.buffers) {
            staging.write(&store.stream, buffer.address(), tensor.bytes())?;
        }
        store.stream.synchronise()?;
        Ok(State::new(Box::new(store), types))
    }

    /// The store of a state on a device.
    pub(crate) fn of<'s>(state: &'s State, gpu: &Arc<Gpu>) -> Result<&'s Self> {
        let store = state.store().as_any().downcast_ref::<Self>();
        let here = store.filter(|store| Arc::ptr_eq(&store.gpu, gpu));
        here.ok_or_else(|| GpuError::Other("the state is on another device than the program".to_owned()))
    }

    /// The address of a value.
    pub(crate) fn address(&self, value: usize) -> Result<Address> {
        let missing = || GpuError::Other(format!("the state has no value {value}"));
        self.buffers.get(value).map(Buffer::address).ok_or_else(missing)
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> usize {
        self.buffers.iter().map(Buffer::bytes).sum()
    }

    fn download(&self, value: usize) -> Result<Tensor> {
        let other = |error: warpforge_tensor::Error| GpuError::Other(error.to_string());
        let address = self.address(value)?;
        let InputType { element, dims } = &self.types[value];
        let shape = Shape::new(dims.clone()).map_err(other)?;
        let mut tensor = Tensor::zeros(*element, shape).map_err(other)?;
        self.gpu.enter()?;
        if !tensor.is_empty() {
            self.stream.read(address, tensor.bytes_mut())?;
        }
        Ok(tensor)
    }

    fn upload(&self, value: usize, content: &Tensor) -> Result<()> {
        let address = self.address(value)?;
        self.gpu.enter()?;
        Staging::new(&self.gpu)?.write(&self.stream, address, content.bytes())?;
        self.stream.synchronise()
    }
}

impl Store for DeviceStore {
    fn read(&self, value: usize) -> warpforge_runtime::Result<Tensor> {
        self.download(value).map_err(|error| runtime_error(self.gpu.driver.vendor, &error))
    }

    fn write(&self, value: usize, content: &Tensor) -> warpforge_runtime::Result<()> {
        self.upload(value, content).map_err(|error| runtime_error(self.gpu.driver.vendor, &error))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
