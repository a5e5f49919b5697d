//! Views by strides: windows, and elements by their place in memory.

use super::super::indexing::{put_rows, take_rows};
use super::super::prelude::*;
use crate::graph::schema::{SymInt, TensorMeta};

pub(super) const TABLE: &[Op] = &[
    view("aten.as_strided.default", as_strided),
    op("aten.as_strided_scatter.default", as_strided_scatter),
    view("aten.unfold.default", unfold),
];

/// Windows along a dimension, as a new last dimension.
fn unfold(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let axis = cx.axis(args.int("dimension")?, x.rank())?;
    let (size, step) = (args.int("size")?, args.int("step")?);
    if step < 1 || size < 0 {
        return refuse("windows that do not exist");
    }
    if x.rank() == 0 {
        // A number is a line of one.
        let line = cx.reshape(&x, &[Size::Int(1)])?;
        let window = cx.slice(&line, 0, &Size::Int(0), &Size::Int(size.min(1)), 1)?;
        return one(cx.frozen_view(&x, &window));
    }
    let whole = cx.known(&[x.dim(axis)])?[0];
    let Some(count) = whole.checked_sub(size).filter(|rest| *rest >= 0).map(|rest| rest / step + 1) else {
        return refuse("a window larger than the dimension");
    };
    cx.table_length(&[count, size])?;
    let indices: Vec<Scalar> = (0..count)
        .flat_map(|window| (0..size).map(move |at| Scalar::Int(i128::from(window * step + at))))
        .collect();
    let flat = cx.constant(ElementType::I64, &[indices.len()], indices)?;
    let taken = take_rows(cx, &x, axis, &flat)?;
    let mut dims = x.dims.to_vec();
    dims[axis] = Size::Int(count);
    dims.insert(axis + 1, Size::Int(size));
    let split = cx.reshape(&taken, &dims)?;
    let mut order: Vec<usize> = (0..=x.rank()).filter(|at| *at != axis + 1).collect();
    order.push(axis + 1);
    let value = cx.transpose(&split, &order)?;
    one(cx.frozen_view(&x, &value))
}

/// Elements by their place in memory.
fn as_strided(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let x = args.tensor("self")?;
    let places = match Places::read(cx, args, &x)? {
        Layout::Same => return one(x),
        Layout::Other(places) => places,
    };
    let stored = places.stored(cx, &x)?;
    let taken = take_rows(cx, &stored, 0, &places.flat)?;
    let value = cx.reshape(&taken, &places.dims)?;
    one(cx.frozen_view(&x, &value))
}

/// A tensor with elements replaced, by their place in memory.
fn as_strided_scatter(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, source) = (args.tensor("self")?, args.tensor("src")?);
    let places = match Places::read(cx, args, &x)? {
        Layout::Same => return one(cx.convert(&source, x.dtype)?.fresh()),
        Layout::Other(places) => places,
    };
    let source = cx.convert(&source, x.dtype)?;
    let source = cx.reshape(&source, &[Size::product(&places.dims)])?;
    let stored = places.stored(cx, &x)?;
    let changed = put_rows(cx, &stored, 0, &places.flat, &source, OpKind::Return)?;
    one(places.restored(cx, &x, &changed)?)
}

/// How elements by their place in memory relate to a tensor.
enum Layout {
    /// They are the tensor as it is.
    Same,
    Other(Places),
}

/// Elements of a tensor by their place in memory.
struct Places {
    /// The tensor's dimensions, the outermost in memory first.
    order: Vec<usize>,
    /// How many elements the tensor has.
    count: i64,
    /// The places, one after the other.
    flat: Tensor,
    /// The shape that they are to have.
    dims: Vec<Size>,
}

/// Whether a tensor has these sizes and strides already, dynamic ones among them; a stride along a dimension of one is
/// never used.
fn lies_so(cx: &Cx<'_>, x: &Tensor, meta: &TensorMeta, sizes: &[Size], strides: &[Size]) -> bool {
    let own = meta.strides.iter().zip(strides);
    *x.dims == *sizes
        && [meta.strides.len(), strides.len()] == [sizes.len(); 2]
        && own
            .zip(sizes)
            .all(|((own, asked), size)| size.is(1) || cx.symbols.size(own).is_ok_and(|own| own == *asked))
}

impl Places {
    /// Reads `size`, `stride` and `storage_offset`; known where the archive records how the tensor lies in memory.
    fn read(cx: &mut Cx<'_>, args: &Args<'_>, x: &Tensor) -> Lowered<Layout> {
        let Some(meta) = args.meta("self") else {
            return refuse("nothing says how its argument lies in memory");
        };
        let SymInt::Int(own_offset) = meta.storage_offset else { return refuse("a dynamic place in memory") };
        let offset = args.opt_int("storage_offset")?.unwrap_or(own_offset);
        if offset == own_offset && lies_so(cx, x, meta, &args.sizes("size")?, &args.sizes("stride")?) {
            return Ok(Layout::Same);
        }
        let (sizes, strides) = (args.ints("size")?, args.ints("stride")?);
        let Some((own_sizes, own_strides)) = cx.recorded_layout(meta) else {
            return refuse("nothing says how its argument lies in memory");
        };
        cx.known(&x.dims)?;
        // The tensor's dimensions in the order in which they lie in memory must fill it without gaps.
        let mut order: Vec<usize> = (0..own_sizes.len()).collect();
        order.sort_by_key(|&axis| std::cmp::Reverse((own_strides[axis], own_sizes[axis])));
        let mut count = 1;
        for &axis in order.iter().rev() {
            if own_sizes[axis] != 1 && own_strides[axis] != count {
                return refuse("its argument does not fill its memory");
            }
            count *= own_sizes[axis];
        }
        let dims: Vec<Size> = sizes.iter().map(|&size| Size::Int(size)).collect();
        let first = offset.saturating_sub(own_offset);
        let last = sizes
            .iter()
            .zip(&strides)
            .fold(first, |sum, (size, stride)| sum.saturating_add((size - 1).max(0).saturating_mul(*stride)));
        if first < 0 || last >= count {
            return refuse("it reaches beyond its argument");
        }
        let mut place = cx.splat(ElementType::I64, &dims, first)?;
        for (axis, &stride) in strides.iter().enumerate() {
            let index = cx.iota(ElementType::I64, &dims, axis)?;
            let part = cx.with_number(OpKind::Multiply, &index, stride)?;
            place = cx.add(&place, &part)?;
        }
        let flat = cx.reshape(&place, &[Size::product(&dims)])?;
        Ok(Layout::Other(Self { order, count, flat, dims }))
    }

    /// The elements in the order in which they lie in memory.
    fn stored(&self, cx: &mut Cx<'_>, x: &Tensor) -> Lowered<Tensor> {
        let stored = cx.transpose(x, &self.order)?;
        cx.reshape(&stored, &[Size::Int(self.count)])
    }

    /// The opposite of [`Places::stored`].
    fn restored(&self, cx: &mut Cx<'_>, x: &Tensor, stored: &Tensor) -> Lowered<Tensor> {
        let dims: Vec<Size> = self.order.iter().map(|&axis| x.dim(axis)).collect();
        let ordered = cx.reshape(stored, &dims)?;
        let mut back = vec![0; self.order.len()];
        for (at, &axis) in self.order.iter().enumerate() {
            back[axis] = at;
        }
        cx.transpose(&ordered, &back)
    }
}
