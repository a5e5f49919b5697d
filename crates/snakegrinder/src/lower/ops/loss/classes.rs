//! Losses of class scores.

use super::super::indexing::{gather_along, take_rows};
use super::super::prelude::*;
use super::super::reduction::{Softmax, softmax_of};
use super::Reduction;

pub(super) const TABLE: &[Op] = &[
    op("aten.cross_entropy_loss.default", cross_entropy),
    op("aten.nll_loss.default", |cx, args| one(nll_loss(cx, args)?.0))
        .also(&["aten.nll_loss2d.default", "aten.nll_loss_nd.default"]),
    op("aten.nll_loss2d_forward.default", nll_loss_forward).also(&["aten.nll_loss_forward.default"]),
];

/// The classes that samples should have, and what each sample counts.
pub(in super::super) struct Chosen {
    /// The dimension of the classes.
    pub(in super::super) axis: usize,
    /// The class of each sample; 0 where it is to be ignored.
    pub(in super::super) class: Tensor,
    /// The weight of each sample; 0 where it is to be ignored.
    pub(in super::super) weight: Tensor,
    /// Which samples are not to be ignored.
    counts: Tensor,
}

impl Chosen {
    /// Reads `target`, `weight` and `ignore_index` for scores of these dimensions.
    pub(in super::super) fn read(cx: &mut Cx<'_>, args: &Args<'_>, scores: &Tensor) -> Lowered<Self> {
        let (target, weight) = (args.tensor("target")?, args.opt_tensor("weight")?);
        let ignored = args.int_or("ignore_index", -100)?;
        let axis = usize::from(scores.rank() > 1);
        let samples: Vec<Size> =
            (0..scores.rank()).filter(|&at| at != axis).map(|at| scores.dim(at)).collect();
        let target = cx.convert(&target, ElementType::I64)?;
        // Without a batch the target may have a dimension of one.
        let target = cx.reshape(&target, &samples)?;
        let counts = cx.compare_number(Cmp::Ne, &target, ignored)?;
        let first = cx.splat_like(&target, 0)?;
        let class = cx.select(&counts, &target, &first)?;
        let weight = match weight {
            None => cx.convert(&counts, scores.dtype)?,
            Some(weight) => {
                let weight = cx.convert(&weight, scores.dtype)?;
                let flat = cx.reshape(&class, &[class.numel()])?;
                let each = take_rows(cx, &weight, 0, &flat)?;
                let each = cx.reshape(&each, &samples)?;
                let nothing = cx.splat_like(&each, 0.0)?;
                cx.select(&counts, &each, &nothing)?
            }
        };
        Ok(Self { axis, class, weight, counts })
    }

    /// `-score * weight` of each sample.
    fn losses(&self, cx: &mut Cx<'_>, scores: &Tensor) -> Lowered<Tensor> {
        let index = cx.unsqueeze(&self.class, self.axis)?;
        let own = gather_along(cx, scores, self.axis, &index)?;
        let own = cx.reshape(&own, &self.class.dims)?;
        let own = cx.mul(&own, &self.weight)?;
        // What is ignored may be infinite.
        let nothing = cx.splat_like(&own, 0.0)?;
        let own = cx.select(&self.counts, &own, &nothing)?;
        cx.neg(&own)
    }

    /// The sum of what the samples count.
    fn total(&self, cx: &mut Cx<'_>) -> Lowered<Tensor> {
        let axes: Vec<usize> = (0..self.weight.rank()).collect();
        cx.sum(&self.weight, &axes)
    }

    fn reduce(&self, cx: &mut Cx<'_>, losses: &Tensor, reduction: Reduction) -> Lowered<Tensor> {
        let axes: Vec<usize> = (0..losses.rank()).collect();
        match reduction {
            Reduction::None => Ok(losses.clone()),
            Reduction::Sum => cx.sum(losses, &axes),
            Reduction::Mean => {
                let (sum, total) = (cx.sum(losses, &axes)?, self.total(cx)?);
                cx.div(&sum, &total)
            }
        }
    }
}

