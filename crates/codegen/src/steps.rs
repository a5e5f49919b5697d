//! Steps of a loop's body as expressions: the one place where an operation becomes code.

use warpforge_fusion::View;
use warpforge_fusion::cluster::{Body, BodyOp};
use warpforge_ir::OpKind;
use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_tensor::ElementType;

use crate::kernel::Unsupported;
use crate::types::{computed, literal, rounded, stored};

/// What surrounds a step: how its loads, indices and earlier steps are written.
pub(crate) trait Around {
    /// A load, as a number to compute with.
    fn load(&self, at: usize) -> String;
    /// An index, as an integer.
    fn index(&self, view: &View) -> String;
    /// An earlier step.
    fn step(&self, at: usize) -> String;
}

/// A body whose loads and indices are written already, and whose steps are `s0`, `s1`, ….
pub(crate) struct Written {
    /// The loads, in order.
    pub(crate) loads: Vec<String>,
    /// The indices, by their views.
    pub(crate) iotas: Vec<(View, String)>,
}

impl Around for Written {
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

/// The expression of a step that is no reduction.
pub(crate) fn expression(body: &Body, at: usize, around: &dyn Around) -> Result<String, Unsupported> {
    let step = &body.steps[at];
    let input = |number: usize| {
        let input = step.inputs.get(number).ok_or_else(|| Unsupported::new("a step without its operands"))?;
        Ok::<(String, ElementType), Unsupported>((around.step(*input), body.steps[*input].element))
    };
    let value = match &step.op {
        BodyOp::Load(load) => return Ok(around.load(*load)),
        BodyOp::Constant(tensor) => return literal(step.element, tensor.get(0)),
        BodyOp::Iota(view) => {
            format!("wf_convert<{}>((long long)({}))", computed(step.element)?, around.index(view))
        }
        BodyOp::Elementwise(OpKind::Convert) => {
            let (value, from) = input(0)?;
            if step.element == ElementType::Bool {
                format!("({value} != 0)")
            } else if from == ElementType::Bool {
                format!("({})({value} ? 1 : 0)", computed(step.element)?)
            } else {
                format!("wf_convert<{}>({value})", computed(step.element)?)
            }
        }
        BodyOp::Elementwise(OpKind::Select) => {
            return Ok(format!("({} ? {} : {})", input(0)?.0, input(1)?.0, input(2)?.0));
        }
        BodyOp::Elementwise(kind) => match (unary(*kind), binary(*kind)) {
            (Some(name), _) => format!("{name}({})", input(0)?.0),
            (_, Some(name)) => format!("{name}({}, {})", input(0)?.0, input(1)?.0),
            _ => return Err(Unsupported::new(kind.name())),
        },
        BodyOp::Compare(direction, order) => {
            let ((a, element), (b, _)) = (input(0)?, input(1)?);
            return Ok(comparison(*direction, *order, element, &a, &b));
        }
        BodyOp::Reduce(_) => return Err(Unsupported::new("a reduction inside an element")),
    };
    // A type that is computed with as another one is rounded after each step.
    if keeps_type(&step.op) { Ok(value) } else { rounded(step.element, value) }
}

/// Whether the result of an operation on numbers that a narrow type holds is one that it holds.
fn keeps_type(op: &BodyOp) -> bool {
    use OpKind::*;
    matches!(op, BodyOp::Elementwise(Abs | Negate | Sign | Maximum | Minimum | IsFinite | Ceil | Floor))
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

/// An element of a pointer, as a number to compute with.
pub(crate) fn loaded(pointer: &str, place: &str) -> String {
    format!("wf_get({pointer}[{place}])")
}

/// A number as it is stored.
pub(crate) fn packed(element: ElementType, value: &str) -> Result<String, Unsupported> {
    let (stored, computed) = (stored(element)?, computed(element)?);
    Ok(if stored == computed { value.to_owned() } else { format!("wf_put<{stored}>({value})") })
}

/// The function of the prelude for an operation on one element.
pub(crate) fn unary(kind: OpKind) -> Option<&'static str> {
    Some(match kind {
        OpKind::Abs => "wf_abs",
        OpKind::Negate => "wf_neg",
        OpKind::Sign => "wf_sign",
        OpKind::Not => "wf_not",
        OpKind::Popcnt => "wf_popcnt",
        OpKind::CountLeadingZeros => "wf_clz",
        OpKind::IsFinite => "wf_isfinite",
        OpKind::Ceil => "wf_ceil",
        OpKind::Floor => "wf_floor",
        OpKind::RoundNearestAfz => "wf_round_afz",
        OpKind::RoundNearestEven => "wf_round_even",
        OpKind::Sqrt => "wf_sqrt",
        OpKind::Rsqrt => "wf_rsqrt",
        OpKind::Cbrt => "wf_cbrt",
        OpKind::Exponential => "wf_exp",
        OpKind::ExponentialMinusOne => "wf_expm1",
        OpKind::Log => "wf_log",
        OpKind::LogPlusOne => "wf_log1p",
        OpKind::Logistic => "wf_logistic",
        OpKind::Tanh => "wf_tanh",
        OpKind::Sine => "wf_sin",
        OpKind::Cosine => "wf_cos",
        OpKind::Tan => "wf_tan",
        OpKind::ChloErf => "wf_erf",
        OpKind::ChloErfc => "wf_erfc",
        _ => return None,
    })
}

/// The function of the prelude for an operation on two elements.
pub(crate) fn binary(kind: OpKind) -> Option<&'static str> {
    Some(match kind {
        OpKind::Add => "wf_add",
        OpKind::Subtract => "wf_sub",
        OpKind::Multiply => "wf_mul",
        OpKind::Divide => "wf_div",
        OpKind::Remainder => "wf_rem",
        OpKind::Maximum => "wf_max",
        OpKind::Minimum => "wf_min",
        OpKind::Power => "wf_pow",
        OpKind::Atan2 => "wf_atan2",
        OpKind::And => "wf_and",
        OpKind::Or => "wf_or",
        OpKind::Xor => "wf_xor",
        OpKind::ShiftLeft => "wf_shl",
        OpKind::ShiftRightLogical => "wf_shr",
        OpKind::ShiftRightArithmetic => "wf_sar",
        _ => return None,
    })
}
