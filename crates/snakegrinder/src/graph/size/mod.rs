//! Sizes: numbers, or expressions of the symbols that a model's dynamic dimensions are.
//!
//! Sums of products have one form each, so two equal sizes compare equal. Quotients that do not come out even,
//! remainders, maxima and minima are atoms of that form.
//!
//! Arithmetic saturates: a size beyond 64 bits is no size of a tensor, and what is computed from it fails where it is
//! held against the shapes that the archive records.

mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Terms of a sum and factors of a product. Sizes of real models have a handful; a hostile one could make them grow
/// without end by multiplying sums.
const MAX_TERMS: usize = 1024;
const MAX_FACTORS: usize = 64;

/// What stands for a size with more terms or factors: a symbol that no argument has, so nothing can be computed of it.
const TOO_LONG: &str = "(an expression too long to compute with)";

/// A size, an index, or another integer that may depend on dynamic dimensions.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Size {
    /// A number.
    Int(i64),
    /// A sum of products that is no number.
    Sum(Arc<Sum>),
}

/// A sum: the coefficient of each product of atoms. The constant is the coefficient of the empty product.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Sum {
    terms: BTreeMap<Vec<Atom>, i64>,
}

/// What cannot be taken apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Atom {
    /// A symbol of the graph.
    Symbol(Arc<str>),
    /// A function of two sizes.
    Call(Function, Size, Size),
}

/// Functions of two sizes that sums of products do not express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Function {
    /// The quotient, rounded down.
    FloorDiv,
    /// The remainder of [`Function::FloorDiv`].
    Mod,
    /// The larger one.
    Max,
    /// The smaller one.
    Min,
}

impl Function {
    /// The value on numbers, as Python has it; `None` for a division by zero.
    pub(crate) fn apply(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Function::FloorDiv => {
                let (quotient, remainder) = (a.checked_div(b)?, a.checked_rem(b)?);
                Some(if remainder != 0 && (remainder < 0) != (b < 0) { quotient - 1 } else { quotient })
            }
            Function::Mod => {
                let remainder = a.checked_rem(b)?;
                Some(if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder })
            }
            Function::Max => Some(a.max(b)),
            Function::Min => Some(a.min(b)),
        }
    }
}

impl Size {
    /// A symbol.
    pub(crate) fn symbol(name: &str) -> Self {
        Size::of_atom(Atom::Symbol(name.into()))
    }

    fn of_atom(atom: Atom) -> Self {
        Size::of_terms(BTreeMap::from([(vec![atom], 1)]))
    }

    fn of_terms(mut terms: BTreeMap<Vec<Atom>, i64>) -> Self {
        terms.retain(|_, coefficient| *coefficient != 0);
        if terms.len() > MAX_TERMS || terms.keys().any(|product| product.len() > MAX_FACTORS) {
            return Size::too_long();
        }
        match terms.len() {
            0 => Size::Int(0),
            1 => match terms.get(&Vec::new()) {
                Some(&constant) => Size::Int(constant),
                None => Size::Sum(Arc::new(Sum { terms })),
            },
            _ => Size::Sum(Arc::new(Sum { terms })),
        }
    }

    fn terms(&self) -> BTreeMap<Vec<Atom>, i64> {
        match self {
            Size::Int(value) => BTreeMap::from([(Vec::new(), *value)]),
            Size::Sum(sum) => sum.terms.clone(),
        }
    }

