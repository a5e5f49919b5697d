//! Rewrites matrix products with constant weights.
//!
//! Weight-only recipes multiply in f32: `x · codes`, then the scale of each column; groups of 4 bits are `codes · scale + offset` before
//! the product. Dynamic recipes round the rows of `x` as well. Where a device does not multiply float8, float8 activations are f32 that hold
//! values of f8E4M3FN: their products and sums are those of float8 operands accumulated in f32.

use std::collections::HashMap;

use half::{bf16, f16};
use warpforge_ir::attr::{ComparisonDirection, ComparisonType};
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType, Scalar, Shape, Tensor};

use super::names::WeightNames;
use super::recipe::Recipe;
use super::weights::{F8_MAX, I8_MAX, LEAST_SCALE, QuantizeError, RowWeights, WeightMatrix};
use crate::graph::{Dot, Graph, Node, NodeId, Op, OpSpan, ReduceKind, Rewrite, evaluate};
use crate::view::{LayoutOp, dense_strides};

/// The graph with quantized weights. `float8` says whether the device multiplies floats of 8 bits by weights of so many columns and such a depth.
/// `spans` follow the nodes; `names` are those of the weights, for errors.
///
/// # Errors
///
/// When no product has constant weights, a group does not divide the depth of one, or a weight is no number.
pub(crate) fn quantize(
    graph: &Graph,
    recipe: Recipe,
    float8: &dyn Fn(usize, usize) -> bool,
    names: &WeightNames,
    spans: Option<&mut [OpSpan]>,
) -> Result<Graph, QuantizeError> {
    if !graph.ids().any(|id| weights_input(graph, id).is_some()) {
        return Err(QuantizeError::NoWeights);
    }
    if let Some(group) = recipe.group() {
        check_groups(graph, group, names)?;
    }
    let mut pass = Pass::new(graph, recipe);
    for id in graph.ids() {
        let node = pass.rewrite.next(id);
        let new = match weights_input(graph, id) {
            Some(dot) => pass.product(id, dot, float8, names)?,
            None => None,
        };
        let new = match new {
            Some(new) => new,
            None => pass.rewrite.push(node),
        };
        pass.rewrite.end(new);
    }
    let seen = spans.is_some();
    let graph = pass.rewrite.finish(spans);
    Ok(if seen { graph } else { graph.pruned() })
}

/// A product of floats without batch dimensions whose right-hand operand is a constant, converted or laid out otherwise.
fn weights_input(graph: &Graph, id: NodeId) -> Option<&Dot> {
    let node = graph.node(id);
    let (Op::Dot(dot), &[lhs, rhs]) = (&node.op, node.inputs.as_slice()) else { return None };
    let float =
        |element: ElementType| matches!(element, ElementType::F32 | ElementType::BF16 | ElementType::F16);
    let floats = float(node.element) && [lhs, rhs].iter().all(|&side| float(graph.node(side).element));
    let weights = !graph.node(rhs).is_empty() && is_weights(graph, rhs) && !graph.is_known(lhs);
    let quantizable = dot.lhs_batch.is_empty() && !dot.keeps_precision;
    (quantizable && !dot.rhs_contract.is_empty() && floats && weights).then_some(dot)
}

/// Whether a value is a constant of floats behind conversions and layouts alone.
fn is_weights(graph: &Graph, mut id: NodeId) -> bool {
    loop {
        let node = graph.node(id);
        let float = matches!(node.element, ElementType::F32 | ElementType::BF16 | ElementType::F16);
        match (&node.op, node.inputs.as_slice()) {
            (Op::Constant(_), _) => return float,
            (Op::Layout(_) | Op::Elementwise(Function::Convert), &[input]) if float => id = input,
            _ => return false,
        }
    }
}

/// Columns and depth of the weights of a product.
fn sizes(graph: &Graph, id: NodeId, dot: &Dot) -> (usize, Vec<usize>) {
    let dims = &graph.node(graph.node(id).inputs[1]).dims;
    let depth: Vec<usize> = dot.rhs_contract.iter().map(|&at| dims[at]).collect();
    (dims.iter().product::<usize>() / depth.iter().product::<usize>().max(1), depth)
}

