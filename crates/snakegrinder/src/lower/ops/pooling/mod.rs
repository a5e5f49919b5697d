//! Pooling: windows reduced to their largest element or their mean.

mod adaptive;
mod average;
mod maximum;
mod unpool;

use warpforge_ir::Attribute;
use warpforge_ir::attr::DenseElements;

use super::prelude::*;
use crate::lower::refusal::Refusal;
use crate::lower::value::value_type;

pub(super) use self::adaptive::ranges;
pub(super) use self::average::counts;
pub(super) use self::maximum::gradient;

pub(super) const TABLES: &[&[Op]] = &[adaptive::TABLE, average::TABLE, maximum::TABLE, unpool::TABLE];

/// The row-major index of each element in a plane of these dimensions, whose sizes are known.
fn plane_index(cx: &mut Cx<'_>, dims: &[Size], sizes: &[i64]) -> Lowered<Tensor> {
    let mut place = cx.splat(ElementType::I64, dims, 0)?;
    for at in 0..dims.len() {
        let index = cx.iota(ElementType::I64, dims, at)?;
        let stride: i64 = sizes[at + 1..].iter().product();
        let part = cx.with_number(OpKind::Multiply, &index, stride)?;
        place = cx.add(&place, &part)?;
    }
    Ok(place)
}

/// The windows of a pooling in its spatial dimensions, which are the last ones.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    pub(super) kernel: Vec<i64>,
    pub(super) strides: Vec<i64>,
    /// Elements added before, and after without `ceil_mode`.
    pub(super) padding: Vec<i64>,
    dilation: Vec<i64>,
    /// Elements added after, with what `ceil_mode` adds.
    after: Vec<i64>,
    /// The output's sizes.
    output: Vec<Size>,
}

impl Windows {
    /// Windows at every place, so many of them.
    pub(super) fn sliding(kernel: &[i64], output: &[Size]) -> Self {
        let count = kernel.len();
        Self {
            kernel: kernel.to_vec(),
            strides: vec![1; count],
            padding: vec![0; count],
            dilation: vec![1; count],
            after: vec![0; count],
            output: output.to_vec(),
        }
    }

    pub(super) fn read(args: &Args<'_>, x: &Tensor, spatial: usize) -> Lowered<Self> {
        let kernel = args.ints_for("kernel_size", spatial, 1)?;
        // Strides that are left out are those of the kernel: windows side by side.
        let strides = match args.opt_ints("stride")?.filter(|strides| !strides.is_empty()) {
            Some(_) => args.ints_for("stride", spatial, 1)?,
            None => kernel.clone(),
        };
        let padding = args.ints_for("padding", spatial, 0)?;
        let dilation = args.ints_for("dilation", spatial, 1)?;
        let ceil = args.bool_or("ceil_mode", false)?;
        let Some(lead) = x.rank().checked_sub(spatial) else {
            return refuse("an input of too few dimensions");
        };
        let mut after = Vec::new();
        let mut output = Vec::new();
        for at in 0..spatial {
            let (step, pad, reach) = (strides[at], padding[at], dilation[at] * (kernel[at] - 1) + 1);
            if step < 1 {
                return refuse("a stride of 0");
            }
            let size = x.dim(lead + at);
            let room = size.add(&Size::Int(2 * pad - reach));
            let more = if ceil { step - 1 } else { 0 };
            let Some(steps) = room.add(&Size::Int(more)).floor_div(&Size::Int(step)) else {
                return refuse("a stride of 0");
            };
            let mut count = steps.add(&Size::Int(1));
            let mut extra = pad;
            if ceil {
                let (size, known) = match (size.as_int(), count.as_int()) {
                    (Some(size), Some(known)) => (size, known),
                    _ => return refuse("ceil_mode of a dynamic dimension"),
                };
                // The last window must begin inside the input or the padding before it.
                let known = if (known - 1) * step >= size + pad { known - 1 } else { known };
                count = Size::Int(known);
                extra = ((known - 1) * step + reach - size - pad).max(pad);
            }
            after.push(extra);
            output.push(count);
        }
        Ok(Self { kernel, strides, padding, dilation, after, output })
    }

    /// Whether elements of a window are next to each other, and the windows that fit are all there are.
    fn are_dense_in(&self, x: &Tensor) -> bool {
        let lead = x.rank() - self.kernel.len();
        (0..self.kernel.len()).all(|at| {
            let (Some(size), Some(count)) = (x.dim(lead + at).as_int(), self.output[at].as_int()) else {
                return false;
            };
            let room = size + self.padding[at] + self.after[at] - self.kernel[at];
            self.dilation[at] == 1 && room >= 0 && room / self.strides[at] + 1 == count
        })
    }

    /// Sizes, strides and padding as operations on all dimensions of a tensor have them.
    fn attributes(&self, x: &Tensor) -> Lowered<[(&'static str, Attribute); 3]> {
        let lead = x.rank() - self.kernel.len();
        let full = |inner: &[i64]| -> Vec<i64> {
            std::iter::repeat_n(1, lead).chain(inner.iter().copied()).collect()
        };
        let mut padding = vec![0; 2 * lead];
        padding.extend(self.padding.iter().zip(&self.after).flat_map(|(&before, &after)| [before, after]));
        let padding = DenseElements::i64s(&[x.rank() as u64, 2], &padding)
            .map_err(|error| Refusal(error.to_string()))?;
        Ok([
            ("window_dimensions", Attribute::i64s(full(&self.kernel))),
            ("window_strides", Attribute::i64s(full(&self.strides))),
            ("padding", padding.into()),
        ])
    }

    /// Folds the windows of a tensor.
    pub(super) fn reduce(&self, cx: &mut Cx<'_>, x: &Tensor, kind: OpKind, start: Scalar) -> Lowered<Tensor> {
        let lead = x.rank() - self.kernel.len();
        let dilation: Vec<i64> = std::iter::repeat_n(1, lead).chain(self.dilation.iter().copied()).collect();
        let attrs = self.attributes(x)?.into_iter().chain([("window_dilations", Attribute::i64s(dilation))]);
        let mut dims = x.dims[..lead].to_vec();
        dims.extend(self.output.iter().cloned());
        let region = cx.b.reducer(kind, x.dtype)?;
        let start = cx.b.scalar(x.dtype, start)?;
        let ty = value_type(x.dtype, &dims);
        // What ceil_mode adds may not fill a window: a reduction of all windows that fit, of which the output takes the first.
        let op = cx.b.create(OpKind::ReduceWindow, &[x.id, start], attrs, vec![region], Some(&[ty]))?;
        match cx.b.results(op).first() {
            Some(&id) => Ok(cx.tensor(id, x.dtype, dims)),
            None => refuse("a reduction without a result"),
        }
    }
}
