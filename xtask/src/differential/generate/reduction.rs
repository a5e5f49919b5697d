//! Reductions, windows and sorting.

use warpforge_tensor::ElementType;

use super::{FLOATS, Generator, INTS, array, list, permutation};
use crate::differential::program::{OpTolerance, Step, Ty};

/// The region of a reduction by a binary operation.
fn body_of(op: &str, element: ElementType) -> String {
    let ty = Ty::new([], element);
    format!(
        "{{\n    ^bb0(%x: {ty}, %y: {ty}):\n      %z = stablehlo.{op} %x, %y : {ty}\n      stablehlo.return %z : {ty}\n    }}"
    )
}

/// An operation to reduce by, with the constant that changes nothing: how often it is taken in is open.
struct Reducer {
    op: &'static str,
    neutral: String,
    tolerance: OpTolerance,
}

/// A reducer of these elements over so many terms.
fn reducer(g: &mut Generator, element: ElementType, terms: usize) -> Reducer {
    let op = match element {
        ElementType::Bool => g.one_of(&["and", "or"]),
        _ => g.one_of(&["add", "maximum", "minimum"]),
    };
    let neutral = match (op, element) {
        ("and", _) => "true".to_owned(),
        ("or", _) => "false".to_owned(),
        ("maximum", ElementType::Int(int)) => int.min().to_string(),
        ("minimum", ElementType::Int(int)) => int.max().to_string(),
        ("maximum", ElementType::F32) => "0xFF800000".to_owned(),
        ("minimum", ElementType::F32) => "0x7F800000".to_owned(),
        ("maximum", _) => "0xFFF0000000000000".to_owned(),
        ("minimum", _) => "0x7FF0000000000000".to_owned(),
        (_, ElementType::Int(_)) => "0".to_owned(),
        _ => "0.0".to_owned(),
    };
    let tolerance =
        if element.is_float() && op == "add" { OpTolerance::Sum(terms) } else { OpTolerance::Exact };
    Reducer { op, neutral, tolerance }
}

/// Puts the neutral element of a reduction of `%a0` into the body of its step.
fn with_neutral(mut step: Step, reducer: &Reducer, element: ElementType) -> Step {
    let scalar = Ty::new([], element);
    let constant = format!("    %n = stablehlo.constant dense<{}> : {scalar}\n", reducer.neutral);
    // The types of the operands are those of the last parentheses before the last arrow.
    if let Some((before, after)) = step.body.rsplit_once(") -> (") {
        let before = before.replacen("(%a0)", "(%a0, %n)", 1);
        step.body = format!("{constant}{before}, {scalar}) -> ({after}");
    }
    step
}

/// Elements that reductions work on; narrow floats would be rounded at each step, in whatever order.
fn elements() -> Vec<ElementType> {
    [&FLOATS[..2], INTS, &[ElementType::Bool]].concat()
}

