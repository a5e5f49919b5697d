//! Dots of the groups of a ragged dimension.
//!
//! The left operand's ragged dimension is cut into groups of given sizes. Three modes: the dimension is free (each group
//! meets a matrix of its own on the right), summed over (each group gives a matrix), or a batching one (the groups only
//! say how much of it is used). The sizes are the same everywhere, or there is a list of them for each index of the
//! dimensions that stand before the ragged one: the batching ones, and those of its own kind.

use warpforge_ir::attr::{Attribute, DotDims, RaggedDotDims};
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::super::contraction::dot_of;
use super::super::shape::{sliced, steps_of};
use crate::Value;
use crate::cx::{Cx, missing, one, to_usizes};
use crate::error::{Result, invalid};
use crate::scalar;

/// What the ragged dimension is to the dot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Free,
    Contracting,
    Batching,
}

/// Dimensions of the left operand and what they meet.
struct Dims<'a> {
    numbers: &'a RaggedDotDims,
    ragged: usize,
    mode: Mode,
    /// The right operand's dimension with one matrix for each group, when the ragged dimension is free.
    group: Option<usize>,
    /// Dimensions of the left operand that the sizes may differ along.
    prefix: Vec<usize>,
}

impl<'a> Dims<'a> {
    fn new(numbers: &'a RaggedDotDims, lhs: &Tensor, rhs: &Tensor) -> Result<Self> {
        let &[ragged] = to_usizes(&numbers.lhs_ragged)?.as_slice() else {
            return Err(invalid("one ragged dimension is needed"));
        };
        let rank = lhs.shape().rank();
        let (batching, contracting) =
            (to_usizes(&numbers.dot.lhs_batching)?, to_usizes(&numbers.dot.lhs_contracting)?);
        let mode = match (batching.contains(&ragged), contracting.contains(&ragged)) {
            (true, _) => Mode::Batching,
            (_, true) => Mode::Contracting,
            _ => Mode::Free,
        };
        let before =
            |list: &[usize]| list.iter().copied().take_while(|&dim| dim != ragged).collect::<Vec<_>>();
        let prefix = match mode {
            Mode::Batching => before(&batching),
            Mode::Contracting => [batching.clone(), before(&contracting)].concat(),
            Mode::Free => {
                let free = (0..rank).filter(|dim| !batching.contains(dim) && !contracting.contains(dim));
                [batching.clone(), before(&free.collect::<Vec<_>>())].concat()
            }
        };
        let group = match (mode, to_usizes(&numbers.rhs_group)?.as_slice()) {
            (Mode::Free, &[group]) if group < rhs.shape().rank() => Some(group),
            (Mode::Free, _) => return Err(invalid("one group dimension of the right operand is needed")),
            _ => None,
        };
        if ragged >= rank || prefix.iter().any(|&dim| dim >= rank) {
            return Err(invalid("a dimension number is no dimension of the left operand"));
        }
        Ok(Self { numbers, ragged, mode, group, prefix })
    }

    /// The dimension of the right operand that meets one of the left.
    fn partner(&self, dim: usize) -> Option<usize> {
        let DotDims { lhs_batching, rhs_batching, lhs_contracting, rhs_contracting } = &self.numbers.dot;
        let pairs = lhs_batching.iter().zip(rhs_batching).chain(lhs_contracting.iter().zip(rhs_contracting));
        let found = pairs.into_iter().find(|(left, _)| usize::try_from(**left) == Ok(dim));
        found.and_then(|(_, &right)| usize::try_from(right).ok())
    }

    /// The dimension of the result that one of the left operand becomes; none where it is summed over.
    fn target(&self, dim: usize) -> Option<usize> {
        let is_in =
            |list: &[i64], dim: usize| list.iter().position(|&other| usize::try_from(other) == Ok(dim));
        let DotDims { lhs_batching, lhs_contracting, .. } = &self.numbers.dot;
        let plain = match is_in(lhs_batching, dim) {
            Some(place) => place,
            None if is_in(lhs_contracting, dim).is_some() => return None,
            None => {
                let free = |other: &usize| {
                    is_in(lhs_batching, *other).is_none() && is_in(lhs_contracting, *other).is_none()
                };
                lhs_batching.len() + (0..dim).filter(free).count()
            }
        };
        // The groups come first where each gives a matrix.
        Some(plain + usize::from(self.mode == Mode::Contracting))
    }

    /// The numbers of the dot of one group.
    fn inner(&self) -> DotDims {
        let mut dot = self.numbers.dot.clone();
        if let Some(group) = self.group {
            // The dimensions behind the group's move up when it is gone.
            let group = group as i64;
            for dim in dot.rhs_batching.iter_mut().chain(&mut dot.rhs_contracting) {
                *dim -= i64::from(*dim > group);
            }
        }
        dot
    }
}

