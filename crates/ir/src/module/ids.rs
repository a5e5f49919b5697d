//! Small keys into a module's arenas.

use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(u32);

            impl $name {
                pub(crate) fn new(index: usize) -> Self {
                    // Four billion operations do not fit in memory, so the arenas cannot reach this.
                    Self(u32::try_from(index).unwrap_or(u32::MAX))
                }

                /// The position in the arena: dense, so that a vector can map from it.
                pub fn index(self) -> usize {
                    self.0 as usize
                }
            }

            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    write!(f, concat!($prefix, "{}"), self.0)
                }
            }
        )*
    };
}

ids! {
    /// An operation of a module.
    OpId "op";
    /// A value of a module: a result of an operation or an argument of a block.
    ValueId "v";
    /// A block of a module.
    BlockId "block";
    /// A region of a module.
    RegionId "region";
}
