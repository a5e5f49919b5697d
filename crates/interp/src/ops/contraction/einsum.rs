//! Einstein summation, by its definition.

use warpforge_tensor::{Scalar, Tensor};

use super::super::quantized::expressed;
use super::Sum;
use crate::Value;
use crate::cx::{Cx, one};
use crate::error::{Result, invalid};
use crate::scalar::convert;

/// The labels of an Einstein summation: operands and result.
fn labels(config: &str) -> Result<(Vec<Vec<char>>, Vec<char>)> {
    let (inputs, result) =
        config.split_once("->").ok_or_else(|| invalid(format!("`{config}` has no `->`")))?;
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<Vec<char>>();
    Ok((inputs.split(',').map(letters).collect(), letters(result)))
}

pub(super) fn einsum(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let inputs = [cx.tensor(0)?.clone(), cx.tensor(1)?.clone()];
    summed(cx, &inputs)
}

pub(super) fn unary_einsum(cx: &mut Cx<'_, '_, '_>) -> Result<Vec<Value>> {
    let inputs = [cx.tensor(0)?.clone()];
    summed(cx, &inputs)
}

/// Sums over all labels that the result does not have, by the definition.
fn summed(cx: &mut Cx<'_, '_, '_>, inputs: &[Tensor]) -> Result<Vec<Value>> {
    let (operands, result) = labels(cx.str("einsum_config")?)?;
    let fits = operands.len() == inputs.len()
        && operands.iter().zip(inputs).all(|(letters, input)| letters.len() == input.shape().rank());
    if !fits {
        return Err(invalid("the labels do not fit the operands"));
    }
    let mut sizes: Vec<(char, usize)> = Vec::new();
    for (letter, &size) in
        operands.iter().zip(inputs).flat_map(|(letters, input)| letters.iter().zip(input.dims()))
    {
        match sizes.iter().find(|(known, _)| known == letter) {
            Some((_, known)) if *known != size => return Err(invalid(format!("`{letter}` has two sizes"))),
            Some(_) => {}
            None => sizes.push((*letter, size)),
        }
    }
    let known = |letter: &char| sizes.iter().find(|(known, _)| known == letter).map(|(_, size)| *size);
    let kept: Option<Vec<usize>> = result.iter().map(known).collect();
    let kept = cx.shape(kept.ok_or_else(|| invalid("the result has a label that no operand has"))?)?;
    let inner: Vec<char> =
        sizes.iter().map(|(letter, _)| *letter).filter(|letter| !result.contains(letter)).collect();
    let inner_shape = cx.shape(inner.iter().filter_map(known).collect())?;
    let element = expressed(cx.result_type(0)?)?;
    let place = |letters: &[char], outer: &[usize], within: &[usize]| -> Vec<usize> {
        let at = |letter: &char| match result.iter().position(|kept| kept == letter) {
            Some(dim) => outer[dim],
            None => inner.iter().position(|kept| kept == letter).map_or(0, |dim| within[dim]),
        };
        letters.iter().map(at).collect()
    };
    let mut sums = Tensor::zeros(element, kept.clone())?;
    let mut outer = kept.indices();
    let mut position = 0;
    while let Some(outer) = outer.advance() {
        let mut sum = Sum::zero(element);
        let mut within = inner_shape.indices();
        while let Some(within) = within.advance() {
            let value = |at: usize| {
                inputs[at].at(&place(&operands[at], outer, within)).unwrap_or(Scalar::zero(element))
            };
            let second = if inputs.len() > 1 { value(1) } else { convert(Scalar::Int(1), element) };
            sum.add_product(value(0), second);
        }
        sums.set(position, sum.value());
        position += 1;
    }
    one(sums)
}
