//! Operations with one result in the forms that the graph has for them.

use warpforge_ir::attr::ElementData;
use warpforge_ir::calls::KnownCall;
use warpforge_ir::{OpKind, OpRef};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::contraction::{convolution, dot_of, reduce_window, window};
use super::indexing;
use super::reduce::{reduce_kind, with_initial};
use super::sizes::{signed, sizes};
use crate::graph::NodeId;
use crate::graph::build::Builder;
use crate::graph::op::{Dot, Op};
use crate::graph::scalar::comparison_type;
use crate::view::LayoutOp;

/// An operation with one result, of nodes that need not be of the types that the module says, in the graph's form for it.
pub(super) fn lowered(
    b: &mut Builder,
    op: OpRef<'_>,
    given: Vec<NodeId>,
    element: ElementType,
    dims: Vec<usize>,
) -> Option<NodeId> {
    let kind = op.kind()?;
    Some(match kind {
        OpKind::Constant => constant(b, op, dims)?,
        OpKind::Iota => {
            b.add(Op::Iota(usize::try_from(op.attr_i64("iota_dimension")?).ok()?), vec![], element, dims)
        }
        OpKind::Compare => {
            let (a, c) = (*given.first()?, *given.get(1)?);
            let order = op.attr_enum("compare_type");
            let order = order.unwrap_or_else(|| comparison_type(b.node(a).element));
            b.compare(op.attr_enum("comparison_direction")?, order, a, c)
        }
        OpKind::Clamp => {
            let [low, value, high] = given[..] else { return None };
            let [low, high] = [low, high].map(|bound| spread(b, bound, &dims));
            let raised = b.map(Function::Maximum, vec![value, low]);
            b.map(Function::Minimum, vec![raised, high])
        }
        OpKind::Select => {
            let [condition, yes, no] = given[..] else { return None };
            let condition = spread(b, condition, &dims);
            b.add(Op::Elementwise(Function::Select), vec![condition, yes, no], element, dims)
        }
        OpKind::Reshape => b.reshape(*given.first()?, dims),
        OpKind::Transpose => b.transpose(*given.first()?, sizes(op.attr_i64s("permutation")?)?),
        OpKind::BroadcastInDim => {
            b.broadcast(*given.first()?, dims, &sizes(op.attr_i64s("broadcast_dimensions")?)?)
        }
        OpKind::Slice => {
            let steps = sizes(op.attr_i64s("strides")?)?;
            let starts = sizes(op.attr_i64s("start_indices")?)?;
            let step = LayoutOp::Slice { starts, steps, dims: dims.clone() };
            b.add(Op::Layout(step), given, element, dims)
        }
        OpKind::Reverse => {
            let step = LayoutOp::Reverse(sizes(op.attr_i64s("dimensions")?)?);
            b.add(Op::Layout(step), given, element, dims)
        }
        OpKind::Concatenate => {
            let given: Vec<NodeId> = given.into_iter().filter(|&id| !b.node(id).is_empty()).collect();
            match given[..] {
                [one] => one,
                [] => return None,
                _ => {
                    let axis = usize::try_from(op.attr_i64("dimension")?).ok()?;
                    b.add(Op::Concat(axis), given, element, dims)
                }
            }
        }
        OpKind::Pad => {
            let low = signed(op.attr_i64s("edge_padding_low")?);
            let high = signed(op.attr_i64s("edge_padding_high")?);
            let interior = sizes(op.attr_i64s("interior_padding")?)?;
            b.add(Op::Pad { low, high, interior }, given, element, dims)
        }
        OpKind::Reduce => {
            let kind = reduce_kind(op)?;
            let [input, init] = given[..] else { return None };
            let axes = sizes(op.attr_i64s("dimensions")?)?;
            if b.node(input).is_empty() {
                return Some(b.broadcast(init, dims, &[]));
            }
            let reduced = b.add(Op::Reduce(kind, axes), vec![input], element, dims.clone());
            with_initial(b, kind, reduced, init, dims)?
        }
        OpKind::ReduceWindow => {
            let kind = reduce_kind(op)?;
            let [input, init] = given[..] else { return None };
            let Op::Constant(init) = b.node(init).op.clone() else { return None };
            let window = window(op)?;
            reduce_window(b, (kind, init), window, input, element, dims)
        }
        OpKind::DotGeneral => {
            let numbers = op.dot_dims()?;
            let dot = Dot {
                lhs_batch: sizes(&numbers.lhs_batching)?,
                rhs_batch: sizes(&numbers.rhs_batching)?,
                lhs_contract: sizes(&numbers.lhs_contracting)?,
                rhs_contract: sizes(&numbers.rhs_contracting)?,
                imprecise_sums: op.dot_algorithm().is_some_and(|asked| asked.allow_imprecise_accumulation),
                ..Dot::default()
            };
            dot_of(b, dot, &given, element, dims)?
        }
        OpKind::Dot => {
            let rank = b.node(*given.first()?).dims.len();
            let contract = rank.checked_sub(1)?;
            let dot = Dot { lhs_contract: vec![contract], rhs_contract: vec![0], ..Dot::default() };
            dot_of(b, dot, &given, element, dims)?
        }
        OpKind::Convolution => convolution(b, op, &given, element, &dims)?,
        OpKind::Gather => {
            let gather = Op::Gather(op.gather_dims()?.clone(), sizes(op.attr_i64s("slice_sizes")?)?);
            b.add(gather, given, element, dims)
        }
        OpKind::Scatter => indexing::scatter(b, op, given, element, dims)?,
        OpKind::DynamicSlice => indexing::dynamic_slice(b, given, element, dims)?,
        OpKind::DynamicUpdateSlice => indexing::dynamic_update_slice(b, given, element, dims)?,
        OpKind::SelectAndScatter => indexing::select_and_scatter(b, op, given, element, dims)?,
        OpKind::CustomCall => b.add(Op::Call(KnownCall::of(op)?), given, element, dims),
        _ => b.add(Op::Elementwise(Function::of_op(kind.name())?), given, element, dims),
    })
}

/// A constant; a splat is a scalar that repeats. A quantized one is its integers.
fn constant(b: &mut Builder, op: OpRef<'_>, dims: Vec<usize>) -> Option<NodeId> {
    let elements = op.attr_elements("value")?;
    let element = elements.ty().element().storage()?;
    match elements.data() {
        ElementData::Splat(bytes) => {
            let one = b.constant(Tensor::from_bytes(element, Shape::scalar(), bytes).ok()?);
            Some(b.broadcast(one, dims, &[]))
        }
        ElementData::Raw(bytes) => {
            Some(b.constant(Tensor::from_blob(element, Shape::new(dims).ok()?, bytes.clone()).ok()?))
        }
        ElementData::Resource(_) => None,
    }
}

/// A scalar in these dimensions; anything else as it is.
fn spread(b: &mut Builder, id: NodeId, dims: &[usize]) -> NodeId {
    if b.node(id).dims.is_empty() && !dims.is_empty() { b.broadcast(id, dims.to_vec(), &[]) } else { id }
}
