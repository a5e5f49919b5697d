//! Translates body steps to expressions.

use warpforge_fusion::View;
use warpforge_fusion::cluster::{Body, BodyOp};
use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use crate::kernel::Unsupported;
use crate::types::{compute_type, literal, rounded, storage_type};

/// How the loads, iotas and earlier steps of a step are written.
pub(crate) trait StepContext {
    /// A load, in the compute type.
    fn load(&self, at: usize) -> String;
    /// An iota, as an integer.
    fn index(&self, view: &View) -> String;
    /// An earlier step.
    fn step(&self, at: usize) -> String;
}

/// Loads and iotas as expressions; steps are named `s0`, `s1`, ….
pub(crate) struct Written {
    /// The loads, in order.
    pub(crate) loads: Vec<String>,
    /// The iotas, by view.
    pub(crate) iotas: Vec<(View, String)>,
}

impl StepContext for Written {
    fn load(&self, at: usize) -> String {
        self.loads[at].clone()
    }

    fn index(&self, view: &View) -> String {
        let found = self.iotas.iter().find(|(known, _)| known == view);
        found.map_or_else(|| "0".to_owned(), |(_, at)| at.clone())
    }

    fn step(&self, at: usize) -> String {
        format!("s{at}")
    }
}

/// The expression of a step other than a reduction.
pub(crate) fn expression(body: &Body, at: usize, context: &dyn StepContext) -> Result<String, Unsupported> {
    expression_as(body, at, body.steps[at].element, context)
}

/// The expression of a step that nothing but a store takes, which rounds it.
pub(crate) fn stored_expression(
    body: &Body,
    at: usize,
    context: &dyn StepContext,
) -> Result<String, Unsupported> {
    let element = body.steps[at].element;
    let taken = body.steps.iter().any(|step| step.inputs.contains(&at));
    let wide = !taken && compute_type(element)? == "float";
    expression_as(body, at, if wide { ElementType::F32 } else { element }, context)
}

/// The expression of a step, rounded to a type.
fn expression_as(
    body: &Body,
    at: usize,
    element: ElementType,
    context: &dyn StepContext,
) -> Result<String, Unsupported> {
    let step = &body.steps[at];
    let input = |number: usize| {
        let input = step.inputs.get(number).ok_or_else(|| Unsupported::new("a step without its operands"))?;
        Ok::<(String, ElementType), Unsupported>((context.step(*input), body.steps[*input].element))
    };
    let value = match &step.op {
        BodyOp::Load(load) => return Ok(context.load(*load)),
        BodyOp::Constant(tensor) => return literal(element, tensor.get(0)),
        BodyOp::Iota(view) => {
            format!("wf_convert<{}>((long long)({}))", compute_type(step.element)?, context.index(view))
        }
        BodyOp::Elementwise(function) => {
            let operands: Vec<(String, ElementType)> =
                (0..step.inputs.len()).map(input).collect::<Result<_, Unsupported>>()?;
            return apply(*function, &operands, element);
        }
        BodyOp::Compare(direction, order) => {
            let ((a, element), (b, _)) = (input(0)?, input(1)?);
            return Ok(comparison(*direction, *order, element, &a, &b));
        }
        BodyOp::Reduce(_) => return Err(Unsupported::new("a reduction inside an element")),
    };
    rounded(element, value)
}

/// An elementwise function of expressions of these types. Types that are computed in a wider type are rounded after it.
pub(crate) fn apply(
    function: Function,
    operands: &[(String, ElementType)],
    element: ElementType,
) -> Result<String, Unsupported> {
    let value = match (function, operands) {
        (Function::Convert, [(value, _)]) if element == ElementType::Bool => format!("({value} != 0)"),
        (Function::Convert, [(value, ElementType::Bool)]) => {
            format!("({})({value} ? 1 : 0)", compute_type(element)?)
        }
        (Function::Convert, [(value, _)]) => format!("wf_convert<{}>({value})", compute_type(element)?),
        (Function::Select, [(condition, _), (yes, _), (no, _)]) => format!("({condition} ? {yes} : {no})"),
        _ => {
            let operands: Vec<String> = operands.iter().map(|(operand, _)| operand.clone()).collect();
            call(function, &operands)?
        }
    };
    if function.is_exact() { Ok(value) } else { rounded(element, value) }
}

/// A comparison of two expressions of a type.
pub(crate) fn comparison(
    direction: ComparisonDirection,
    order: ComparisonType,
    element: ElementType,
    a: &str,
    b: &str,
) -> String {
    let operator = match direction {
        ComparisonDirection::Eq => "==",
        ComparisonDirection::Ne => "!=",
        ComparisonDirection::Ge => ">=",
        ComparisonDirection::Gt => ">",
        ComparisonDirection::Le => "<=",
        ComparisonDirection::Lt => "<",
    };
    if order == ComparisonType::TotalOrder && element.is_float() {
        format!("(wf_total({a}) {operator} wf_total({b}))")
    } else {
        format!("({a} {operator} {b})")
    }
}

/// An element load, in the compute type.
pub(crate) fn load_expr(pointer: &str, place: &str) -> String {
    format!("wf_get({pointer}[{place}])")
}

/// A value in its storage type.
pub(crate) fn store_expr(element: ElementType, value: &str) -> Result<String, Unsupported> {
    let (stored, computed) = (storage_type(element)?, compute_type(element)?);
    Ok(if stored == computed { value.to_owned() } else { format!("wf_put<{stored}>({value})") })
}

/// A call of the prelude's function, by the name that the table of elementwise functions gives it.
fn call(function: Function, operands: &[String]) -> Result<String, Unsupported> {
    if function.arity() != operands.len() {
        return Err(Unsupported::new(format!("{} of {} operands", function.name(), operands.len())));
    }
    Ok(format!("wf_{}({})", function.mnemonic(), operands.join(", ")))
}