pub(super) fn reduce(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&elements(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let count = g.rng.usize(..=ty.rank());
    let mut axes: Vec<usize> = permutation(g.rng, ty.rank()).into_iter().take(count).collect();
    axes.sort_unstable();
    let kept: Vec<usize> = (0..ty.rank()).filter(|at| !axes.contains(at)).map(|at| ty.dims[at]).collect();
    let reducer = reducer(g, ty.element, ty.len() + 1);
    let middle = format!("({}) {{dimensions = {}}}", body_of(reducer.op, ty.element), array(&axes));
    let result = Ty::new(kept, ty.element);
    let step = g.step("stablehlo.reduce", vec![x], &middle, vec![result], reducer.tolerance);
    Ok(Some(with_neutral(step, &reducer, ty.element)))
}

/// The largest element and where it is: two values reduced at once.
pub(super) fn arg_max(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(INTS, |ty| ty.rank() > 0)? else { return Ok(None) };
    let ty = g.ty(x);
    let axis = g.rng.usize(..ty.rank());
    let mut kept = ty.dims.clone();
    kept.remove(axis);
    let (value, index) = (Ty::new([], ty.element), Ty::new([], ElementType::I64));
    let (results, indices) = (Ty::new(kept.clone(), ty.element), Ty::new(kept, ElementType::I64));
    let positions = ty.of(ElementType::I64);
    let ElementType::Int(int) = ty.element else { return Ok(None) };
    let smallest = int.min();
    let mut step =
        g.step("stablehlo.reduce", vec![x], "", vec![results.clone(), indices.clone()], OpTolerance::Exact);
    step.body = format!(
        "    %at = stablehlo.iota dim = {axis} : {positions}\n    %low = stablehlo.constant dense<{smallest}> : {value}\n\
         \x20   %none = stablehlo.constant dense<0> : {index}\n\
         \x20   %r:2 = \"stablehlo.reduce\"(%a0, %at, %low, %none) ({{\n\
         \x20   ^bb0(%x: {value}, %i: {index}, %y: {value}, %j: {index}):\n\
         \x20     %more = stablehlo.compare GT, %x, %y : ({value}, {value}) -> tensor<i1>\n\
         \x20     %same = stablehlo.compare EQ, %x, %y : ({value}, {value}) -> tensor<i1>\n\
         \x20     %first = stablehlo.compare LT, %i, %j : ({index}, {index}) -> tensor<i1>\n\
         \x20     %tie = stablehlo.and %same, %first : tensor<i1>\n      %keep = stablehlo.or %more, %tie : tensor<i1>\n\
         \x20     %v = stablehlo.select %keep, %x, %y : tensor<i1>, {value}\n\
         \x20     %k = stablehlo.select %keep, %i, %j : tensor<i1>, {index}\n\
         \x20     stablehlo.return %v, %k : {value}, {index}\n\
         \x20   }}) {{dimensions = array<i64: {axis}>}} : ({ty}, {positions}, {value}, {index}) -> ({results}, {indices})\n"
    );
    Ok(Some(step))
}

pub(super) fn reduce_window(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&elements(), |ty| ty.rank() > 0 && ty.len() > 0)? else { return Ok(None) };
    let ty = g.ty(x);
    let (mut sizes, mut strides, mut spreads, mut bases, mut padding, mut dims) =
        (vec![], vec![], vec![], vec![], vec![], vec![]);
    for &dim in &ty.dims {
        let (size, stride, spread, base) =
            (g.rng.usize(1..4), g.rng.usize(1..3), g.rng.usize(1..3), g.rng.usize(1..3));
        let (low, high) = (g.rng.usize(..3), g.rng.usize(..3));
        let padded = (dim - 1) * base + 1 + low + high;
        let reach = (size - 1) * spread + 1;
        dims.push(if reach > padded { 0 } else { (padded - reach) / stride + 1 });
        sizes.push(size);
        strides.push(stride);
        spreads.push(spread);
        bases.push(base);
        padding.push(format!("[{low}, {high}]"));
    }
    let reducer = reducer(g, ty.element, sizes.iter().product::<usize>() + 1);
    let middle = format!(
        "({}) {{window_dimensions = {}, window_strides = {}, window_dilations = {}, base_dilations = {}, \
         padding = dense<[{}]> : tensor<{}x2xi64>}}",
        body_of(reducer.op, ty.element),
        array(&sizes),
        array(&strides),
        array(&spreads),
        array(&bases),
        list(&padding),
        ty.rank(),
    );
    let result = Ty::new(dims, ty.element);
    let step = g.step("stablehlo.reduce_window", vec![x], &middle, vec![result], reducer.tolerance);
    Ok(Some(with_neutral(step, &reducer, ty.element)))
}

pub(super) fn select_and_scatter(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(INTS, |ty| ty.rank() > 0 && ty.len() > 0)? else { return Ok(None) };
    let ty = g.ty(x);
    let sizes: Vec<usize> = ty.dims.iter().map(|&dim| g.rng.usize(1..=dim.min(3))).collect();
    let strides: Vec<usize> = ty.dims.iter().map(|_| g.rng.usize(1..3)).collect();
    let dims: Vec<usize> = (0..ty.rank()).map(|at| (ty.dims[at] - sizes[at]) / strides[at] + 1).collect();
    let source = g.of_type(&Ty::new(dims, ty.element))?;
    let init = g.of_type(&Ty::new([], ty.element))?;
    let scalar = Ty::new([], ty.element);
    let middle = format!(
        "({{\n    ^bb0(%x: {scalar}, %y: {scalar}):\n      %z = stablehlo.compare GE, %x, %y : ({scalar}, {scalar}) -> \
         tensor<i1>\n      stablehlo.return %z : tensor<i1>\n    }}, {}) {{window_dimensions = {}, window_strides = {}}}",
        body_of("add", ty.element),
        array(&sizes),
        array(&strides),
    );
    Ok(Some(g.step(
        "stablehlo.select_and_scatter",
        vec![x, source, init],
        &middle,
        vec![ty],
        OpTolerance::Exact,
    )))
}

/// Keys with a payload, in a stable order.
pub(super) fn sort(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(INTS, |ty| ty.rank() > 0)? else { return Ok(None) };
    let ty = g.ty(x);
    let payload_ty = ty.of(g.one_of(FLOATS));
    let payload = g.of_type(&payload_ty)?;
    let axis = g.rng.usize(..ty.rank());
    let direction = g.one_of(&["LT", "GT"]);
    let (key, load) = (Ty::new([], ty.element), Ty::new([], payload_ty.element));
    let middle = format!(
        "({{\n    ^bb0(%x: {key}, %y: {key}, %v: {load}, %w: {load}):\n      %z = stablehlo.compare {direction}, %x, %y : \
         ({key}, {key}) -> tensor<i1>\n      stablehlo.return %z : tensor<i1>\n    }}) {{dimension = {axis} : i64, \
         is_stable = true}}"
    );
    Ok(Some(g.step("stablehlo.sort", vec![x, payload], &middle, vec![ty, payload_ty], OpTolerance::Exact)))
}
