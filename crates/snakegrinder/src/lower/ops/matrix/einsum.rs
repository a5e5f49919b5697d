//! Einstein sums: products over named dimensions, operand by operand.

use super::super::prelude::*;
use super::contract::{Pairing, contract};

pub(super) const TABLE: &[Op] = &[
    op("aten.einsum.default", einsum),
    op("aten.tensordot.default", |cx, args| {
        let (a, b) = (args.tensor("self")?, args.tensor("other")?);
        let axes_a = cx.axes(&args.ints("dims_self")?, a.rank())?;
        let axes_b = cx.axes(&args.ints("dims_other")?, b.rank())?;
        let product = contract(cx, &a, &b, &Pairing::summing(&axes_a, &axes_b))?;
        one(cx.convert(&product, a.dtype)?)
    }),
];

/// A dimension's name: a letter, or a place of the ellipsis counted from the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Ellipsis(usize),
    Letter(char),
}

/// A tensor and the names of its dimensions.
struct Named {
    tensor: Tensor,
    labels: Vec<Label>,
}

fn einsum(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let equation: String = args.str_or("equation", "")?.chars().filter(|c| !c.is_whitespace()).collect();
    let operands = args.tensors("tensors")?;
    args.ignore(&["path"]);
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = inputs.split(',').collect();
    let Some(first) = operands.first().filter(|_| terms.len() == operands.len()) else {
        return refuse(format!("the equation `{equation}` does not fit {} operands", operands.len()));
    };
    let dtype = first.dtype;
    let mut named = Vec::new();
    for (term, tensor) in terms.iter().zip(&operands) {
        let labels = labels(term, tensor.rank())?;
        named.push(diagonal(cx, Named { tensor: tensor.clone(), labels })?);
    }
    let output = match output {
        Some(output) => output_labels(output, &named)?,
        None => implicit_output(&terms, &named),
    };
    let mut rest = named.into_iter();
    let Some(mut result) = rest.next() else { return refuse("an Einstein sum of nothing") };
    let mut rest: Vec<Named> = rest.collect();
    while !rest.is_empty() {
        let next = rest.remove(0);
        let needed =
            |label: &Label| output.contains(label) || rest.iter().any(|other| other.labels.contains(label));
        result = multiply(cx, result, next, needed)?;
    }
    let result = drop_labels(cx, result, |label| output.contains(label))?;
    let order: Option<Vec<usize>> =
        output.iter().map(|label| result.labels.iter().position(|own| own == label)).collect();
    let Some(order) = order else { return refuse(format!("the result of `{equation}` has an unknown name")) };
    let result = cx.transpose(&result.tensor, &order)?;
    one(cx.convert(&result, dtype)?)
}

/// The names of a term's dimensions.
fn labels(term: &str, rank: usize) -> Lowered<Vec<Label>> {
    let letters = |text: &str| text.chars().map(Label::Letter).collect::<Vec<_>>();
    let (before, after) = match term.split_once("...") {
        Some((before, after)) => (letters(before), Some(letters(after))),
        None => (letters(term), None),
    };
    let mut all = before;
    if let Some(after) = after {
        let Some(hidden) = rank.checked_sub(all.len() + after.len()) else {
            return refuse(format!("the term `{term}` names more dimensions than the operand's {rank}"));
        };
        all.extend((0..hidden).rev().map(Label::Ellipsis));
        all.extend(after);
    }
    if all.len() != rank {
        return refuse(format!("the term `{term}` does not name {rank} dimensions"));
    }
    Ok(all)
}

fn output_labels(output: &str, named: &[Named]) -> Lowered<Vec<Label>> {
    let hidden = ellipsis_rank(named);
    let letters = output.replace("...", "");
    let rank = letters.chars().count() + if output.contains("...") { hidden } else { 0 };
    labels(output, rank)
}

fn ellipsis_rank(named: &[Named]) -> usize {
    let places = named.iter().flat_map(|one| &one.labels).filter_map(|label| match label {
        Label::Ellipsis(place) => Some(place + 1),
        Label::Letter(_) => None,
    });
    places.max().unwrap_or(0)
}

