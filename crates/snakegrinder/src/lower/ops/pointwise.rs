//! Operations on single elements.

use super::{Op, Outcome, one, op};
use crate::lower::args::Args;
use crate::lower::cx::Cx;
use crate::lower::refusal::Lowered;
use warpforge_ir::OpKind;

pub(super) const TABLE: &[Op] = &[op("aten.relu.default", relu)];

fn relu(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    one(cx.with_number(OpKind::Maximum, &x, 0)?)
}