fn check_groups(graph: &Graph, group: usize, names: &WeightNames) -> Result<(), QuantizeError> {
    let mut layers: Vec<String> = Vec::new();
    for id in graph.ids() {
        let Some(dot) = weights_input(graph, id) else { continue };
        let (n, depth) = sizes(graph, id, dot);
        let k: usize = depth.iter().product();
        let layer = names.product(graph.node(id).origin, k, n);
        if !k.is_multiple_of(group) && !layers.contains(&layer) {
            layers.push(layer);
        }
    }
    match layers.is_empty() {
        true => Ok(()),
        false => Err(QuantizeError::groups(group, &layers)),
    }
}

pub(super) struct Pass<'g> {
    pub(super) rewrite: Rewrite<'g>,
    recipe: Recipe,
    /// Activations that are rounded already, with the scales of their rows, by the old operand, its contracted dimensions, and whether they are
    /// floats of 8 bits.
    rounded: HashMap<(NodeId, Vec<usize>, bool), Activations>,
    /// The new nodes of weights that are quantized already, by the old operand and its contracted dimensions.
    known: HashMap<(NodeId, Vec<usize>), Weights>,
}

/// What is multiplied, in the new graph, and the scales of its rows.
type Activations = (NodeId, Option<NodeId>);

/// Quantized weights in the new graph.
#[derive(Clone, Copy)]
struct Weights {
    /// What is multiplied: `[columns, depth…]`.
    operand: NodeId,
    /// A scale for each column, or one for all, for the result.
    scales: Option<NodeId>,
}

impl<'g> Pass<'g> {
    pub(super) fn new(graph: &'g Graph, recipe: Recipe) -> Self {
        let (rounded, known) = (HashMap::new(), HashMap::new());
        Self { rewrite: Rewrite::new(graph), recipe, rounded, known }
    }

    /// The new node of a product; none where its weights cannot be read.
    fn product(
        &mut self,
        id: NodeId,
        dot: &Dot,
        float8: &dyn Fn(usize, usize) -> bool,
        names: &WeightNames,
    ) -> Result<Option<NodeId>, QuantizeError> {
        let old = self.rewrite.old;
        let node = old.node(id);
        let (n, depth) = sizes(old, id, dot);
        let float8 = float8(n, depth.iter().product());
        let (lhs, rhs) = (node.inputs[0], node.inputs[1]);
        let key = (rhs, dot.rhs_contract.clone());
        let weights = match self.known.get(&key) {
            Some(&weights) => weights,
            None => match self.weights(id, dot, float8, names)? {
                Some(weights) => *self.known.entry(key).or_insert(weights),
                None => return Ok(None),
            },
        };
        let (activations, row_scales) = self.activations(lhs, dot, float8);
        let free = free_dims(old.node(lhs).dims.len(), &dot.lhs_contract);
        let dims: Vec<usize> = free.iter().map(|&at| old.node(lhs).dims[at]).chain([n]).collect();
        let op = Op::Dot(Dot {
            lhs_contract: dot.lhs_contract.clone(),
            rhs_contract: (1..=depth.len()).collect(),
            // As torchao has it.
            imprecise_sums: float8 && self.recipe.is_float8_dynamic(),
            ..Dot::default()
        });
        let element = if self.recipe == Recipe::Int8Dynamic { ElementType::I32 } else { ElementType::F32 };
        let inputs = vec![activations, weights.operand];
        let mut result =
            self.rewrite.push(Node { op, inputs, element, dims: dims.clone(), origin: node.origin });
        if element != ElementType::F32 {
            result = self.rewrite.convert(result, ElementType::F32);
        }
        let last = dims.len() - 1;
        if let Some(scales) = row_scales {
            let map = if self.rewrite.dims(scales).is_empty() { vec![] } else { (0..last).collect() };
            let scales = self.broadcast(scales, &dims, map);
            result = self.map(Function::Multiply, &[result, scales]);
        }
        if let Some(scales) = weights.scales {
            let map = if self.rewrite.dims(scales).is_empty() { vec![] } else { vec![last] };
            let scales = self.broadcast(scales, &dims, map);
            result = self.map(Function::Multiply, &[result, scales]);
        }
        if node.element != ElementType::F32 {
            result = self.rewrite.convert(result, node.element);
        }
        Ok(Some(self.reshape(result, &node.dims)))
    }

