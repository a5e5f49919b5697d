//! The operations, one file for each family: table entries, constraints and shape inference.

mod chlo;
mod collective;
mod contraction;
mod control;
mod elementwise;
mod indexing;
mod linalg;
mod quantized;
mod random;
mod reduction;
mod shape;
mod testing;

pub(crate) use elementwise::same_types;

use crate::table::{Entry, Family};

/// Every family with its entries: the list that the table is made from.
pub(crate) const FAMILIES: &[(Family, &[Entry])] = &[
    (Family::Control, control::ENTRIES),
    (Family::Elementwise, elementwise::ENTRIES),
    (Family::Shape, shape::ENTRIES),
    (Family::Contraction, contraction::ENTRIES),
    (Family::Indexing, indexing::ENTRIES),
    (Family::Reduction, reduction::ENTRIES),
    (Family::Collective, collective::ENTRIES),
    (Family::Linalg, linalg::ENTRIES),
    (Family::Random, random::ENTRIES),
    (Family::Quantized, quantized::ENTRIES),
    (Family::Chlo, chlo::ENTRIES),
    (Family::Testing, testing::ENTRIES),
];
