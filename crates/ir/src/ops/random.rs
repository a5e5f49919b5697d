//! Random numbers.

use crate::table::{Entry, OpKind, op};

pub(super) const ENTRIES: &[Entry] = &[
    op(OpKind::Rng)
        .values("a: 0d pred|int|float, b: 0d pred|int|float, shape: 1d int|index", "result: pred|int|float")
        .attrs("rng_distribution: enum rng_distribution")
        .text("$a, $b, $shape, distribution = $rng_distribution{attrs} : {fn}")
        .doc("Random numbers of a distribution."),
    op(OpKind::RngBitGenerator)
        .values("initial_state: int|float", "output_state: int|float, output: int|float")
        .attrs("rng_algorithm: enum rng_algorithm")
        .text("$initial_state, algorithm = $rng_algorithm{attrs} : {fn}")
        .doc("Random bits from a state, and the state that follows."),
];
