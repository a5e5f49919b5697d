//! Windows that signals are cut out with.

use std::f64::consts::PI;

use super::prelude::*;
use crate::lower::promote::DEFAULT_FLOAT;

pub(super) const TABLE: &[Op] = &[
    op("aten.bartlett_window.default", |cx, args| window(cx, args, triangle))
        .also(&["aten.bartlett_window.periodic"]),
    op("aten.blackman_window.default", |cx, args| window(cx, args, blackman))
        .also(&["aten.blackman_window.periodic"]),
    op("aten.hamming_window.default", hamming).also(&[
        "aten.hamming_window.periodic",
        "aten.hamming_window.periodic_alpha",
        "aten.hamming_window.periodic_alpha_beta",
    ]),
    op("aten.hann_window.default", |cx, args| window(cx, args, |at| raised_cosine(at, 0.5, 0.5)))
        .also(&["aten.hann_window.periodic"]),
    op("aten.kaiser_window.beta", kaiser)
        .also(&["aten.kaiser_window.default", "aten.kaiser_window.periodic"]),
];

/// A function of the place in the window, which goes from 0 to 1; a periodic window stops one step before its end.
fn window(cx: &mut Cx<'_>, args: &Args<'_>, height: impl Fn(f64) -> f64) -> Lowered<Outcome> {
    args.placement()?;
    let length = cx.table_length(&[args.int("window_length")?])?;
    let periodic = args.bool_or("periodic", true)?;
    let dtype = args.opt_dtype("dtype")?.unwrap_or(DEFAULT_FLOAT);
    let steps = if periodic { length } else { length.saturating_sub(1) };
    let heights = (0..length).map(|at| match length {
        1 => 1.0,
        _ => height(at as f64 / steps as f64),
    });
    one(cx.constant(dtype, &[length], heights.map(Scalar::Float))?)
}

fn raised_cosine(at: f64, alpha: f64, beta: f64) -> f64 {
    alpha - beta * (2.0 * PI * at).cos()
}

fn triangle(at: f64) -> f64 {
    1.0 - (2.0 * at - 1.0).abs()
}

fn blackman(at: f64) -> f64 {
    raised_cosine(at, 0.42, 0.5) + 0.08 * (4.0 * PI * at).cos()
}

fn hamming(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    let (alpha, beta) = (args.float_or("alpha", 0.54)?, args.float_or("beta", 0.46)?);
    window(cx, args, |at| raised_cosine(at, alpha, beta))
}

fn kaiser(cx: &mut Cx<'_>, args: &Args<'_>) -> Lowered<Outcome> {
    // Larger ones have no finite value.
    const MOST: f64 = 700.0;
    let beta = args.float_or("beta", 12.0)?;
    if beta.is_nan() || beta.abs() > MOST {
        return refuse(format!("a window with beta {beta}"));
    }
    window(cx, args, |at| bessel(beta * (1.0 - (2.0 * at - 1.0).powi(2)).max(0.0).sqrt()) / bessel(beta))
}

/// The modified Bessel function of order 0, by its power series, whose terms are all positive.
fn bessel(x: f64) -> f64 {
    let square = x * x / 4.0;
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..2000u32 {
        term *= square / f64::from(k * k);
        sum += term;
        if term < sum * f64::EPSILON / 4.0 {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Code::F32, Given::*, evaluated};

    #[test]
    fn windows_are_what_pytorch_has() {
        let arguments = |periodic: bool| {
            vec![
                ("window_length", Plain(json!({"as_int": 4}))),
                ("periodic", Plain(json!({"as_bool": periodic}))),
            ]
        };
        let cases: [(&str, bool, [f64; 4]); 4] = [
            ("aten.hann_window.periodic", true, [0.0, 0.5, 1.0, 0.5]),
            ("aten.hann_window.periodic", false, [0.0, 0.75, 0.75, 0.0]),
            ("aten.hamming_window.periodic", true, [0.08, 0.54, 1.0, 0.54]),
            ("aten.kaiser_window.periodic", true, [5.277e-5, 0.215_672_1, 1.0, 0.215_672_1]),
        ];
        for (target, periodic, expected) in cases {
            let found = evaluated(target, arguments(periodic), &[(F32, &[4])]);
            let close = found[0].iter().zip(expected).all(|(got, want)| (got - want).abs() < 1e-6);
            assert!(close, "{target}: {found:?}");
        }
    }
}