/// Without an arrow: the ellipsis, then letters that occur once, in order.
fn implicit_output(terms: &[&str], named: &[Named]) -> Vec<Label> {
    let all: String = terms.concat().replace("...", "");
    let mut letters: Vec<char> = all.chars().filter(|c| all.matches(*c).count() == 1).collect();
    letters.sort_unstable();
    let hidden = (0..ellipsis_rank(named)).rev().map(Label::Ellipsis);
    hidden.chain(letters.into_iter().map(Label::Letter)).collect()
}

/// A name that occurs twice in one operand means its diagonal.
fn diagonal(cx: &mut Cx<'_>, mut named: Named) -> Lowered<Named> {
    while let Some((first, second)) = repeated(&named.labels) {
        let dims = named.tensor.dims.to_vec();
        let mask = cx.index_mask(&dims, first, second, Cmp::Eq, &Size::Int(0))?;
        let zero = cx.splat_like(&named.tensor, Scalar::zero(named.tensor.dtype))?;
        let kept = cx.select(&mask, &named.tensor, &zero)?;
        named.tensor = cx.sum(&kept, &[second])?;
        named.labels.remove(second);
    }
    Ok(named)
}

fn repeated(labels: &[Label]) -> Option<(usize, usize)> {
    let second = (1..labels.len()).find(|&at| labels[..at].contains(&labels[at]))?;
    Some((labels.iter().position(|label| *label == labels[second])?, second))
}

/// Sums dimensions whose names are not needed.
fn drop_labels(cx: &mut Cx<'_>, named: Named, needed: impl Fn(&Label) -> bool) -> Lowered<Named> {
    let axes: Vec<usize> = (0..named.labels.len()).filter(|&axis| !needed(&named.labels[axis])).collect();
    if axes.is_empty() {
        return Ok(named);
    }
    let tensor = cx.sum(&named.tensor, &axes)?;
    Ok(Named { tensor, labels: named.labels.into_iter().filter(needed).collect() })
}

fn multiply(cx: &mut Cx<'_>, a: Named, b: Named, needed: impl Fn(&Label) -> bool) -> Lowered<Named> {
    let a = drop_labels(cx, a, |label| needed(label) || b.labels.contains(label))?;
    let b = drop_labels(cx, b, |label| needed(label) || a.labels.contains(label))?;
    // A dimension of one beside a larger one of the same name is broadcast.
    let (a, b) = (stretch(cx, a, &b)?, b);
    let b = stretch(cx, b, &a)?;
    let shared: Vec<Label> = a.labels.iter().copied().filter(|label| b.labels.contains(label)).collect();
    let axes = |named: &Named, wanted: bool| -> Vec<usize> {
        let chosen = shared.iter().filter(|label| needed(label) == wanted);
        chosen.filter_map(|label| named.labels.iter().position(|own| own == label)).collect()
    };
    let (batch_a, batch_b, sum_a, sum_b) = (axes(&a, true), axes(&b, true), axes(&a, false), axes(&b, false));
    let pairing = Pairing { batch: (&batch_a, &batch_b), sum: (&sum_a, &sum_b) };
    let tensor = contract(cx, &a.tensor, &b.tensor, &pairing)?;
    let mut labels: Vec<Label> = shared.iter().copied().filter(|label| needed(label)).collect();
    labels.extend(a.labels.iter().filter(|label| !shared.contains(label)));
    labels.extend(b.labels.iter().filter(|label| !shared.contains(label)));
    let tensor = cx.convert(&tensor, a.tensor.dtype)?;
    Ok(Named { tensor, labels })
}

fn stretch(cx: &mut Cx<'_>, named: Named, other: &Named) -> Lowered<Named> {
    let mut dims = named.tensor.dims.to_vec();
    for (size, label) in dims.iter_mut().zip(&named.labels) {
        if let Some(at) = other.labels.iter().position(|own| own == label).filter(|_| size.is(1)) {
            *size = other.tensor.dim(at);
        }
    }
    let tensor = cx.expand_to(&named.tensor, &dims)?;
    Ok(Named { tensor, labels: named.labels })
}
