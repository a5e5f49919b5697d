//! Shared bytes: owned, or a part of something larger such as a mapped file.

use std::fmt;
use std::fs::File;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Shared, immutable bytes. Cloning and slicing copy nothing.
#[derive(Clone)]
pub struct Blob {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
    /// The file that the owner has all bytes of.
    file: Option<Arc<File>>,
}

impl Blob {
    /// Takes over what holds the bytes: a vector, a memory map.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        let range = 0..owner.as_ref().len();
        Self { owner: Arc::new(owner), range, file: None }
    }

    /// Takes over the memory that a whole file is mapped to, and the file, for what can be done without that memory.
    pub(crate) fn of_file(map: impl AsRef<[u8]> + Send + Sync + 'static, file: File) -> Self {
        Self { file: Some(Arc::new(file)), ..Self::new(map) }
    }

    /// The file that these bytes are mapped from, and where they begin in it.
    pub(crate) fn place_in_file(&self) -> Option<(&File, u64)> {
        Some((self.file.as_deref()?, self.range.start as u64))
    }

    /// A part of these bytes, or `None` when the range is not inside.
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        if range.start > range.end || range.end > self.len() {
            return None;
        }
        let start = self.range.start;
        let range = start + range.start..start + range.end;
        Some(Self { owner: self.owner.clone(), range, file: self.file.clone() })
    }
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &(*self.owner).as_ref()[self.range.clone()]
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Blob::new(bytes)
    }
}

impl PartialEq for Blob {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_share_and_are_bounded() {
        let blob = Blob::from(vec![1, 2, 3, 4]);
        let part = blob.slice(1..3).unwrap();
        assert_eq!(&*part, &[2, 3]);
        assert_eq!(&*part.slice(1..2).unwrap(), &[3]);
        assert!(part.slice(1..3).is_none());
    }
}