    /// Reads an expression as sympy writes it, `Mul(Integer(2), Symbol('s0', integer=True))`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parse::parse(text)
    }

    /// The number, if it is one.
    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Size::Int(value) => Some(*value),
            Size::Sum(_) => None,
        }
    }

    /// The symbol, if it is nothing else.
    pub(crate) fn as_symbol(&self) -> Option<&str> {
        let Size::Sum(sum) = self else { return None };
        match sum.terms.iter().next() {
            Some((product, 1)) if sum.terms.len() == 1 => match product.as_slice() {
                [Atom::Symbol(name)] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    fn too_long() -> Self {
        Size::symbol(TOO_LONG)
    }

    fn is_too_long(&self) -> bool {
        self.as_symbol() == Some(TOO_LONG)
    }

    /// Whether it is this number.
    pub(crate) fn is(&self, value: i64) -> bool {
        self.as_int() == Some(value)
    }

    pub(crate) fn add(&self, other: &Size) -> Size {
        if let (Size::Int(a), Size::Int(b)) = (self, other) {
            return Size::Int(a.saturating_add(*b));
        }
        if self.is_too_long() || other.is_too_long() {
            return Size::too_long();
        }
        let mut terms = self.terms();
        for (product, coefficient) in other.terms() {
            let slot = terms.entry(product).or_default();
            *slot = slot.saturating_add(coefficient);
        }
        Size::of_terms(terms)
    }

    pub(crate) fn sub(&self, other: &Size) -> Size {
        self.add(&other.mul(&Size::Int(-1)))
    }

    pub(crate) fn mul(&self, other: &Size) -> Size {
        if let (Size::Int(a), Size::Int(b)) = (self, other) {
            return Size::Int(a.saturating_mul(*b));
        }
        let (own, others) = (self.terms(), other.terms());
        if own.len() * others.len() > MAX_TERMS || self.is_too_long() || other.is_too_long() {
            return Size::too_long();
        }
        let mut terms = BTreeMap::new();
        for (left, a) in own {
            for (right, b) in others.clone() {
                let mut product = left.clone();
                product.extend(right);
                product.sort();
                let slot: &mut i64 = terms.entry(product).or_default();
                *slot = slot.saturating_add(a.saturating_mul(b));
            }
        }
        Size::of_terms(terms)
    }

    /// The quotient rounded down; `None` for a division by the number zero.
    pub(crate) fn floor_div(&self, other: &Size) -> Option<Size> {
        self.exact_div(other).or_else(|| self.call(Function::FloorDiv, other))
    }

    /// The remainder of [`Size::floor_div`]; `None` for a division by the number zero.
    pub(crate) fn modulo(&self, other: &Size) -> Option<Size> {
        if self.exact_div(other).is_some() {
            return Some(Size::Int(0));
        }
        self.call(Function::Mod, other)
    }

    pub(crate) fn larger(&self, other: &Size) -> Size {
        self.call(Function::Max, other).unwrap_or_else(|| self.clone())
    }

    pub(crate) fn smaller(&self, other: &Size) -> Size {
        self.call(Function::Min, other).unwrap_or_else(|| self.clone())
    }

    fn call(&self, function: Function, other: &Size) -> Option<Size> {
        match (self, other) {
            (Size::Int(a), Size::Int(b)) => function.apply(*a, *b).map(Size::Int),
            (_, Size::Int(0)) if matches!(function, Function::FloorDiv | Function::Mod) => None,
            _ if self == other && matches!(function, Function::Max | Function::Min) => Some(self.clone()),
            _ => Some(Size::of_atom(Atom::Call(function, self.clone(), other.clone()))),
        }
    }

    /// The quotient where every term divides evenly by the one term of the divisor.
    fn exact_div(&self, other: &Size) -> Option<Size> {
        if self == other {
            return Some(Size::Int(1));
        }
        let divisor = other.terms();
        let (product, coefficient) = divisor.iter().next().filter(|_| divisor.len() == 1)?;
        if *coefficient == 0 {
            return None;
        }
        let mut terms = BTreeMap::new();
        for (atoms, factor) in self.terms() {
            let mut rest = atoms;
            for atom in product {
                rest.remove(rest.iter().position(|own| own == atom)?);
            }
            if factor.checked_rem(*coefficient)? != 0 {
                return None;
            }
            terms.insert(rest, factor.checked_div(*coefficient)?);
        }
        Some(Size::of_terms(terms))
    }

    /// The product of several sizes.
    pub(crate) fn product<'a>(sizes: impl IntoIterator<Item = &'a Size>) -> Size {
        sizes.into_iter().fold(Size::Int(1), |product, size| product.mul(size))
    }

    /// Puts values in the place of symbols.
    pub(crate) fn substitute(&self, values: &dyn Fn(&str) -> Option<i64>) -> Size {
        let Size::Sum(sum) = self else { return self.clone() };
        sum.terms.iter().fold(Size::Int(0), |total, (product, coefficient)| {
            let term =
                product.iter().fold(Size::Int(*coefficient), |term, atom| term.mul(&atom.substitute(values)));
            total.add(&term)
        })
    }

    /// The smallest and the largest value, as far as the ranges of the symbols tell.
    pub(crate) fn bounds(&self, range: &dyn Fn(&str) -> (i64, i64)) -> (i64, i64) {
        let Size::Sum(sum) = self else { return self.as_int().map_or((i64::MIN, i64::MAX), |v| (v, v)) };
        sum.terms.iter().fold((0, 0), |total: (i64, i64), (product, coefficient)| {
            let start = (*coefficient, *coefficient);
            let term = product.iter().fold(start, |term, atom| multiply_bounds(term, atom.bounds(range)));
            (total.0.saturating_add(term.0), total.1.saturating_add(term.1))
        })
    }

    /// Whether it is small enough to go on computing with. Sizes of real models are; a hostile graph could square one
    /// again and again, or nest one quotient in another until the stack is used up.
    pub(crate) fn is_tame(&self) -> bool {
        fn within(size: &Size, depth: usize, atoms: &mut usize) -> bool {
            let Size::Sum(sum) = size else { return true };
            depth > 0
                && sum.terms.keys().flatten().all(|atom| {
                    // What is shared is visited again wherever it occurs, so depth alone bounds nothing.
                    *atoms = atoms.saturating_sub(1);
                    *atoms > 0
                        && match atom {
                            Atom::Symbol(name) => &**name != TOO_LONG,
                            Atom::Call(_, a, b) => within(a, depth - 1, atoms) && within(b, depth - 1, atoms),
                        }
                })
        }
        within(self, 16, &mut 4096)
    }

    /// The terms of a sum for whoever computes it: coefficient and factors.
    pub(crate) fn for_each_term(&self, mut visit: impl FnMut(i64, &[Atom])) {
        match self {
            Size::Int(value) => visit(*value, &[]),
            Size::Sum(sum) => {
                sum.terms.iter().for_each(|(product, &coefficient)| visit(coefficient, product));
            }
        }
    }
}

fn multiply_bounds(a: (i64, i64), b: (i64, i64)) -> (i64, i64) {
    let corners =
        [a.0.saturating_mul(b.0), a.0.saturating_mul(b.1), a.1.saturating_mul(b.0), a.1.saturating_mul(b.1)];
    corners.into_iter().fold((i64::MAX, i64::MIN), |(low, high), corner| (low.min(corner), high.max(corner)))
}

impl Atom {
    fn substitute(&self, values: &dyn Fn(&str) -> Option<i64>) -> Size {
        match self {
            Atom::Symbol(name) => values(name).map_or_else(|| Size::of_atom(self.clone()), Size::Int),
            Atom::Call(function, a, b) => {
                let (a, b) = (a.substitute(values), b.substitute(values));
                let result = match function {
                    Function::FloorDiv => a.floor_div(&b),
                    Function::Mod => a.modulo(&b),
                    Function::Max | Function::Min => a.call(*function, &b),
                };
                result.unwrap_or_else(|| Size::of_atom(self.clone()))
            }
        }
    }

    fn bounds(&self, range: &dyn Fn(&str) -> (i64, i64)) -> (i64, i64) {
        match self {
            Atom::Symbol(name) => range(name),
            Atom::Call(function, a, b) => {
                let (a, b) = (a.bounds(range), b.bounds(range));
                match function {
                    Function::Max => (a.0.max(b.0), a.1.max(b.1)),
                    Function::Min => (a.0.min(b.0), a.1.min(b.1)),
                    Function::Mod if b.0 > 0 => (0, b.1.saturating_sub(1)),
                    Function::FloorDiv if a.0 >= 0 && b.0 > 0 => (a.0 / b.1.max(1), a.1 / b.0),
                    _ => (i64::MIN, i64::MAX),
                }
            }
        }
    }
}

impl From<i64> for Size {
    fn from(value: i64) -> Self {
        Size::Int(value)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size::Sum(sum) = self else { return write!(f, "{}", self.as_int().unwrap_or_default()) };
        for (at, (product, coefficient)) in sum.terms.iter().rev().enumerate() {
            let separator = if at > 0 { " + " } else { "" };
            f.write_str(separator)?;
            let factors: Vec<String> = product.iter().map(ToString::to_string).collect();
            match (*coefficient, factors.is_empty()) {
                (1, false) => f.write_str(&factors.join("*"))?,
                (value, true) => write!(f, "{value}")?,
                (value, false) => write!(f, "{value}*{}", factors.join("*"))?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Symbol(name) => f.write_str(name),
            Atom::Call(Function::FloorDiv, a, b) => write!(f, "(({a})//({b}))"),
            Atom::Call(Function::Mod, a, b) => write!(f, "(({a})%({b}))"),
            Atom::Call(Function::Max, a, b) => write!(f, "max({a}, {b})"),
            Atom::Call(Function::Min, a, b) => write!(f, "min({a}, {b})"),
        }
    }
}

impl fmt::Debug for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
