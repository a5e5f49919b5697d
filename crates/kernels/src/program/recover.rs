//! Functions that a program has in several steps and that are one: each becomes one step, which costs less and rounds once.

use warpforge_tensor::{ElementType, Scalar};

use super::domain::Output;
use super::step::{BinaryOp, Register, Step, UnaryOp};

/// The steps with functions in one piece and without what nothing needs then, and the outputs by their new numbers; `None`
/// where there is no such function.
pub(super) fn recovered(
    steps: &[Step],
    outputs: &[Output],
    types: &[ElementType],
) -> Option<(Vec<Step>, Vec<Output>)> {
    let see = See::new(steps, outputs);
    let mut whole = steps.to_vec();
    let mut found = false;
    for (at, step) in whole.iter_mut().enumerate() {
        if types[at] == ElementType::F32
            && let Some(x) = see.gelu(Register(at))
        {
            *step = Step::Unary(UnaryOp::Gelu, x);
            found = true;
        }
    }
    found.then(|| without_unneeded(&whole, outputs))
}

/// The steps that outputs need, and the outputs by their new numbers.
fn without_unneeded(steps: &[Step], outputs: &[Output]) -> (Vec<Step>, Vec<Output>) {
    let mut needed = vec![false; steps.len()];
    outputs.iter().for_each(|output| needed[output.value.0] = true);
    for at in (0..steps.len()).rev() {
        if needed[at] {
            steps[at].operands().for_each(|operand| needed[operand.0] = true);
        }
    }
    let mut numbers = vec![Register(0); steps.len()];
    let mut kept: Vec<Step> = Vec::new();
    for (at, step) in steps.iter().enumerate().filter(|&(at, _)| needed[at]) {
        numbers[at] = Register(kept.len());
        let mut step = step.clone();
        step.operands_mut().for_each(|operand| *operand = numbers[operand.0]);
        kept.push(step);
    }
    let outputs = outputs.iter().map(|output| Output { value: numbers[output.value.0], ..output.clone() });
    (kept, outputs.collect())
}

/// A view of steps that have been checked.
struct See<'a> {
    steps: &'a [Step],
    /// How often each value is read.
    uses: Vec<usize>,
}

impl<'a> See<'a> {
    fn new(steps: &'a [Step], outputs: &[Output]) -> Self {
        let mut uses = vec![0; steps.len()];
        let operands = steps.iter().flat_map(Step::operands);
        operands.chain(outputs.iter().map(|output| output.value)).for_each(|read| uses[read.0] += 1);
        Self { steps, uses }
    }

    /// What `value` is the unit of, in any order of the factors: `value = x / 2 (1 + erf(x / √2))`.
    fn gelu(&self, value: Register) -> Option<Register> {
        let halved = |value| self.with_number(value, BinaryOp::Multiply, 0.5);
        let gated = |value| self.factors(value)?.into_iter().find(|&[x, gate]| self.gate(gate) == Some(x));
        // The half belongs to the product, ...
        if let Some(product) = halved(value).filter(|&product| self.uses[product.0] == 1)
            && let Some([x, _]) = gated(product)
        {
            return Some(x);
        }
        // ... to the number or to the gate.
        self.factors(value)?.into_iter().find_map(|[number, gate]| {
            let with_number = || halved(number).filter(|&x| self.gate(gate) == Some(x));
            let with_gate = || halved(gate).filter(|&gate| self.gate(gate) == Some(number)).map(|_| number);
            with_number().or_else(with_gate)
        })
    }