fn nll_loss(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<(Tensor, Tensor)> {
    let x = args.tensor("self")?;
    let reduction = Reduction::read(args)?;
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let chosen = Chosen::read(cx, args, &wide)?;
    let losses = chosen.losses(cx, &wide)?;
    let loss = chosen.reduce(cx, &losses, reduction)?;
    let total = match reduction {
        Reduction::None => cx.splat(wide.dtype, &[], 0.0)?,
        Reduction::Mean | Reduction::Sum => chosen.total(cx)?,
    };
    Ok((cx.convert(&loss, x.dtype)?, cx.convert(&total, x.dtype)?))
}

fn nll_loss_forward(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (loss, total) = nll_loss(cx, args)?;
    Ok(vec![loss.into(), total.into()])
}

fn cross_entropy(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (x, target) = (args.tensor("self")?, args.tensor("target")?);
    let smoothing = args.float_or("label_smoothing", 0.0)?;
    let reduction = Reduction::read(args)?;
    let axis = usize::from(x.rank() > 1);
    let wide = cx.convert(&x, opmath(x.dtype))?;
    let scores = softmax_of(cx, &wide, &[axis], Softmax::Log)?;
    let classes = cx.known(&[x.dim(axis)])?[0] as f64;
    if target.is_inexact() && target.dims == x.dims {
        args.ignore(&["ignore_index"]);
        let loss = of_shares(cx, args, &scores, &target, smoothing / classes, 1.0 - smoothing)?;
        return one(cx.convert(&loss, x.dtype)?);
    }
    let chosen = Chosen::read(cx, args, &scores)?;
    let losses = chosen.losses(cx, &scores)?;
    let mut loss = chosen.reduce(cx, &losses, reduction)?;
    if smoothing > 0.0 {
        let smooth = chosen.all_classes(cx, args, &scores)?;
        let smooth = chosen.reduce(cx, &smooth, reduction)?;
        let smooth = cx.with_number(OpKind::Multiply, &smooth, smoothing / classes)?;
        let plain = cx.with_number(OpKind::Multiply, &loss, 1.0 - smoothing)?;
        loss = cx.add(&smooth, &plain)?;
    }
    one(cx.convert(&loss, x.dtype)?)
}

impl Chosen {
    /// The loss of each sample if it had all classes at once.
    fn all_classes(&self, cx: &mut Cx<'_>, args: &Args<'_>, scores: &Tensor) -> Lowered<Tensor> {
        let mut scores = scores.clone();
        if let Some(weight) = args.opt_tensor("weight")? {
            let weight = cx.convert(&weight, scores.dtype)?;
            let weight = cx.broadcast(&weight, &scores.dims.clone(), &[self.axis])?;
            scores = cx.mul(&scores, &weight)?;
        }
        let sum = cx.sum(&scores, &[self.axis])?;
        let sum = cx.neg(&sum)?;
        let nothing = cx.splat_like(&sum, 0.0)?;
        cx.select(&self.counts, &sum, &nothing)
    }
}

/// The cross entropy with targets that are shares of all classes.
fn of_shares(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    scores: &Tensor,
    target: &Tensor,
    added: f64,
    kept: f64,
) -> Lowered<Tensor> {
    let axis = usize::from(scores.rank() > 1);
    let reduction = Reduction::read(args)?;
    let target = cx.convert(target, scores.dtype)?;
    let target = cx.with_number(OpKind::Multiply, &target, kept)?;
    let target = cx.with_number(OpKind::Add, &target, added)?;
    let mut product = cx.mul(scores, &target)?;
    if let Some(weight) = args.opt_tensor("weight")? {
        let weight = cx.convert(&weight, scores.dtype)?;
        let weight = cx.broadcast(&weight, &scores.dims.clone(), &[axis])?;
        product = cx.mul(&product, &weight)?;
    }
    let sum = cx.sum(&product, &[axis])?;
    let losses = cx.neg(&sum)?;
    reduction.apply(cx, &losses, losses.dtype)
}
