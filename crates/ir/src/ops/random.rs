//! Random numbers.

use crate::attr::{RngAlgorithm, RngDistribution};
use crate::table::{Entry, OpKind, op};
use crate::types::{Dim, ElementType, Type};
use crate::verify::Cx;

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::Rng)
        .values("a: 0d pred|int|float, b: 0d pred|int|float, shape: 1d int|index", "result: pred|int|float")
        .attrs("rng_distribution: enum rng_distribution")
        .text("$a, $b, $shape, distribution = $rng_distribution{attrs} : {fn}")
        .rule(rng)
        .doc("Random numbers of a distribution."),
    op(OpKind::RngBitGenerator)
        .values("initial_state: int|float", "output_state: int|float, output: int|float")
        .attrs("rng_algorithm: enum rng_algorithm")
        .text("$initial_state, algorithm = $rng_algorithm{attrs} : {fn}")
        .rule(rng_bit_generator)
        .doc("Random bits from a state, and the state that follows."),
];

fn rng(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let (a, b, shape) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    cx.same_elements("C1", "the bounds", a, b);
    let normal = cx.attr("rng_distribution")?.as_enum::<RngDistribution>() == Some(RngDistribution::Normal);
    let float = a.element().plain().is_some_and(ElementType::is_float);
    cx.check(!normal || float, "C2", || format!("a normal distribution has floating-point numbers, not {a}"));
    if let Some(result) = cx.result(0) {
        cx.same_elements("C1", "the bounds and the result", a, result);
        let fits = shape.dims()[0].compatible(Dim::Static(result.rank() as u64));
        cx.check(fits, "C3", || format!("{shape} does not give the shape of {result}"));
    }
    None
}

fn rng_bit_generator(cx: &mut Cx<'_>) -> Option<Vec<Type>> {
    let state = cx.tensor(0)?;
    let algorithm = cx.attr("rng_algorithm")?.as_enum::<RngAlgorithm>()?;
    let count = state.element_count();
    let fits = match algorithm {
        RngAlgorithm::Default => true,
        RngAlgorithm::ThreeFry => count.is_none_or(|count| count == 2),
        RngAlgorithm::Philox => count.is_none_or(|count| count == 2 || count == 3),
    };
    cx.check(fits, "C2", || format!("{state} is no state of {algorithm}"));
    if let Some(next) = cx.result(0) {
        cx.same_shape("C1", "the states", state, next);
        cx.same_elements("C1", "the states", state, next);
    }
    None
}
