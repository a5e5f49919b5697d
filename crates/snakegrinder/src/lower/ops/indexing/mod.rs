//! Elements at places that tensors of indices name.

mod advanced;
mod along;
mod bag;
mod embedding;
mod rows;
mod search;

use super::prelude::Op;

pub(super) use self::along::{gather_along, scatter_along};
pub(super) use self::rows::{gather, put_rows, take_rows};

pub(super) const TABLES: &[&[Op]] =
    &[advanced::TABLE, along::TABLE, bag::TABLE, embedding::TABLE, rows::TABLE, search::TABLE];
