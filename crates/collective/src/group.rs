//! What an engine of collectives does.

use crate::Error;

/// Numbers that are added up.
#[derive(Debug)]
pub enum Numbers<'a> {
    /// Single precision.
    F32(&'a mut [f32]),
    /// Double precision.
    F64(&'a mut [f64]),
}

/// Ranks that run the same collectives in the same order.
///
/// After a failure the group is of no use: every further call fails.
pub trait ProcessGroup {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// The name of the engine.
    fn engine(&self) -> &'static str;

    /// Adds up the numbers of all ranks; every rank has the same sums, bit for bit.
    ///
    /// # Errors
    ///
    /// When a rank is gone, or at another operation.
    fn sum(&mut self, numbers: Numbers<'_>) -> Result<(), Error>;

    /// Gives all ranks the bytes of one.
    ///
    /// # Errors
    ///
    /// As [`ProcessGroup::sum`].
    fn broadcast(&mut self, bytes: &mut [u8], root: usize) -> Result<(), Error>;

    /// Leaves the group in peace: the other ranks do not miss this one.
    ///
    /// # Errors
    ///
    /// When the engine cannot.
    fn finish(&mut self) -> Result<(), Error>;
}
