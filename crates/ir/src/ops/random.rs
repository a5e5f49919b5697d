//! Random numbers.

use crate::attr::{RngAlgorithm, RngDistribution};
use crate::table::{Entry, OpKind, op};
use crate::types::{Dim, ElementType, Type};
use crate::verify::{Cx, compatible};

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::Rng)
        .values(
            "a: 0d pred|int|float, b: 0d pred|int|float, shape: static 1d int|index",
            "result: pred|int|float",
        )
        .attrs("rng_distribution: enum rng_distribution")
        .text("$a, $b, $shape, distribution = $rng_distribution{attrs} : {fn}")
        .rule(rng)
        .doc("Random numbers of a distribution."),
    op(OpKind::RngBitGenerator)
        .values("initial_state: int|float", "output_state: int|float, output: static int|float")
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
    let rank = usize::try_from(shape.dims().first()?.size()?).ok()?;
    let dims = match cx.constant_ints(2) {
        Some(sizes) => {
            sizes.iter().map(|size| u64::try_from(*size).map_or(Dim::Dynamic, Dim::Static)).collect()
        }
        // A shape that is not known is of an absurd rank before there is memory for it.
        None if rank > 1 << 16 => return None,
        None => vec![Dim::Dynamic; rank],
    };
    cx.gives_like(["C3", "C1"], b, dims)
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
    if !fits {
        cx.warn("C2", format!("{state} is no state of {algorithm}"));
    }
    if let Some(next) = cx.result(0) {
        let same = compatible::sizes(state.dims(), next.dims());
        cx.check(same, "C1", || format!("the states {state} and {next} have different shapes"));
        cx.same_elements("C1", "the states", state, next);
    }
    None
}
