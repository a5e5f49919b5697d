//! Matrix products.

use super::{Op, Outcome, one, op};
use crate::lower::args::Args;
use crate::lower::cx::Cx;
use crate::lower::refusal::{Lowered, refuse};
use crate::lower::value::{Tensor, value_type};
use warpforge_ir::attr::DotDims;
use warpforge_ir::{Attribute, OpKind};

pub(super) const TABLE: &[Op] = &[op("aten.linear.default", linear)];

fn linear(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, weight) = (args.tensor("input")?, args.tensor("weight")?);
    let product = contract_last(cx, &x, &weight)?;
    match args.opt_tensor("bias")? {
        None => one(product),
        Some(bias) => {
            let bias = cx.expand_to(&bias, &product.dims)?;
            one(cx.add(&product, &bias)?)
        }
    }
}

fn contract_last(cx: &mut Cx<'_>, x: &Tensor, weight: &Tensor) -> Lowered<Tensor> {
    if x.rank() == 0 || weight.rank() == 0 {
        return refuse("a product of scalars");
    }
    let dims = DotDims {
        lhs_contracting: vec![x.rank() as i64 - 1],
        rhs_contracting: vec![weight.rank() as i64 - 1],
        ..DotDims::default()
    };
    let mut result = x.dims.to_vec();
    result.pop();
    result.extend_from_slice(&weight.dims[..weight.rank() - 1]);
    let attrs = [("dot_dimension_numbers", Attribute::Dot(dims.into()))];
    let id = cx.b.op_as(OpKind::DotGeneral, &[x.id, weight.id], attrs, value_type(x.dtype, &result))?;
    Ok(cx.tensor(id, x.dtype, result))
}
