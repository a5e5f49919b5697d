//! One rank: its values are those of all.

use crate::{Error, Numbers, ProcessGroup};

/// A group of one.
pub(crate) struct Alone;

impl ProcessGroup for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn engine(&self) -> &'static str {
        "alone"
    }

    fn sum(&mut self, _: Numbers<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn broadcast(&mut self, _: &mut [u8], _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
