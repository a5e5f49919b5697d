//! Where a tensor's bytes are: memory of its own, aligned for every element type, or a part of something shared.

use std::sync::OnceLock;

use crate::{Blob, Error, Native};

/// A fixed number of bytes whose start is aligned to 16.
#[derive(Debug, Clone)]
pub(crate) struct Aligned {
    words: Box<[u128]>,
    len: usize,
}

impl Aligned {
    pub(crate) fn zeroed(len: usize) -> Result<Self, Error> {
        let words = bytemuck::allocation::try_zeroed_slice_box(len.div_ceil(16))
            .map_err(|()| Error::OutOfMemory { bytes: len })?;
        Ok(Self { words, len })
    }

    /// A copy, as `Vec::from` makes one: there is no answer to a lack of memory.
    fn copy_of(bytes: &[u8]) -> Self {
        let words = vec![0; bytes.len().div_ceil(16)].into_boxed_slice();
        let mut copy = Self { words, len: bytes.len() };
        copy.bytes_mut().copy_from_slice(bytes);
        copy
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }
}

/// The bytes of a tensor.
#[derive(Debug, Clone)]
pub(crate) enum Buffer {
    /// Memory of the tensor's own.
    Own(Aligned),
    /// A part of a file or of a module's constants, which may lie at any address.
    Shared {
        blob: Blob,
        /// A copy for typed views, made when one is asked for and the bytes do not lie on the type's alignment.
        copy: OnceLock<Aligned>,
    },
}

impl Buffer {
    pub(crate) fn zeroed(len: usize) -> Result<Self, Error> {
        Aligned::zeroed(len).map(Self::Own)
    }

    pub(crate) fn shared(blob: Blob) -> Self {
        Self::Shared { blob, copy: OnceLock::new() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(memory) => memory.bytes(),
            Self::Shared { blob, .. } => blob,
        }
    }

    /// Bytes of memory of its own. Whoever keeps accounts needs the same answer each time, so the copy that shared bytes
    /// may get when they are looked at is not among them.
    pub(crate) fn own_bytes(&self) -> usize {
        match self {
            Self::Own(memory) => memory.len,
            Self::Shared { .. } => 0,
        }
    }

    /// The bytes for writing; shared ones become this tensor's own first.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        if let Self::Shared { blob, copy } = self {
            *self = Self::Own(copy.take().unwrap_or_else(|| Aligned::copy_of(blob)));
        }
        let Self::Own(memory) = self else { unreachable!("shared bytes were copied above") };
        memory.bytes_mut()
    }

    /// The bytes as elements of a Rust type, copied once where they lie at an address that the type cannot have.
    pub(crate) fn typed<T: Native>(&self) -> &[T] {
        match self {
            Self::Own(memory) => bytemuck::cast_slice(memory.bytes()),
            Self::Shared { blob, copy } => bytemuck::try_cast_slice(blob).unwrap_or_else(|_| {
                bytemuck::cast_slice(copy.get_or_init(|| Aligned::copy_of(blob)).bytes())
            }),
        }
    }
}
