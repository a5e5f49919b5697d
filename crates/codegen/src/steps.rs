//! Translates body steps to expressions.

use warpforge_fusion::View;
use warpforge_fusion::cluster::{Body, BodyOp};
use warpforge_ir::OpKind;
use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_tensor::ElementType;

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
    let step = &body.steps[at];
    let input = |number: usize| {
        let input = step.inputs.get(number).ok_or_else(|| Unsupported::new("a step without its operands"))?;
        Ok::<(String, ElementType), Unsupported>((context.step(*input), body.steps[*input].element))
    };
    let value = match &step.op {
        BodyOp::Load(load) => return Ok(context.load(*load)),
        BodyOp::Constant(tensor) => return literal(step.element, tensor.get(0)),
        BodyOp::Iota(view) => {
            format!("wf_convert<{}>((long long)({}))", compute_type(step.element)?, context.index(view))
        }
        BodyOp::Elementwise(OpKind::Convert) => {
            let (value, from) = input(0)?;
            if step.element == ElementType::Bool {
                format!("({value} != 0)")
            } else if from == ElementType::Bool {
                format!("({})({value} ? 1 : 0)", compute_type(step.element)?)
            } else {
                format!("wf_convert<{}>({value})", compute_type(step.element)?)
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
    // Types that are computed in a wider type are rounded after each step.
    if keeps_type(&step.op) { Ok(value) } else { rounded(step.element, value) }
}

/// Whether an operation on values of a narrow type gives a value of that type exactly.
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

/// An element load, in the compute type.
pub(crate) fn load_expr(pointer: &str, place: &str) -> String {
    format!("wf_get({pointer}[{place}])")
}

/// A value in its storage type.
pub(crate) fn store_expr(element: ElementType, value: &str) -> Result<String, Unsupported> {
    let (stored, computed) = (storage_type(element)?, compute_type(element)?);
    Ok(if stored == computed { value.to_owned() } else { format!("wf_put<{stored}>({value})") })
}

/// The prelude function of a unary operation.
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

/// The prelude function of a binary operation.
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
