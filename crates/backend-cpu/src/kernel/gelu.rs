//! GELU by the hyperbolic tangent, and its gradient, as instructions of fused loops on f32.

use warpforge_kernels::fused_loop::{Function, Inst, Register};
use warpforge_tensor::{ElementType, Scalar};

/// √(2/π).
const BETA: f64 = std::f64::consts::SQRT_2 * std::f64::consts::FRAC_2_SQRT_PI * 0.5;

/// The factor of the cube.
const CUBIC: f64 = 0.044_715;

/// Appends instructions; the last of a function is given back to be appended by the caller.
struct Emit<'a>(&'a mut Vec<Inst>);

impl Emit<'_> {
    fn push(&mut self, inst: Inst) -> Register {
        self.0.push(inst);
        Register(self.0.len() - 1)
    }

    fn number(&mut self, value: f64) -> Register {
        self.push(Inst::Constant(ElementType::F32, Scalar::Float(value)))
    }

    fn add(&mut self, a: Register, b: Register) -> Register {
        self.push(Inst::Binary(Function::Add, a, b))
    }

    fn multiply(&mut self, a: Register, b: Register) -> Register {
        self.push(Inst::Binary(Function::Multiply, a, b))
    }

    /// `tanh(β (x + c x³))` and `x²`.
    fn tangent(&mut self, x: Register) -> (Register, Register) {
        let square = self.multiply(x, x);
        let cube = self.multiply(square, x);
        let cubic = self.number(CUBIC);
        let bent = self.multiply(cube, cubic);
        let sum = self.add(x, bent);
        let beta = self.number(BETA);
        let inner = self.multiply(sum, beta);
        (self.push(Inst::Unary(Function::Tanh, inner)), square)
    }

    /// `(1 + t) / 2`.
    fn gate(&mut self, tangent: Register) -> Register {
        let one = self.number(1.0);
        let opened = self.add(tangent, one);
        let half = self.number(0.5);
        self.multiply(opened, half)
    }
}

/// `x (1 + t) / 2`.
pub(super) fn forward(insts: &mut Vec<Inst>, x: Register) -> Inst {
    let mut emit = Emit(insts);
    let (tangent, _) = emit.tangent(x);
    let gate = emit.gate(tangent);
    Inst::Binary(Function::Multiply, x, gate)
}

/// `given ((1 + t) / 2 + x (1 - t²) β (1 + 3 c x²) / 2)`.
pub(super) fn gradient(insts: &mut Vec<Inst>, given: Register, x: Register) -> Inst {
    let mut emit = Emit(insts);
    let (tangent, square) = emit.tangent(x);
    let gate = emit.gate(tangent);
    let one = emit.number(1.0);
    let squared = emit.multiply(tangent, tangent);
    let steep = emit.push(Inst::Binary(Function::Subtract, one, squared));
    let factor = emit.number(3.0 * CUBIC);
    let scaled = emit.multiply(square, factor);
    let wide = emit.add(scaled, one);
    let half = emit.number(0.5 * BETA);
    let along = emit.multiply(x, half);
    let along = emit.multiply(along, steep);
    let along = emit.multiply(along, wide);
    let slope = emit.add(gate, along);
    Inst::Binary(Function::Multiply, given, slope)
}
