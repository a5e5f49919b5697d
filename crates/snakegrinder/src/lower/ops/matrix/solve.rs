//! Equations.

use warpforge_ir::Attribute;
use warpforge_ir::attr::Transpose;

use super::super::prelude::*;

pub(super) const TABLE: &[Op] = &[op("aten.linalg_solve_triangular.default", solve_triangular)];

/// `X` in `A @ X = B`, or in `X @ A = B`, for triangular `A`; what is on its other side is not looked at.
fn solve_triangular(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (a, b) = (args.tensor("self")?, args.tensor("B")?);
    let (upper, left) = (args.bool_or("upper", false)?, args.bool_or("left", true)?);
    let unit = args.bool_or("unitriangular", false)?;
    if a.rank() < 2 || b.rank() < 2 {
        return refuse("equations of something that is no matrix");
    }
    let batch = cx.broadcast_shape(&[&a.dims[..a.rank() - 2], &b.dims[..b.rank() - 2]])?;
    let [a, b] = [a, b].map(|x| {
        let dims: Vec<Size> = batch.iter().chain(&x.dims[x.rank() - 2..]).cloned().collect();
        cx.expand_to(&x, &dims)
    });
    let (a, b) = (a?, b?);
    // Without right-hand sides there is nothing to solve.
    if b.dims.iter().any(|size| size.is(0)) {
        return one(b);
    }
    let attrs = [
        ("left_side", Attribute::Bool(left)),
        ("lower", Attribute::Bool(!upper)),
        ("unit_diagonal", Attribute::Bool(unit)),
        ("transpose_a", Attribute::enumeration(Transpose::No)),
    ];
    let id = cx.b.op(OpKind::TriangularSolve, &[a.id, b.id], attrs)?;
    one(cx.tensor(id, b.dtype, b.dims.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn triangular_equations_are_solved_from_either_side() {
        let flag = |value: bool| Plain(json!({"as_bool": value}));
        // The 9 is on the side that is not looked at.
        for (left, right_side, expected) in [(true, [2.0, 7.0], [1.0, 2.0]), (false, [5.0, 6.0], [1.0, 2.0])]
        {
            let shape: &'static [usize] = if left { &[2, 1] } else { &[1, 2] };
            let arguments = vec![
                ("self", Floats(&[2, 2], vec![2.0, 9.0, 1.0, 3.0])),
                ("B", Floats(shape, right_side.to_vec())),
                ("upper", flag(false)),
                ("left", flag(left)),
            ];
            let found = evaluated("aten.linalg_solve_triangular.default", arguments, &[(F32, shape)]);
            let expected: &[f64] = if left { &expected } else { &[1.5, 2.0] };
            assert_eq!(found[0], expected);
        }
    }
}
