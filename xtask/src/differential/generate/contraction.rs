//! Dots, convolutions and linear algebra.

use warpforge_tensor::ElementType;

use super::{COMPLEX, FLOATS, Generator, INTS, WIDE_FLOATS, list, permutation};
use crate::differential::program::{OpTolerance, Step, Ty};

pub(super) fn dot_general(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let element = g.one_of(&[FLOATS, COMPLEX, INTS].concat());
    // Kinds of dimensions: 0 batching, 1 contracting, 2 free on the left, 3 free on the right.
    let kinds: Vec<(u8, usize)> =
        (0..g.rng.usize(1..5)).map(|_| (g.rng.u8(..4), g.rng.usize(1..6))).collect();
    let mut side = |free: u8| {
        let mine: Vec<usize> =
            (0..kinds.len()).filter(|&at| kinds[at].0 < 2 || kinds[at].0 == free).collect();
        permutation(g.rng, mine.len()).into_iter().map(|at| mine[at]).collect::<Vec<_>>()
    };
    let (left, right) = (side(2), side(3));
    let dims = |order: &[usize]| order.iter().map(|&at| kinds[at].1).collect::<Vec<_>>();
    let places = |order: &[usize], kind: u8| {
        let of_kind = (0..kinds.len()).filter(|&at| kinds[at].0 == kind);
        of_kind.filter_map(|at| order.iter().position(|&dim| dim == at)).collect::<Vec<usize>>()
    };
    let free = |order: &[usize], kind: u8| {
        order.iter().filter(|&&at| kinds[at].0 == kind).map(|&at| kinds[at].1).collect::<Vec<_>>()
    };
    let batches: Vec<usize> = kinds.iter().filter(|kind| kind.0 == 0).map(|kind| kind.1).collect();
    let terms: usize = kinds.iter().filter(|kind| kind.0 == 1).map(|kind| kind.1).product();
    let middle = format!(
        "{{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [{}], rhs_batching_dimensions = [{}], \
         lhs_contracting_dimensions = [{}], rhs_contracting_dimensions = [{}]>}}",
        list(&places(&left, 0)),
        list(&places(&right, 0)),
        list(&places(&left, 1)),
        list(&places(&right, 1)),
    );
    let (lhs, rhs) = (Ty::new(dims(&left), element), Ty::new(dims(&right), element));
    let result = Ty::new([batches, free(&left, 2), free(&right, 3)].concat(), element);
    let (lhs, rhs) = (g.of_type(&lhs)?, g.of_type(&rhs)?);
    Ok(Some(g.step("stablehlo.dot_general", vec![lhs, rhs], &middle, vec![result], OpTolerance::Sum(terms))))
}

