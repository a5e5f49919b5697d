//! Functions of scalars as source lines.

use warpforge_fusion::graph::{ScalarFunction, ScalarOp};
use warpforge_tensor::ElementType;

use crate::kernel::Unsupported;
use crate::steps::{apply, comparison};
use crate::text::Text;
use crate::types::{compute_type, literal};

/// Emits a function applied to these expressions; returns the result expressions. `prefix` starts the names of
/// temporaries.
pub(super) fn emit(
    text: &mut Text,
    function: &ScalarFunction,
    arguments: &[String],
    prefix: &str,
) -> Result<Vec<String>, Unsupported> {
    let incomplete = || Unsupported::new("a function without its operands");
    let mut values: Vec<(String, ElementType)> =
        arguments.iter().cloned().zip(function.arguments.iter().copied()).collect();
    for step in &function.steps {
        let operands: Option<Vec<(String, ElementType)>> =
            step.inputs.iter().map(|&input| values.get(input).cloned()).collect();
        let operands = operands.ok_or_else(incomplete)?;
        let value = match (&step.op, operands.as_slice()) {
            (ScalarOp::Constant(tensor), _) => literal(step.element, tensor.get(0))?,
            (ScalarOp::Compare(direction, order), [(a, of), (b, _)]) => {
                comparison(*direction, *order, *of, a, b)
            }
            (ScalarOp::Compare(..), _) => return Err(incomplete()),
            (ScalarOp::Elementwise(function), operands) => apply(*function, operands, step.element)?,
        };
        let name = format!("{prefix}{}", values.len());
        text.line(format!("const {} {name} = {value};", compute_type(step.element)?));
        values.push((name, step.element));
    }
    let result = |&result: &usize| values.get(result).map(|(value, _)| value.clone());
    function.results.iter().map(result).collect::<Option<_>>().ok_or_else(incomplete)
}

/// Emits a function of one result.
pub(super) fn emit_one(
    text: &mut Text,
    function: &ScalarFunction,
    arguments: [&str; 2],
    prefix: &str,
) -> Result<String, Unsupported> {
    let results = emit(text, function, &arguments.map(str::to_owned), prefix)?;
    results.into_iter().next().ok_or_else(|| Unsupported::new("a function that gives nothing"))
}
