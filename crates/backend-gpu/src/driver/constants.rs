//! Device constants, uploaded once and shared between programs.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use warpforge_tensor::Tensor;

use super::gpu::{Buffer, ConstantKey, Constants, Gpu};
use super::staging::Staging;
use super::stream::Stream;
use crate::error::Result;

/// Uploads of a program's constants.
pub(crate) struct Uploads<'a> {
    gpu: &'a Arc<Gpu>,
    stream: &'a Stream,
    staging: Option<Staging>,
    fresh: HashMap<ConstantKey, Arc<Buffer>>,
}

impl<'a> Uploads<'a> {
    /// Nothing yet.
    pub(crate) fn new(gpu: &'a Arc<Gpu>, stream: &'a Stream) -> Self {
        Self { gpu, stream, staging: None, fresh: HashMap::new() }
    }

    fn known(&self) -> MutexGuard<'a, Constants> {
        self.gpu.constants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The buffer of a constant, shared or newly uploaded.
    pub(crate) fn upload(&mut self, tensor: &Tensor) -> Result<Arc<Buffer>> {
        let bytes = tensor.bytes();
        let key = (bytes.as_ptr() as usize, bytes.len());
        let shared = self.known().get(&key).and_then(Weak::upgrade);
        if let Some(known) = self.fresh.get(&key).cloned().or(shared) {
            return Ok(known);
        }
        let buffer = Arc::new(self.gpu.allocate(bytes.len())?.holding(tensor));
        let staging = match &mut self.staging {
            Some(staging) => staging,
            None => self.staging.insert(Staging::new(self.gpu)?),
        };
        staging.write(self.stream, buffer.address(), bytes)?;
        self.fresh.insert(key, Arc::clone(&buffer));
        Ok(buffer)
    }

    /// Waits for the uploads and shares them with other programs.
    pub(crate) fn finish(self) -> Result<()> {
        if self.fresh.is_empty() {
            return Ok(());
        }
        self.stream.synchronise()?;
        let mut known = self.known();
        known.retain(|_, buffer| buffer.strong_count() > 0);
        known.extend(self.fresh.iter().map(|(&key, buffer)| (key, Arc::downgrade(buffer))));
        Ok(())
    }
}
