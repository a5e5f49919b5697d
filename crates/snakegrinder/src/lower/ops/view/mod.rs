//! Other looks at the same elements: shapes, orders, parts.

mod convert;
mod parts;
mod reshape;
mod strided;

use super::prelude::Op;

pub(super) use self::parts::diagonal_of;
pub(super) use self::reshape::at_least;

pub(super) const TABLES: &[&[Op]] = &[convert::TABLE, parts::TABLE, reshape::TABLE, strided::TABLE];
