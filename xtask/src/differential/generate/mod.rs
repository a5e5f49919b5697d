//! Random programs, one operation after the other.

mod contraction;
mod control;
mod elementwise;
mod indexing;
mod reduction;
mod shape;

use std::fmt::Write as _;

use fastrand::Rng;
use warpforge_tensor::ElementType;

use super::inputs;
use super::program::{OpTolerance, Program, Step, Ty};

/// Adds one operation of a family, or finds that the dice fell badly.
type Maker = fn(&mut Generator) -> anyhow::Result<Option<Step>>;

/// The families, each as often as it stands here.
const MAKERS: &[Maker] = &[
    elementwise::unary,
    elementwise::unary,
    elementwise::unary,
    elementwise::unary,
    elementwise::unary,
    elementwise::unary,
    elementwise::binary,
    elementwise::binary,
    elementwise::binary,
    elementwise::binary,
    elementwise::binary,
    elementwise::compare,
    elementwise::select,
    elementwise::clamp,
    elementwise::convert,
    elementwise::bitcast,
    elementwise::complex_parts,
    shape::broadcast,
    shape::reshape,
    shape::transpose,
    shape::slice,
    shape::pad,
    shape::concatenate,
    shape::reverse,
    shape::iota,
    contraction::dot_general,
    contraction::convolution,
    contraction::fft,
    contraction::cholesky,
    contraction::triangular_solve,
    reduction::reduce,
    reduction::arg_max,
    reduction::reduce_window,
    reduction::select_and_scatter,
    reduction::sort,
    indexing::gather,
    indexing::scatter,
    indexing::dynamic_slice,
    indexing::dynamic_update_slice,
    control::conditional,
    control::counted_loop,
    control::map,
    control::threefry,
];

pub(crate) const FLOATS: &[ElementType] =
    &[ElementType::F32, ElementType::F64, ElementType::F16, ElementType::BF16];
pub(crate) const WIDE_FLOATS: &[ElementType] = &[ElementType::F32, ElementType::F64];
pub(crate) const COMPLEX: &[ElementType] = &[ElementType::C64, ElementType::C128];
pub(crate) const INTS: &[ElementType] = &[
    ElementType::I8,
    ElementType::I16,
    ElementType::I32,
    ElementType::I64,
    ElementType::U8,
    ElementType::U16,
    ElementType::U32,
    ElementType::U64,
];

/// Every element type that both sides have.
pub(crate) fn every_type() -> Vec<ElementType> {
    [FLOATS, COMPLEX, INTS, &[ElementType::Bool]].concat()
}

/// A program in the making.
pub(crate) struct Generator<'r> {
    pub(crate) rng: &'r mut Rng,
    pub(crate) program: Program,
}

/// A program of so many operations.
pub(crate) fn program(rng: &mut Rng, steps: usize) -> anyhow::Result<Program> {
    let mut generator = Generator { rng, program: Program::default() };
    while generator.program.steps.len() < steps {
        let maker = MAKERS[generator.rng.usize(..MAKERS.len())];
        if let Some(step) = maker(&mut generator)? {
            generator.program.push(step);
        }
    }
    Ok(generator.program)
}

impl Generator<'_> {
    /// The type of a value.
    pub(crate) fn ty(&self, value: usize) -> Ty {
        self.program.types()[value].clone()
    }

    /// One of several.
    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.rng.usize(..choices.len())]
    }

    /// A random shape of at most so many dimensions, now and then an empty one.
    pub(crate) fn shape(&mut self, ranks: std::ops::RangeInclusive<usize>) -> Vec<usize> {
        let rank = self.rng.usize(ranks);
        let empty = self.rng.u8(..40) == 0;
        (0..rank).map(|_| self.rng.usize(usize::from(!empty)..6)).collect()
    }

    /// A value that is acceptable: one there is, or a new input of one of the elements and a random shape.
    pub(crate) fn value(
        &mut self,
        elements: &[ElementType],
        accept: impl Fn(&Ty) -> bool,
    ) -> anyhow::Result<Option<usize>> {
        let fits: Vec<usize> = (0..self.program.types().len())
            .filter(|&value| {
                let ty = &self.program.types()[value];
                elements.contains(&ty.element) && accept(ty)
            })
            .collect();
        if !fits.is_empty() && self.rng.u8(..4) != 0 {
            return Ok(Some(self.one_of(&fits)));
        }
        let ty = Ty::new(self.shape(0..=3), self.one_of(elements));
        if accept(&ty) { self.input(&ty).map(Some) } else { Ok(None) }
    }

    /// A value of a type: one there is, or a new input.
    pub(crate) fn of_type(&mut self, ty: &Ty) -> anyhow::Result<usize> {
        let fits: Vec<usize> =
            (0..self.program.types().len()).filter(|&value| self.program.types()[value] == *ty).collect();
        if !fits.is_empty() && self.rng.u8(..3) != 0 {
            return Ok(self.one_of(&fits));
        }
        self.input(ty)
    }

    /// A new input of a type.
    pub(crate) fn input(&mut self, ty: &Ty) -> anyhow::Result<usize> {
        let tensor = inputs::random(self.rng, ty)?;
        Ok(self.program.input(tensor))
    }

    /// A new input of integers below a bound.
    pub(crate) fn indices(&mut self, ty: &Ty, bound: usize) -> anyhow::Result<usize> {
        let tensor = inputs::indices(self.rng, ty, bound)?;
        Ok(self.program.input(tensor))
    }

    /// An operation in its generic form; `middle` is what stands between operands and types: regions, attributes.
    pub(crate) fn step(
        &self,
        op: &'static str,
        operands: Vec<usize>,
        middle: &str,
        results: Vec<Ty>,
        tolerance: OpTolerance,
    ) -> Step {
        let names: Vec<String> = (0..operands.len()).map(|at| format!("%a{at}")).collect();
        let types: Vec<String> = operands.iter().map(|&value| self.ty(value).to_string()).collect();
        let mut body = String::new();
        let _ = writeln!(
            body,
            "    %r:{} = \"{op}\"({}){}{middle} : ({}) -> ({})",
            results.len(),
            names.join(", "),
            if middle.is_empty() { "" } else { " " },
            types.join(", "),
            list(&results),
        );
        let returned = (0..results.len()).map(|at| format!("%r#{at}")).collect();
        Step { op, operands, body, returned, results, tolerance }
    }
}

/// Things with commas between them.
pub(crate) fn list<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// An attribute that is a list of integers.
pub(crate) fn array(items: &[usize]) -> String {
    if items.is_empty() { "array<i64>".to_owned() } else { format!("array<i64: {}>", list(items)) }
}

/// Numbers from 0 on in random order.
pub(crate) fn permutation(rng: &mut Rng, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    rng.shuffle(&mut order);
    order
}
