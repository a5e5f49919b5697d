//! Peephole rewrites: GELU in several instructions becomes one, which is faster and rounds once.

use warpforge_tensor::{ElementType, Scalar};

use super::domain::Output;
use super::inst::{BinaryOp, Inst, Register, UnaryOp};

/// The rewritten instructions without dead ones, and the renumbered outputs; `None` if no pattern matches.
pub(super) fn rewrite(
    insts: &[Inst],
    outputs: &[Output],
    types: &[ElementType],
) -> Option<(Vec<Inst>, Vec<Output>)> {
    let matcher = PatternMatcher::new(insts, outputs);
    let mut whole = insts.to_vec();
    let mut found = false;
    for (at, inst) in whole.iter_mut().enumerate() {
        if types[at] == ElementType::F32
            && let Some(x) = matcher.gelu(Register(at))
        {
            *inst = Inst::Unary(UnaryOp::Gelu, x);
            found = true;
        }
    }
    found.then(|| eliminate_dead(&whole, outputs))
}

/// Eliminates dead instructions and renumbers the outputs.
fn eliminate_dead(insts: &[Inst], outputs: &[Output]) -> (Vec<Inst>, Vec<Output>) {
    let mut needed = vec![false; insts.len()];
    outputs.iter().for_each(|output| needed[output.value.0] = true);
    for at in (0..insts.len()).rev() {
        if needed[at] {
            insts[at].operands().for_each(|operand| needed[operand.0] = true);
        }
    }
    let mut numbers = vec![Register(0); insts.len()];
    let mut kept: Vec<Inst> = Vec::new();
    for (at, inst) in insts.iter().enumerate().filter(|&(at, _)| needed[at]) {
        numbers[at] = Register(kept.len());
        let mut inst = inst.clone();
        inst.operands_mut().for_each(|operand| *operand = numbers[operand.0]);
        kept.push(inst);
    }
    let outputs = outputs.iter().map(|output| Output { value: numbers[output.value.0], ..output.clone() });
    (kept, outputs.collect())
}

/// A matcher over validated instructions.
struct PatternMatcher<'a> {
    insts: &'a [Inst],
    /// Use counts.
    uses: Vec<usize>,
}

impl<'a> PatternMatcher<'a> {
    fn new(insts: &'a [Inst], outputs: &[Output]) -> Self {
        let mut uses = vec![0; insts.len()];
        let operands = insts.iter().flat_map(Inst::operands);
        operands.chain(outputs.iter().map(|output| output.value)).for_each(|read| uses[read.0] += 1);
        Self { insts, uses }
    }

    /// Matches `value = x / 2 (1 + erf(x / √2))` in any order of the factors; returns `x`.
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

    /// Matches `1 + erf(x / √2)` without other uses; returns `x`.
    fn gate(&self, value: Register) -> Option<Register> {
        use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};
        let error = self.with_number(value, BinaryOp::Add, 1.0)?;
        let Inst::Unary(UnaryOp::Erf, scaled) = self.insts[error.0] else { return None };
        let x = self.with_number(scaled, BinaryOp::Multiply, FRAC_1_SQRT_2);
        let x = x.or_else(|| self.with_number(scaled, BinaryOp::Divide, SQRT_2));
        x.filter(|_| self.uses[value.0] == 1 && self.uses[error.0] == 1)
    }

    /// The operands of a multiplication, in both orders.
    fn factors(&self, value: Register) -> Option<[[Register; 2]; 2]> {
        match self.insts[value.0] {
            Inst::Binary(BinaryOp::Multiply, a, b) => Some([[a, b], [b, a]]),
            _ => None,
        }
    }

    /// The other operand of an operation with a constant.
    fn with_number(&self, value: Register, op: BinaryOp, number: f32) -> Option<Register> {
        let Inst::Binary(found, a, b) = self.insts[value.0] else { return None };
        let is_number = |operand: Register| matches!(self.insts[operand.0], Inst::Constant(_, Scalar::Float(float)) if float as f32 == number);
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

    fn float(value: f64) -> Inst {
        Inst::Constant(FLOAT, Scalar::Float(value))
    }

    fn multiply(a: usize, b: usize) -> Inst {
        Inst::Binary(BinaryOp::Multiply, Register(a), Register(b))
    }

    /// Loads, constants, `1 + erf(x / √2)` as the seventh step, and then these.
    fn insts(root: Inst, rest: &[Inst]) -> Vec<Inst> {
        let mut insts = vec![
            Inst::Load(0),
            float(0.5),
            float(1.0),
            float(std::f64::consts::FRAC_1_SQRT_2),
            root,
            Inst::Unary(UnaryOp::Erf, Register(4)),
            Inst::Binary(BinaryOp::Add, Register(2), Register(5)),
        ];
        insts.extend_from_slice(rest);
        insts
    }

    fn outputs(values: &[usize]) -> Vec<Output> {
        let sink = Sink::Memory(Access::default());
        values.iter().map(|&value| Output { value: Register(value), sink: sink.clone() }).collect()
    }

    fn found(insts: &[Inst], results: &[usize]) -> Option<(Vec<Inst>, Vec<Output>)> {
        rewrite(insts, &outputs(results), &vec![FLOAT; insts.len()])
    }

    #[test]
    fn gelu_in_any_operand_order_becomes_one_instruction() {
        let orders = [
            [multiply(0, 1), multiply(7, 6)],
            [multiply(1, 0), multiply(6, 7)],
            [multiply(0, 6), multiply(7, 1)],
            [multiply(6, 0), multiply(1, 7)],
            [multiply(6, 1), multiply(0, 7)],
        ];
        for order in orders {
            let (insts, results) = found(&insts(multiply(3, 0), &order), &[8]).unwrap();
            assert_eq!(insts, [Inst::Load(0), Inst::Unary(UnaryOp::Gelu, Register(0))], "{order:?}");
            assert_eq!(results, outputs(&[1]));
        }
    }

    #[test]
    fn shared_subexpressions_are_kept() {
        let rest =
            [multiply(0, 1), multiply(7, 6), Inst::Binary(BinaryOp::Subtract, Register(8), Register(7))];
        let (insts, results) = found(&insts(multiply(0, 3), &rest), &[9, 8]).unwrap();
        let subtract = Inst::Binary(BinaryOp::Subtract, Register(3), Register(2));
        let gelu = Inst::Unary(UnaryOp::Gelu, Register(0));
        assert_eq!(insts, [Inst::Load(0), float(0.5), multiply(0, 1), gelu, subtract]);
        assert_eq!(results, outputs(&[4, 3]));
    }

    #[test]
    fn near_matches_are_not_rewritten() {
        let usual = [multiply(0, 1), multiply(7, 6)];
        // The gate, or the error function, is wanted too.
        assert!(found(&insts(multiply(0, 3), &usual), &[8, 6]).is_none());
        assert!(found(&insts(multiply(0, 3), &usual), &[8, 5]).is_none());
        // Another factor within, or another half.
        assert!(found(&insts(multiply(0, 1), &usual), &[8]).is_none());
        assert!(found(&insts(multiply(0, 3), &[multiply(0, 3), multiply(7, 6)]), &[8]).is_none());
        // A root that is divided, not divided by.
        let divide = Inst::Binary(BinaryOp::Divide, Register(3), Register(0));
        assert!(found(&insts(divide, &usual), &[8]).is_none());
        // Another type, whose steps round.
        let insts = insts(multiply(0, 3), &usual);
        let types = vec![ElementType::BF16; insts.len()];
        assert!(rewrite(&insts, &outputs(&[8]), &types).is_none());
    }
}