    /// The left-hand operand as it is multiplied, and the scales of its rows. Products share it.
    fn activations(&mut self, old: NodeId, dot: &Dot, float8: bool) -> Activations {
        let key = (old, dot.lhs_contract.clone(), float8);
        if let Some(&known) = self.rounded.get(&key) {
            return known;
        }
        let mut activations = self.rewrite.moved(old);
        if self.rewrite.old.node(old).element != ElementType::F32 {
            activations = self.rewrite.convert(activations, ElementType::F32);
        }
        let made = self.rounded_rows(activations, old, dot, float8);
        self.rounded.insert(key, made);
        made
    }

    fn rounded_rows(&mut self, x: NodeId, old: NodeId, dot: &Dot, float8: bool) -> Activations {
        let dims = self.rewrite.old.node(old).dims.clone();
        let free = free_dims(dims.len(), &dot.lhs_contract);
        let (map, most) = match self.recipe {
            Recipe::Int8Dynamic => (free.clone(), I8_MAX),
            Recipe::Float8DynamicRow => (free.clone(), F8_MAX),
            Recipe::Float8DynamicTensor => (vec![], F8_MAX),
            _ => return (x, None),
        };
        let size = self.map(Function::Abs, &[x]);
        let mut axes = dot.lhs_contract.clone();
        axes.sort_unstable();
        let mut largest = self.largest(size, axes);
        // One scale for all is found row by row first, so that many threads take part.
        if map.is_empty() && !free.is_empty() {
            largest = self.largest(largest, (0..free.len()).collect());
        }
        let row_dims = self.rewrite.dims(largest).to_vec();
        let (part, least) = (self.splat(1.0 / most, &row_dims), self.splat(LEAST_SCALE, &row_dims));
        let scale = self.map(Function::Multiply, &[largest, part]);
        let scale = self.map(Function::Maximum, &[scale, least]);
        let one = self.splat(1.0, &row_dims);
        let inverse = self.map(Function::Divide, &[one, scale]);
        let inverse = self.broadcast(inverse, &dims, map);
        let steps = self.map(Function::Multiply, &[x, inverse]);
        let rounded = match self.recipe {
            Recipe::Int8Dynamic => {
                let rounded = self.map(Function::RoundNearestEven, &[steps]);
                self.rewrite.convert(rounded, ElementType::I8)
            }
            // None is far enough above the largest number to be rounded to more.
            _ if float8 => self.rewrite.convert(steps, ElementType::Float(FloatType::F8E4M3Fn)),
            _ => self.rounded_to_f8(steps),
        };
        (rounded, Some(scale))
    }

    /// f32 rounded to what f8E4M3FN can hold: four significant bits, from 2⁻⁶ down multiples of 2⁻⁹.
    pub(super) fn rounded_to_f8(&mut self, value: NodeId) -> NodeId {
        let dims = self.rewrite.dims(value).to_vec();
        let (low, high) = (self.splat(-F8_MAX, &dims), self.splat(F8_MAX, &dims));
        let value = self.map(Function::Maximum, &[value, low]);
        let value = self.map(Function::Minimum, &[value, high]);
        // Dekker's splitting: the upper 4 of 24 bits.
        let factor = self.splat(((1 << 20) + 1) as f32, &dims);
        let shifted = self.map(Function::Multiply, &[value, factor]);
        let rest = self.map(Function::Subtract, &[shifted, value]);
        let normal = self.map(Function::Subtract, &[shifted, rest]);
        // Numbers around 1.5 · 2¹⁴ are 2⁻⁹ apart.
        let magic = self.splat(24576.0, &dims);
        let sum = self.map(Function::Add, &[value, magic]);
        let small = self.map(Function::Subtract, &[sum, magic]);
        let (size, least) = (self.map(Function::Abs, &[value]), self.splat(0.015_625, &dims));
        let is_small = self.less(size, least);
        self.map(Function::Select, &[is_small, small, normal])
    }

    /// Where one value of f32 is less than another.
    pub(super) fn less(&mut self, value: NodeId, other: NodeId) -> NodeId {
        let (dims, origin) = (self.rewrite.dims(value).to_vec(), self.rewrite.origin(value));
        let op = Op::Compare(ComparisonDirection::Lt, ComparisonType::Float);
        let (inputs, element) = (vec![value, other], ElementType::Bool);
        self.rewrite.push(Node { op, inputs, element, dims, origin })
    }

