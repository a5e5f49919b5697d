//! What almost every lowering needs.

pub(super) use warpforge_ir::attr::ComparisonDirection as Cmp;
pub(super) use warpforge_ir::{ElementType, OpKind};
pub(super) use warpforge_tensor::Scalar;

pub(super) use super::{Op, Outcome, one, op, view};
pub(super) use crate::graph::size::Size;
pub(super) use crate::lower::args::Args;
pub(super) use crate::lower::cx::Cx;
pub(super) use crate::lower::promote::{opmath, promote, result_type, to_inexact};
pub(super) use crate::lower::refusal::{Lowered, refuse};
pub(super) use crate::lower::value::{Number, Operand, Tensor, Value};