    /// What a value is `1 + erf(x / √2)` of, where nothing else needs that.
    fn gate(&self, value: Register) -> Option<Register> {
        use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};
        let error = self.with_number(value, BinaryOp::Add, 1.0)?;
        let Step::Unary(UnaryOp::Erf, scaled) = self.steps[error.0] else { return None };
        let x = self.with_number(scaled, BinaryOp::Multiply, FRAC_1_SQRT_2);
        let x = x.or_else(|| self.with_number(scaled, BinaryOp::Divide, SQRT_2));
        x.filter(|_| self.uses[value.0] == 1 && self.uses[error.0] == 1)
    }

    /// The factors of a product, in both orders.
    fn factors(&self, value: Register) -> Option<[[Register; 2]; 2]> {
        match self.steps[value.0] {
            Step::Binary(BinaryOp::Multiply, a, b) => Some([[a, b], [b, a]]),
            _ => None,
        }
    }

    /// The other operand of an operation with a number.
    fn with_number(&self, value: Register, op: BinaryOp, number: f32) -> Option<Register> {
        let Step::Binary(found, a, b) = self.steps[value.0] else { return None };
        let is_number = |operand: Register| matches!(self.steps[operand.0], Step::Constant(_, Scalar::Float(float)) if float as f32 == number);
        match found == op {
            true if is_number(b) => Some(a),
            true if is_number(a) && op != BinaryOp::Divide => Some(b),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::domain::{Access, Sink};
    use super::*;

    const FLOAT: ElementType = ElementType::F32;

    fn float(value: f64) -> Step {
        Step::Constant(FLOAT, Scalar::Float(value))
    }

    fn multiply(a: usize, b: usize) -> Step {
        Step::Binary(BinaryOp::Multiply, Register(a), Register(b))
    }

    /// Loads, constants, `1 + erf(x / √2)` as the seventh step, and then these.
    fn steps(root: Step, rest: &[Step]) -> Vec<Step> {
        let mut steps = vec![
            Step::Load(0),
            float(0.5),
            float(1.0),
            float(std::f64::consts::FRAC_1_SQRT_2),
            root,
            Step::Unary(UnaryOp::Erf, Register(4)),
            Step::Binary(BinaryOp::Add, Register(2), Register(5)),
        ];
        steps.extend_from_slice(rest);
        steps
    }

    fn outputs(values: &[usize]) -> Vec<Output> {
        let sink = Sink::Memory(Access::default());
        values.iter().map(|&value| Output { value: Register(value), sink: sink.clone() }).collect()
    }

    fn found(steps: &[Step], results: &[usize]) -> Option<(Vec<Step>, Vec<Output>)> {
        recovered(steps, &outputs(results), &vec![FLOAT; steps.len()])
    }

    #[test]
    fn a_gelu_in_any_order_is_one_step() {
        let orders = [
            [multiply(0, 1), multiply(7, 6)],
            [multiply(1, 0), multiply(6, 7)],
            [multiply(0, 6), multiply(7, 1)],
            [multiply(6, 0), multiply(1, 7)],
            [multiply(6, 1), multiply(0, 7)],
        ];
        for order in orders {
            let (steps, results) = found(&steps(multiply(3, 0), &order), &[8]).unwrap();
            assert_eq!(steps, [Step::Load(0), Step::Unary(UnaryOp::Gelu, Register(0))], "{order:?}");
            assert_eq!(results, outputs(&[1]));
        }
    }

    #[test]
    fn what_others_need_stays() {
        let rest =
            [multiply(0, 1), multiply(7, 6), Step::Binary(BinaryOp::Subtract, Register(8), Register(7))];
        let (steps, results) = found(&steps(multiply(0, 3), &rest), &[9, 8]).unwrap();
        let subtract = Step::Binary(BinaryOp::Subtract, Register(3), Register(2));
        let gelu = Step::Unary(UnaryOp::Gelu, Register(0));
        assert_eq!(steps, [Step::Load(0), float(0.5), multiply(0, 1), gelu, subtract]);
        assert_eq!(results, outputs(&[4, 3]));
    }

    #[test]
    fn what_is_not_quite_one_is_left_alone() {
        let usual = [multiply(0, 1), multiply(7, 6)];
        // The gate, or the error function, is wanted too.
        assert!(found(&steps(multiply(0, 3), &usual), &[8, 6]).is_none());
        assert!(found(&steps(multiply(0, 3), &usual), &[8, 5]).is_none());
        // Another factor within, or another half.
        assert!(found(&steps(multiply(0, 1), &usual), &[8]).is_none());
        assert!(found(&steps(multiply(0, 3), &[multiply(0, 3), multiply(7, 6)]), &[8]).is_none());
        // A root that is divided, not divided by.
        let divide = Step::Binary(BinaryOp::Divide, Register(3), Register(0));
        assert!(found(&steps(divide, &usual), &[8]).is_none());
        // Another type, whose steps round.
        let steps = steps(multiply(0, 3), &usual);
        let types = vec![ElementType::BF16; steps.len()];
        assert!(recovered(&steps, &outputs(&[8]), &types).is_none());
    }
}
