//! How linear layers compute: in the type of the model, with float8 operands, or with values rounded as a format of blocks has them.

use warpforge::{ElementType, FloatType};

use super::format::Format;
use super::graph::{Function, Graph, Reduction, Value};

pub(super) const F8E4M3: ElementType = ElementType::Float(FloatType::F8E4M3Fn);
const F8E5M2: ElementType = ElementType::Float(FloatType::F8E5M2);

/// The least scale of a value, so that zeros have one.
pub(super) const LEAST_SCALE: f64 = 1e-12;

/// How linear layers compute.
#[derive(Debug, Clone, Copy)]
pub(super) enum Layers {
    /// In the type of the model.
    Plain,
    /// With float8 operands.
    Scaled(Scaling),
    /// With operands rounded as a format has them.
    Emulated(Format),
}

/// How operands are rounded to float8.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scaling {
    /// A scale for each row and each column of a product, instead of one for each operand.
    pub(super) by_row: bool,
    pub(super) input: bool,
    pub(super) weight: bool,
    pub(super) grad_output: bool,
    pub(super) fast_accum: bool,
}

impl Scaling {
    /// The type of gradients. They vary more: one scale for all needs a larger range.
    fn of_gradients(self) -> ElementType {
        if self.by_row { F8E4M3 } else { F8E5M2 }
    }
}

/// An operand: the value, the dimension that is contracted, the float8 type.
type Side = (Value, usize, ElementType);

impl Layers {
    /// `input · weightsᵀ`, of matrices.
    pub(super) fn product(self, graph: &mut Graph, input: Value, weights: Value) -> Value {
        match self {
            Self::Scaled(scaling) if scaling.input && scaling.weight => {
                let sides = [(input, 1, F8E4M3), (weights, 1, F8E4M3)];
                graph.scaled_product(sides, scaling.by_row, scaling.fast_accum)
            }
            Self::Emulated(format) => {
                let (input, weights) = format.rounded(graph, input, weights);
                let result = graph.dot([input, weights], 0, [1, 1]);
                graph.convert(result, graph.element)
            }
            Self::Plain | Self::Scaled(_) => graph.dot([input, weights], 0, [1, 1]),
        }
    }
}

impl Graph {
    /// The gradient of the input of a linear layer, from that of its result.
    pub(super) fn gradient_of_input(&mut self, d: Value, weights: Value) -> Value {
        match self.layers {
            Some(Layers::Scaled(scaling)) if scaling.grad_output && scaling.weight => {
                // Fewer bits are for results alone: errors of gradients add up.
                let sides = [(d, 1, scaling.of_gradients()), (weights, 0, F8E4M3)];
                self.scaled_product(sides, scaling.by_row, false)
            }
            _ => self.dot([d, weights], 0, [1, 0]),
        }
    }

    /// The gradient of the weights of a linear layer, from that of its result.
    pub(super) fn gradient_of_weights(&mut self, d: Value, input: Value) -> Value {
        match self.layers {
            Some(Layers::Scaled(scaling)) if scaling.grad_output && scaling.input => {
                let sides = [(d, 0, scaling.of_gradients()), (input, 0, F8E4M3)];
                self.scaled_product(sides, scaling.by_row, false)
            }
            _ => self.dot([d, input], 0, [0, 0]),
        }
    }

    /// A product of matrices that are rounded to float8.
    fn scaled_product(&mut self, sides: [Side; 2], by_row: bool, fast_accum: bool) -> Value {
        let [(a, of_left), (b, of_right)] = sides.map(|side| self.float8(side, by_row));
        let algorithm = format!(
            ", algorithm = <lhs_precision_type = {}, rhs_precision_type = {}, accumulation_type = f32, lhs_component_count = 1, \
             rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = {fast_accum}>",
            sides[0].2, sides[1].2
        );
        let along = sides.map(|(_, along, _)| along);
        let mut result = self.dot_to([a, b], 0, along, ElementType::F32, algorithm);
        let dims = self.dims(result).to_vec();
        for (at, scale) in [of_left, of_right].into_iter().enumerate() {
            let map = if by_row { vec![at] } else { vec![] };
            let scale = self.repeated(scale, &map, &dims);
            result = self.map(Function::Multiply, &[result, scale]);
        }
        self.convert(result, self.element)
    }

    /// A matrix in float8, and its scale or the scales of what is not contracted.
    fn float8(&mut self, (of, along, element): Side, by_row: bool) -> (Value, Value) {
        let most = if element == F8E5M2 { 57344.0 } else { 448.0 };
        let wide = self.convert(of, ElementType::F32);
        let dims = self.dims(of).to_vec();
        let size = self.map(Function::Abs, &[wide]);
        let mut largest = self.reduced(size, along, Reduction::Magnitude);
        if !by_row {
            largest = self.reduced(largest, 0, Reduction::Magnitude);
        }
        let part = self.splat(1.0 / most, largest);
        let scale = self.map(Function::Multiply, &[largest, part]);
        let least = self.splat(LEAST_SCALE, scale);
        let scale = self.map(Function::Maximum, &[scale, least]);
        let one = self.splat(1.0, scale);
        let inverse = self.map(Function::Divide, &[one, scale]);
        let map = if by_row { vec![1 - along] } else { vec![] };
        let inverse = self.repeated(inverse, &map, &dims);
        let steps = self.map(Function::Multiply, &[wide, inverse]);
        (self.convert(steps, element), scale)
    }
}