    /// The largest values along some dimensions.
    fn largest(&mut self, of: NodeId, axes: Vec<usize>) -> NodeId {
        let dims = free_dims(self.rewrite.dims(of).len(), &axes);
        let dims = dims.into_iter().map(|at| self.rewrite.dims(of)[at]).collect();
        let origin = self.rewrite.origin(of);
        let op = Op::Reduce(ReduceKind::Max, axes);
        self.rewrite.push(Node { op, inputs: vec![of], element: ElementType::F32, dims, origin })
    }

    /// Quantizes the weights of a product.
    fn weights(
        &mut self,
        id: NodeId,
        dot: &Dot,
        float8: bool,
        names: &WeightNames,
    ) -> Result<Option<Weights>, QuantizeError> {
        let old = self.rewrite.old;
        let rhs = old.node(id).inputs[1];
        let (n, depth) = sizes(old, id, dot);
        let k = depth.iter().product();
        let Some(values) = matrix(old, rhs, dot) else { return Ok(None) };
        let matrix = WeightMatrix { values: &values, k };
        matrix.check_layer(|| names.product(old.node(id).origin, k, n))?;
        let dims: Vec<usize> = std::iter::once(n).chain(depth).collect();
        Ok(Some(match self.recipe {
            Recipe::Int8WeightOnly => self.rows(&matrix.int8(), ElementType::I8, &dims, true)?,
            Recipe::Int8Dynamic => self.rows(&matrix.int8(), ElementType::I8, &dims, false)?,
            Recipe::Float8WeightOnly | Recipe::Float8DynamicRow | Recipe::Float8DynamicTensor => {
                let one_scale = self.recipe == Recipe::Float8DynamicTensor;
                let mut weights = matrix.float8(one_scale);
                weights.scales.truncate(if one_scale { 1 } else { n });
                let widened = !(float8 && self.recipe.is_float8_dynamic());
                self.rows(&weights, ElementType::Float(FloatType::F8E4M3Fn), &dims, widened)?
            }
            Recipe::Int4WeightOnly { group, hqq } => {
                let group = group as usize;
                let four = matrix.int4(group, hqq);
                let codes: Vec<u8> = four.codes.iter().map(|&code| code.cast_unsigned() & 0xf).collect();
                let grouped = [n, k / group, group];
                let codes = self.constant(tensor(ElementType::I4, &grouped, &codes)?);
                let mut operand = self.rewrite.convert(codes, ElementType::F32);
                for (values, function) in [(&four.scales, Function::Multiply), (&four.offsets, Function::Add)]
                {
                    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                    let values = self.constant(tensor(ElementType::BF16, &grouped[..2], &bytes)?);
                    let wide = self.rewrite.convert(values, ElementType::F32);
                    let repeated = self.broadcast(wide, &grouped, vec![0, 1]);
                    operand = self.map(function, &[operand, repeated]);
                }
                Weights { operand: self.reshape(operand, &dims), scales: None }
            }
        }))
    }

    /// Weights with a scale for each column.
    fn rows(
        &mut self,
        weights: &RowWeights,
        element: ElementType,
        dims: &[usize],
        widened: bool,
    ) -> Result<Weights, QuantizeError> {
        let mut operand = self.constant(tensor(element, dims, &weights.codes)?);
        if widened {
            operand = self.rewrite.convert(operand, ElementType::F32);
        }
        // One scale for all columns is a scalar.
        let count = if weights.scales.len() == dims[0] { &dims[..1] } else { &[] };
        let scales = Tensor::from_slice(count, &weights.scales);
        let scales = self.constant(scales.map_err(|error| QuantizeError::Tensor(error.to_string()))?);
        Ok(Weights { operand, scales: Some(scales) })
    }

    pub(super) fn constant(&mut self, tensor: Tensor) -> NodeId {
        let (element, dims) = (tensor.element_type(), tensor.dims().to_vec());
        self.rewrite.push(Node { op: Op::Constant(tensor), inputs: vec![], element, dims, origin: None })
    }

    /// A number repeated.
    pub(super) fn splat(&mut self, value: f32, dims: &[usize]) -> NodeId {
        let scalar = Tensor::scalar(ElementType::F32, Scalar::Float(f64::from(value)));
        let scalar = self.constant(scalar.unwrap_or_else(|_| unreachable!("f32 holds every float")));
        self.broadcast(scalar, dims, vec![])
    }

