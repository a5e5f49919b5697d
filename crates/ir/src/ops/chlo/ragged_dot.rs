//! The rule of `chlo.ragged_dot`.

use super::super::contraction::{check_precision, dot_shape};
use crate::attr::{Attribute, RaggedDotDims};
use crate::types::{Dim, TensorType, Type};
use crate::verify::{Cx, compatible};

/// Which kind of dimension is cut into groups.
#[derive(PartialEq, Eq)]
enum Mode {
    NonContracting,
    Contracting,
    Batch,
}

pub(super) fn rule(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (lhs, rhs, sizes) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let Attribute::RaggedDot(dims) = cx.attr("ragged_dot_dimension_numbers")? else { return None };
    check_precision(cx, "precision_config");
    let &[ragged] = dims.lhs_ragged.as_slice() else {
        cx.fail("ragged", "there must be exactly one ragged dimension");
        return None;
    };
    dot_shape(cx, lhs, rhs, &dims.dot)?;
    if !cx.in_rank("ragged", "the ragged dimension", &[ragged], lhs.rank()) {
        return None;
    }
    let mode = if dims.dot.lhs_batching.contains(&ragged) {
        Mode::Batch
    } else if dims.dot.lhs_contracting.contains(&ragged) {
        Mode::Contracting
    } else {
        Mode::NonContracting
    };
    let Some(&groups) = sizes.dims().last() else {
        cx.fail("groups", "group_sizes must have a dimension");
        return None;
    };
    check_sizes(cx, &mode, lhs, sizes, dims, ragged);
    check_groups(cx, &mode, rhs, groups, dims);
    if cx.is_broken() {
        return None;
    }
    cx.gives_shape("result", lhs, shape(&mode, lhs, rhs, groups, dims))
}

/// Group sizes are given once, or for each index of the dimensions outside the ragged one.
fn check_sizes(
    cx: &mut Cx<'_>,
    mode: &Mode,
    lhs: &TensorType,
    sizes: &TensorType,
    dims: &RaggedDotDims,
    ragged: i64,
) {
    let before =
        |list: &[i64]| -> Vec<i64> { list.iter().copied().take_while(|dim| *dim != ragged).collect() };
    let (batching, contracting) = (&dims.dot.lhs_batching, &dims.dot.lhs_contracting);
    let outer = match mode {
        Mode::Batch => before(batching),
        Mode::Contracting => [batching.clone(), before(contracting)].concat(),
        Mode::NonContracting => {
            let free = (0..ragged).filter(|dim| !batching.contains(dim) && !contracting.contains(dim));
            batching.iter().copied().chain(free).collect()
        }
    };
    if sizes.rank() == 1 || !cx.same_count("groups", "the rank of group_sizes", sizes.rank(), outer.len() + 1)
    {
        return;
    }
    let expected: Vec<Dim> = outer.iter().filter_map(|dim| lhs.dim(usize::try_from(*dim).ok()?)).collect();
    let fits = sizes.dims().starts_with(&expected);
    cx.check(fits, "groups", || format!("{sizes} does not give sizes for the groups of {lhs}"));
}

/// Matrices are given by group where the ragged dimension is not contracted.
fn check_groups(cx: &mut Cx<'_>, mode: &Mode, rhs: &TensorType, groups: Dim, dims: &RaggedDotDims) {
    let listed = dims.rhs_group.as_slice();
    cx.in_rank("groups", "a group dimension", listed, rhs.rank());
    cx.unique("groups", "group and batching dimensions", &[listed, &dims.dot.rhs_batching].concat());
    cx.unique("groups", "group and contracting dimensions", &[listed, &dims.dot.rhs_contracting].concat());
    let expected = usize::from(*mode == Mode::NonContracting);
    if !cx.same_count("groups", "group dimensions", listed.len(), expected) || cx.is_broken() {
        return;
    }
    if let Some(size) = listed.first().and_then(|dim| rhs.dim(*dim as usize)) {
        cx.check(compatible::same_size(size, groups), "groups", || {
            format!("{rhs} has {size} groups where {groups} sizes are given")
        });
    }
}

fn shape(mode: &Mode, lhs: &TensorType, rhs: &TensorType, groups: Dim, dims: &RaggedDotDims) -> Vec<Dim> {
    let at = |tensor: &TensorType, dim: i64| tensor.dims()[dim as usize];
    let free = |tensor: &TensorType, lists: &[&[i64]]| -> Vec<Dim> {
        let kept = (0..tensor.rank() as i64).filter(|dim| !lists.iter().any(|list| list.contains(dim)));
        kept.map(|dim| at(tensor, dim)).collect()
    };
    let dot = &dims.dot;
    let mut shape = Vec::new();
    if *mode == Mode::Contracting {
        shape.push(groups);
    }
    shape.extend(dot.lhs_batching.iter().map(|dim| at(lhs, *dim)));
    shape.extend(free(lhs, &[&dot.lhs_batching, &dot.lhs_contracting]));
    shape.extend(free(rhs, &[&dot.rhs_batching, &dot.rhs_contracting, &dims.rhs_group]));
    shape
}
