//! A complex number as the nodes of its two parts.

use warpforge_tensor::ElementType;
use warpforge_tensor::elementwise::Function;

use crate::graph::NodeId;
use crate::graph::build::Builder;
use crate::graph::op::Op;

/// The real and the imaginary part of a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) re: NodeId,
    pub(super) im: NodeId,
}

impl Pair {
    pub(super) fn part(self, which: Part) -> NodeId {
        match which {
            Part::Real => self.re,
            Part::Imaginary => self.im,
        }
    }

    /// The node that stands for both.
    pub(super) fn whole(self, b: &mut Builder) -> Option<NodeId> {
        let ElementType::Float(part) = b.node(self.re).element else { return None };
        let dims = b.node(self.re).dims.clone();
        Some(b.raw(Op::Complex, vec![self.re, self.im], ElementType::Complex(part), dims))
    }
}

/// One of both.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Real,
    Imaginary,
}

/// The parts of a node that stands for a complex number.
pub(super) fn parts(b: &Builder, id: NodeId) -> Option<Pair> {
    match (&b.node(id).op, b.node(id).inputs.as_slice()) {
        (Op::Complex, &[re, im]) => Some(Pair { re, im }),
        _ => None,
    }
}

/// Whether a part is zero everywhere.
pub(super) fn is_zero(b: &Builder, id: NodeId) -> bool {
    b.number(id) == Some(0.0)
}

/// The product of two numbers. One that is known to be real scales the other: infinities do not meet its zero.
pub(super) fn product(b: &mut Builder, one: Pair, other: Pair) -> Pair {
    let mut times = |x, y| b.map(Function::Multiply, vec![x, y]);
    let rr = times(one.re, other.re);
    let (ii, ri, ir) = (times(one.im, other.im), times(one.re, other.im), times(one.im, other.re));
    match (is_zero(b, one.im), is_zero(b, other.im)) {
        (true, true) => Pair { re: rr, im: one.im },
        (false, true) => Pair { re: rr, im: ir },
        (true, false) => Pair { re: rr, im: ri },
        (false, false) => {
            Pair { re: b.map(Function::Subtract, vec![rr, ii]), im: b.map(Function::Add, vec![ri, ir]) }
        }
    }
}
