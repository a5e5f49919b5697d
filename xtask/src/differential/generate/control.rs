//! Branches, loops, mapped computations and random bits.

use warpforge_tensor::ElementType;

use super::{Generator, INTS, array, every_type};
use crate::differential::program::{OpTolerance, Step, Ty};

/// One of two captured values.
pub(super) fn conditional(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(&every_type(), |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let y = g.of_type(&ty)?;
    let predicate = g.of_type(&Ty::new([], ElementType::Bool))?;
    let mut step = g.step("stablehlo.if", vec![predicate, x, y], "", vec![ty.clone()], OpTolerance::Exact);
    step.body = format!(
        "    %r:1 = \"stablehlo.if\"(%a0) ({{\n      stablehlo.return %a1 : {ty}\n    }}, {{\n      stablehlo.return %a2 : {ty}\n\
         \x20   }}) : (tensor<i1>) -> {ty}\n"
    );
    Ok(Some(step))
}

/// A loop that runs a few times.
pub(super) fn counted_loop(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(INTS, |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let y = g.of_type(&ty)?;
    let turns = g.rng.usize(..5);
    let op = g.one_of(&["add", "subtract", "multiply", "xor", "maximum"]);
    let mut step = g.step("stablehlo.while", vec![x, y], "", vec![ty.clone()], OpTolerance::Exact);
    step.body = format!(
        "    %zero = stablehlo.constant dense<0> : tensor<i32>\n    %one = stablehlo.constant dense<1> : tensor<i32>\n\
         \x20   %end = stablehlo.constant dense<{turns}> : tensor<i32>\n\
         \x20   %w:2 = stablehlo.while(%i = %zero, %v = %a0) : tensor<i32>, {ty} cond {{\n\
         \x20     %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n\
         \x20     stablehlo.return %more : tensor<i1>\n    }} do {{\n      %next = stablehlo.add %i, %one : tensor<i32>\n\
         \x20     %new = stablehlo.{op} %v, %a1 : {ty}\n      stablehlo.return %next, %new : tensor<i32>, {ty}\n    }}\n"
    );
    step.returned = vec!["%w#1".to_owned()];
    Ok(Some(step))
}

pub(super) fn map(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let Some(x) = g.value(INTS, |_| true)? else { return Ok(None) };
    let ty = g.ty(x);
    let y = g.of_type(&ty)?;
    let scalar = Ty::new([], ty.element);
    let dims: Vec<usize> = (0..ty.rank()).collect();
    let middle = format!(
        "({{\n    ^bb0(%x: {scalar}, %y: {scalar}):\n      %s = stablehlo.add %x, %y : {scalar}\n      %z = stablehlo.multiply \
         %s, %x : {scalar}\n      stablehlo.return %z : {scalar}\n    }}) {{dimensions = {}}}",
        array(&dims)
    );
    Ok(Some(g.step("stablehlo.map", vec![x, y], &middle, vec![ty], OpTolerance::Exact)))
}

pub(super) fn threefry(g: &mut Generator) -> anyhow::Result<Option<Step>> {
    let state = Ty::new([2], ElementType::U64);
    let key = g.of_type(&state)?;
    let ty = Ty::new(g.shape(0..=2), g.one_of(&[ElementType::U32, ElementType::U64]));
    let middle = "{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}";
    Ok(Some(g.step("stablehlo.rng_bit_generator", vec![key], middle, vec![state, ty], OpTolerance::Exact)))
}