pub(super) fn ragged_dot(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let (lhs, rhs, sizes) = (cx.tensor(0)?.clone(), cx.tensor(1)?.clone(), cx.tensor(2)?.clone());
    let Some(Attribute::RaggedDot(numbers)) = cx.op.attr("ragged_dot_dimension_numbers") else {
        return Err(missing("ragged_dot_dimension_numbers"));
    };
    let dims = Dims::new(numbers, &lhs, &rhs)?;
    let (&groups, shared) = match sizes.dims().split_last() {
        Some((groups, outer)) => (groups, outer.is_empty()),
        None => return Err(invalid("the sizes of the groups have no dimension")),
    };
    let prefix: &[usize] = if shared { &[] } else { &dims.prefix };
    let outer: Vec<usize> = prefix.iter().map(|&dim| lhs.dims()[dim]).collect();
    if sizes.dims()[..sizes.shape().rank() - 1] != outer {
        return Err(invalid(format!(
            "sizes of groups of shape {} do not fit the left operand",
            sizes.shape()
        )));
    }
    let lengths = cx.operand_i64s(2)?;
    // What belongs to no group is zero.
    let mut result = Tensor::zeros(cx.result_element(0)?, cx.result_shape(0)?)?;
    let outer = Shape::new(outer)?;
    let mut indices = outer.indices();
    let mut list = 0;
    while let Some(index) = indices.advance() {
        let fixed: Vec<(usize, usize)> = prefix.iter().copied().zip(index.iter().copied()).collect();
        let mut start = 0;
        for group in 0..groups {
            let length = usize::try_from(lengths[list * groups + group]).unwrap_or(0);
            let end = start + length.min(lhs.dims()[dims.ragged] - start);
            if start < end {
                add_group(cx, &dims, (&lhs, &rhs), &fixed, (group, start, end), &mut result)?;
            }
            start = end;
        }
        list += 1;
    }
    one(result)
}

/// Computes the dot of one group, at one index of the prefix, and adds it to its place in the result.
fn add_group(
    cx: &Cx<'_, '_, '_>,
    dims: &Dims<'_>,
    (lhs, rhs): (&Tensor, &Tensor),
    fixed: &[(usize, usize)],
    (group, start, end): (usize, usize, usize),
    result: &mut Tensor,
) -> Result<()> {
    let mut left: Vec<(usize, usize, usize)> = fixed.iter().map(|&(dim, at)| (dim, at, at + 1)).collect();
    left.push((dims.ragged, start, end));
    let paired = |&(dim, from, to): &(usize, usize, usize)| dims.partner(dim).map(|dim| (dim, from, to));
    let mut right: Vec<(usize, usize, usize)> = left.iter().filter_map(paired).collect();
    right.extend(dims.group.map(|dim| (dim, group, group + 1)));
    let mut matrix = part(rhs, &right)?;
    if let Some(dim) = dims.group {
        let mut sizes = matrix.dims().to_vec();
        sizes.remove(dim);
        matrix = matrix.reshaped(Shape::new(sizes)?)?;
    }
    let product = dot_of(cx, &part(lhs, &left)?, &matrix, &dims.inner(), result.element_type())?;
    let mut starts = vec![0; result.shape().rank()];
    for &(dim, from, _) in &left {
        if let Some(target) = dims.target(dim).and_then(|target| starts.get_mut(target)) {
            *target = from;
        }
    }
    let mut sizes = product.dims().to_vec();
    if dims.mode == Mode::Contracting {
        sizes.insert(0, 1);
        starts[0] = group;
    }
    let product = product.reshaped(Shape::new(sizes)?)?;
    // Only where parts of one sum come from several lists of sizes is something there already.
    let sum = match dims.prefix.len() == fixed.len() && dims.mode == Mode::Contracting && !fixed.is_empty() {
        true => added(&sliced(result, product.shape().clone(), &starts, &vec![1; starts.len()])?, &product)?,
        false => product,
    };
    let steps = steps_of(result.shape());
    let first = starts.iter().zip(&steps).map(|(start, &step)| start * step as usize).sum();
    Ok(result.set_strided(first, &steps, &sum)?)
}

/// A part of a tensor: along some dimensions the elements from a first to before a last.
fn part(tensor: &Tensor, ranges: &[(usize, usize, usize)]) -> Result<Tensor> {
    ranges.iter().try_fold(tensor.clone(), |part, &(dim, start, end)| super::range(&part, dim, start, end))
}

fn added(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let element: ElementType = a.element_type();
    let add =
        scalar::binary(warpforge_ir::OpKind::Add, element).ok_or_else(|| invalid("sums of this type"))?;
    let values = a.iter().zip(b.iter()).map(|(a, b)| add(a, b));
    Ok(Tensor::from_scalars(element, a.shape().clone(), values)?)
}