pub(super) fn convolution(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let element = g.one_of(WIDE_FLOATS);
    let spatial = g.rng.usize(1..=2);
    let (groups, batch) = (g.rng.usize(1..=2), g.rng.usize(1..=2));
    let (inner, outer) = (g.rng.usize(1..=3), g.rng.usize(1..=3));
    let mut lhs = vec![batch, inner * groups];
    let mut rhs = vec![outer * groups, inner];
    let mut result = vec![batch, outer * groups];
    let (mut strides, mut padding, mut lhs_dilation, mut rhs_dilation, mut reversal) =
        (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..spatial {
        let (size, window) = (g.rng.usize(2..8), g.rng.usize(1..4));
        let (low, high) = (g.rng.usize(..3), g.rng.usize(..3));
        let (stride, base, spread) = (g.rng.usize(1..3), g.rng.usize(1..3), g.rng.usize(1..3));
        let padded = (size - 1) * base + 1 + low + high;
        let reach = (window - 1) * spread + 1;
        if reach > padded {
            return Ok(None);
        }
        lhs.push(size);
        rhs.push(window);
        result.push((padded - reach) / stride + 1);
        strides.push(stride);
        padding.push(format!("[{low}, {high}]"));
        lhs_dilation.push(base);
        rhs_dilation.push(spread);
        reversal.push(g.rng.bool());
    }
    let spots = list(&(0..spatial).collect::<Vec<_>>());
    let middle = format!(
        "{{window_strides = array<i64: {}>, padding = dense<[{}]> : tensor<{spatial}x2xi64>, \
         lhs_dilation = array<i64: {}>, rhs_dilation = array<i64: {}>, window_reversal = array<i1: {}>, \
         dimension_numbers = #stablehlo.conv<[b, f, {spots}]x[o, i, {spots}]->[b, f, {spots}]>, \
         feature_group_count = {groups} : i64, batch_group_count = 1 : i64}}",
        list(&strides),
        list(&padding),
        list(&lhs_dilation),
        list(&rhs_dilation),
        list(&reversal),
    );
    let terms = inner * rhs[2..].iter().product::<usize>();
    let (lhs, rhs) = (plain(g, &Ty::new(lhs, element))?, plain(g, &Ty::new(rhs, element))?);
    let results = vec![Ty::new(result, element)];
    Ok(Some(g.step("stablehlo.convolution", vec![lhs, rhs], &middle, results, OpTolerance::Sum(terms))))
}

pub(super) fn fft(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(COMPLEX, |ty| ty.rank() > 0 && ty.len() > 0)? else { return Ok(None) };
    let ty = g.ty(x);
    let length = ty.dims[ty.rank() - 1];
    let kind = g.one_of(&["FFT", "IFFT"]);
    let middle = format!("{{fft_type = #stablehlo<fft_type {kind}>, fft_length = array<i64: {length}>}}");
    Ok(Some(g.step("stablehlo.fft", vec![x], &middle, vec![ty], OpTolerance::Sum(length))))
}

/// A matrix that is surely positive definite is made in the body: `x xᵀ` and a large diagonal.
pub(super) fn cholesky(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let size = g.rng.usize(1..5);
    let ty = Ty::new([size, size], g.one_of(WIDE_FLOATS));
    let x = plain(g, &ty)?;
    let lower = g.rng.bool();
    let mut step = g.step("stablehlo.cholesky", vec![x], "", vec![ty.clone()], OpTolerance::Sum(64 * size));
    step.body = format!(
        "    %p = \"stablehlo.dot_general\"(%a0, %a0) {{dot_dimension_numbers = #stablehlo.dot<\
         lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}} : ({ty}, {ty}) -> {ty}\n{}\
         \x20   %m = stablehlo.add %p, %d : {ty}\n    %r0 = stablehlo.cholesky %m, lower = {lower} : {ty}\n{}",
        diagonal(&ty),
        triangle(&ty, lower),
    );
    step.returned = vec!["%t".to_owned()];
    Ok(Some(step))
}

/// The matrix has a large diagonal, so that solving does not magnify what differs in the last place.
pub(super) fn triangular_solve(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let (size, columns) = (g.rng.usize(1..5), g.rng.usize(1..4));
    let ty = Ty::new([size, size], g.one_of(WIDE_FLOATS));
    let left = g.rng.bool();
    let other = Ty::new(if left { [size, columns] } else { [columns, size] }, ty.element);
    let (x, b) = (plain(g, &ty)?, plain(g, &other)?);
    let (lower, unit) = (g.rng.bool(), g.rng.u8(..4) == 0);
    let transpose = g.one_of(&["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]);
    let results = vec![other.clone()];
    let mut step =
        g.step("stablehlo.triangular_solve", vec![x, b], "", results, OpTolerance::Sum(4096 * size));
    step.body = format!(
        "{}    %m = stablehlo.add %a0, %d : {ty}\n    %r0 = \"stablehlo.triangular_solve\"(%m, %a1) {{left_side = {left}, \
         lower = {lower}, unit_diagonal = {unit}, transpose_a = #stablehlo<transpose {transpose}>}} : ({ty}, {other}) \
         -> {other}\n",
        diagonal(&ty),
    );
    step.returned = vec!["%r0".to_owned()];
    Ok(Some(step))
}

/// A value without infinities, which padding with zeros would make NaNs of.
fn plain(g: &mut Generator, ty: &Ty) -> anyhow::Result<usize> {
    let integers = g.input(&ty.of(ElementType::I8))?;
    let step = g.step("stablehlo.convert", vec![integers], "", vec![ty.clone()], OpTolerance::Exact);
    g.program.push(step);
    Ok(g.program.types().len() - 1)
}

/// `%d`: 300 on the diagonal of a square type.
fn diagonal(ty: &Ty) -> String {
    let (ints, bits) = (ty.of(ElementType::I32), ty.of(ElementType::Bool));
    format!(
        "    %row = stablehlo.iota dim = 0 : {ints}\n    %column = stablehlo.iota dim = 1 : {ints}\n\
         \x20   %on = stablehlo.compare EQ, %row, %column, SIGNED : ({ints}, {ints}) -> {bits}\n\
         \x20   %large = stablehlo.constant dense<300.0> : {ty}\n    %zero = stablehlo.constant dense<0.0> : {ty}\n\
         \x20   %d = stablehlo.select %on, %large, %zero : {bits}, {ty}\n"
    )
}

/// `%t`: the triangle of `%r0` that has a meaning.
fn triangle(ty: &Ty, lower: bool) -> String {
    let (ints, bits) = (ty.of(ElementType::I32), ty.of(ElementType::Bool));
    let direction = if lower { "GE" } else { "LE" };
    format!(
        "    %in = stablehlo.compare {direction}, %row, %column, SIGNED : ({ints}, {ints}) -> {bits}\n\
         \x20   %t = stablehlo.select %in, %r0, %zero : {bits}, {ty}\n"
    )
}
