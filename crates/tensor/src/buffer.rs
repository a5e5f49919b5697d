//! Bytes aligned for every element type.

use crate::Error;

/// A fixed number of bytes whose start is aligned to 16.
#[derive(Debug, Clone)]
pub(crate) struct Buffer {
    words: Vec<u128>,
    len: usize,
}

impl Buffer {
    pub(crate) fn zeroed(len: usize) -> Result<Self, Error> {
        let count = len.div_ceil(16);
        let mut words = Vec::new();
        words.try_reserve_exact(count).map_err(|_| Error::OutOfMemory { bytes: len })?;
        words.resize(count, 0);
        Ok(Self { words, len })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }
}