    pub(super) fn broadcast(&mut self, of: NodeId, dims: &[usize], map: Vec<usize>) -> NodeId {
        if self.rewrite.dims(of) == dims {
            return of;
        }
        let (element, origin) = (self.rewrite.element(of), self.rewrite.origin(of));
        let op = Op::Layout(LayoutOp::Broadcast { dims: dims.to_vec(), map });
        self.rewrite.push(Node { op, inputs: vec![of], element, dims: dims.to_vec(), origin })
    }

    pub(super) fn reshape(&mut self, of: NodeId, dims: &[usize]) -> NodeId {
        if self.rewrite.dims(of) == dims {
            return of;
        }
        let (element, origin) = (self.rewrite.element(of), self.rewrite.origin(of));
        let op = Op::Layout(LayoutOp::Reshape(dims.to_vec()));
        self.rewrite.push(Node { op, inputs: vec![of], element, dims: dims.to_vec(), origin })
    }

    /// A function of f32.
    pub(super) fn map(&mut self, function: Function, inputs: &[NodeId]) -> NodeId {
        let (dims, origin) = (self.rewrite.dims(inputs[0]).to_vec(), self.rewrite.origin(inputs[0]));
        let op = Op::Elementwise(function);
        self.rewrite.push(Node { op, inputs: inputs.to_vec(), element: ElementType::F32, dims, origin })
    }
}

pub(super) fn free_dims(rank: usize, contract: &[usize]) -> Vec<usize> {
    (0..rank).filter(|at| !contract.contains(at)).collect()
}

fn tensor(element: ElementType, dims: &[usize], bytes: &[u8]) -> Result<Tensor, QuantizeError> {
    let shape = Shape::new(dims).map_err(|error| QuantizeError::Tensor(error.to_string()))?;
    Tensor::from_bytes(element, shape, bytes).map_err(|error| QuantizeError::Tensor(error.to_string()))
}

/// The weights of a product as rows of columns, in f32.
fn matrix(graph: &Graph, rhs: NodeId, dot: &Dot) -> Option<Vec<f32>> {
    let known = value(graph, rhs)?;
    let order: Vec<usize> = free_dims(known.dims().len(), &dot.rhs_contract)
        .into_iter()
        .chain(dot.rhs_contract.iter().copied())
        .collect();
    let (dims, strides) = (known.dims(), dense_strides(known.dims()));
    let shape = Shape::new(order.iter().map(|&at| dims[at]).collect::<Vec<_>>()).ok()?;
    let steps: Vec<isize> = order.iter().map(|&at| strides[at]).collect();
    floats(&known.strided(shape, 0, &steps).ok()?)
}

fn floats(tensor: &Tensor) -> Option<Vec<f32>> {
    match tensor.element_type() {
        ElementType::F32 => tensor.as_slice::<f32>().ok().map(<[f32]>::to_vec),
        ElementType::BF16 | ElementType::F16 => {
            Some(tensor.iter().map(|value| value.to_f64() as f32).collect())
        }
        _ => None,
    }
}

/// A constant behind conversions and layouts.
fn value(graph: &Graph, id: NodeId) -> Option<Tensor> {
    let node = graph.node(id);
    match (&node.op, node.inputs.as_slice()) {
        (Op::Constant(tensor), _) => Some(tensor.clone()),
        (Op::Layout(_), &[input]) => evaluate(&node.op, &[value(graph, input)?], node.element, &node.dims),
        (Op::Elementwise(Function::Convert), &[input]) => {
            let from = floats(&value(graph, input)?)?;
            let shape = Shape::new(node.dims.clone()).ok()?;
            let bytes: Vec<u8> = match node.element {
                ElementType::F32 => from.iter().flat_map(|value| value.to_le_bytes()).collect(),
                ElementType::BF16 => {
                    from.iter().flat_map(|&value| bf16::from_f32(value).to_le_bytes()).collect()
                }
                ElementType::F16 => {
                    from.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect()
                }
                _ => return None,
            };
            Tensor::from_bytes(node.element, shape, &bytes).ok()
        }
        _ => None,
    }
}
