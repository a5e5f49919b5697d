//! Products whose weights a model stores in few bits and restores before it multiplies.
//!
//! The class: matrix products without batch dimensions whose right-hand operand is `codes · scale` for each output, or
//! `codes · scale + offset` for each group of inputs, transposed or not, of constants: what `warpt import --precision` writes, and what
//! exporters of weight-only models do. They become what [`quantize`](super::quantize) makes, so that kernels read the codes.

use half::bf16;
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, FloatType, Tensor};

use super::recipe::Recipe;
use super::rewrite::{Pass, free_dims};
use crate::graph::{Dot, Graph, Node, NodeId, Op, evaluate};
use crate::view::LayoutOp;

/// Weights that a product restores.
enum Stored {
    /// Codes, a row for each output, and the constant with a scale for each.
    Rows { codes: Tensor, scales: Tensor },
    /// Codes, scales and offsets of groups, and the depth.
    Groups([Tensor; 3], usize),
}

/// The graph whose products multiply codes and then by their scales.
pub(crate) fn read_stored_weights(graph: &Graph) -> Graph {
    if !graph.ids().any(|id| stored(graph, id).is_some()) {
        return graph.clone();
    }
    // Weights stay as they are; no recipe is applied.
    let mut pass = Pass::new(graph, Recipe::Int8WeightOnly);
    for id in graph.ids() {
        let node = pass.rewrite.next(id);
        let new = match stored(graph, id) {
            Some((dot, weights)) => pass.restoring(id, dot, weights),
            None => pass.rewrite.push(node),
        };
        pass.rewrite.end(new);
    }
    pass.rewrite.finish(None).pruned()
}

fn is_float(element: ElementType) -> bool {
    matches!(element, ElementType::F32 | ElementType::BF16 | ElementType::F16)
}

/// The weights of a product of floats that are stored in few bits.
fn stored(graph: &Graph, id: NodeId) -> Option<(&Dot, Stored)> {
    let node = graph.node(id);
    let (Op::Dot(dot), &[lhs, rhs]) = (&node.op, node.inputs.as_slice()) else { return None };
    let &[mut depth] = dot.rhs_contract.as_slice() else { return None };
    let floats = [node.element, graph.node(lhs).element, graph.node(rhs).element].into_iter().all(is_float);
    if !floats || !dot.lhs_batch.is_empty() || graph.node(rhs).dims.len() != 2 {
        return None;
    }
    let mut at = rhs;
    loop {
        let node = graph.node(at);
        match (&node.op, node.inputs.as_slice()) {
            (Op::Layout(LayoutOp::Transpose(order)), &[input]) => (at, depth) = (input, order[depth]),
            (Op::Elementwise(Function::Convert), &[input]) if is_float(graph.node(input).element) => {
                at = input;
            }
            _ => break,
        }
    }
    if graph.node(at).element != ElementType::F32 {
        return None;
    }
    if let Some((codes, scales)) = rows(graph, at, depth) {
        return Some((dot, Stored::Rows { codes, scales }));
    }
    let found = if depth == 1 { groups(graph, at) } else { None };
    found.map(|found| (dot, Stored::Groups(found, graph.node(at).dims[1])))
}

/// The codes, with a row for each output, and the scales of `codes · scale`.
fn rows(graph: &Graph, at: NodeId, depth: usize) -> Option<(Tensor, Tensor)> {
    let node = graph.node(at);
    let (Op::Elementwise(Function::Multiply), &[left, right]) = (&node.op, node.inputs.as_slice()) else {
        return None;
    };
    [(left, right), (right, left)].into_iter().find_map(|(codes, scales)| {
        let codes = graph.constant(widened(graph, codes)?)?;
        let kept = matches!(codes.element_type(), ElementType::I8 | ElementType::Float(FloatType::F8E4M3Fn));
        let Op::Layout(LayoutOp::Broadcast { map, .. }) = &graph.node(scales).op else { return None };
        let scales = graph.constant(graph.node(scales).inputs[0])?;
        let fits = kept && *map == [1 - depth] && scales.element_type() == ElementType::F32;
        if !fits || codes.dims().len() != 2 {
            return None;
        }
        let codes = match depth {
            1 => codes.clone(),
            _ => {
                let dims = [codes.dims()[1], codes.dims()[0]];
                let turned = Op::Layout(LayoutOp::Transpose(vec![1, 0]));
                evaluate(&turned, std::slice::from_ref(codes), codes.element_type(), &dims)?
            }
        };
        Some((codes, scales.clone()))
    })
}

/// What a value was before it was widened to f32.
fn widened(graph: &Graph, id: NodeId) -> Option<NodeId> {
    let node = graph.node(id);
    let widens = matches!(node.op, Op::Elementwise(Function::Convert)) && node.element == ElementType::F32;
    widens.then(|| node.inputs[0])
}

/// The same where no engine has elements of that type: the conversion is an operation of its own, which gives the value.
fn widened_apart(graph: &Graph, id: NodeId) -> Option<NodeId> {
    let node = graph.node(id);
    let &[part] = node.inputs.as_slice() else { return None };
    let part = graph.node(part);
    let widens = matches!(part.op, Op::Opaque(_)) && part.op.name() == "convert" && part.inputs.len() == 1;
    (widens && node.element == ElementType::F32).then(|| part.inputs[0])
}

/// The codes, scales and offsets of a value `[columns, depth]` that is `codes · scale + offset` of groups of 4 bits.
fn groups(graph: &Graph, at: NodeId) -> Option<[Tensor; 3]> {
    let Op::Layout(LayoutOp::Reshape(_)) = graph.node(at).op else { return None };
    let step = |id: NodeId, function: Function| -> Option<(NodeId, Tensor)> {
        let node = graph.node(id);
        let (Op::Elementwise(own), &[value, repeated]) = (&node.op, node.inputs.as_slice()) else {
            return None;
        };
        let Op::Layout(LayoutOp::Broadcast { map, .. }) = &graph.node(repeated).op else { return None };
        let vector = graph.node(repeated).inputs[0];
        let vector = graph.constant(widened(graph, vector).unwrap_or(vector))?;
        (*own == function && *map == [0, 1]).then_some(())?;
        Some((value, as_bf16(vector)?))
    };
    let (scaled, offsets) = step(graph.node(at).inputs[0], Function::Add)?;
    let (codes, scales) = step(scaled, Function::Multiply)?;
    let codes = graph.constant(widened(graph, codes).or_else(|| widened_apart(graph, codes))?)?;
    let fits = codes.element_type() == ElementType::I4 && codes.dims().len() == 3;
    fits.then(|| [codes.clone(), scales, offsets])
}

/// Factors of groups as kernels read them; none where bf16 does not hold them.
fn as_bf16(tensor: &Tensor) -> Option<Tensor> {
    if tensor.element_type() == ElementType::BF16 {
        return Some(tensor.clone());
    }
    let wide = tensor.as_slice::<f32>().ok()?;
    let narrow: Vec<bf16> = wide.iter().copied().map(bf16::from_f32).collect();
    let exact = narrow.iter().zip(wide).all(|(narrow, wide)| narrow.to_f32() == *wide);
    exact.then(|| Tensor::from_slice(tensor.dims(), &narrow).ok())?
}

impl Pass<'_> {
    /// The product with codes, or with groups as they lie, in f32.
    fn restoring(&mut self, id: NodeId, dot: &Dot, weights: Stored) -> NodeId {
        let old = self.rewrite.old;
        let (node, lhs) = (old.node(id), old.node(id).inputs[0]);
        let mut activations = self.rewrite.moved(lhs);
        if old.node(lhs).element != ElementType::F32 {
            activations = self.rewrite.convert(activations, ElementType::F32);
        }
        let (operand, scales) = match weights {
            Stored::Rows { codes, scales } => {
                let codes = self.constant(codes);
                (self.rewrite.convert(codes, ElementType::F32), Some(self.constant(scales)))
            }
            Stored::Groups([codes, scales, offsets], depth) => {
                let dims = codes.dims().to_vec();
                let codes = self.constant(codes);
                let mut operand = self.rewrite.convert(codes, ElementType::F32);
                for (values, function) in [(scales, Function::Multiply), (offsets, Function::Add)] {
                    let values = self.constant(values);
                    let wide = self.rewrite.convert(values, ElementType::F32);
                    let repeated = self.broadcast(wide, &dims, vec![0, 1]);
                    operand = self.map(function, &[operand, repeated]);
                }
                (self.reshape(operand, &[dims[0], depth]), None)
            }
        };
        let n = self.rewrite.dims(operand)[0];
        let free = free_dims(old.node(lhs).dims.len(), &dot.lhs_contract);
        let dims: Vec<usize> = free.iter().map(|&at| old.node(lhs).dims[at]).chain([n]).collect();
        let op =
            Op::Dot(Dot { lhs_contract: dot.lhs_contract.clone(), rhs_contract: vec![1], ..Dot::default() });
        let (inputs, element) = (vec![activations, operand], ElementType::F32);
        let mut result =
            self.rewrite.push(Node { op, inputs, element, dims: dims.clone(), origin: node.origin });
        if let Some(scales) = scales {
            let scales = self.broadcast(scales, &dims, vec![dims.len() - 1]);
            result = self.map(Function::Multiply, &[result, scales]);
        }
        if node.element != ElementType::F32 {
            result = self.rewrite.convert(result, node.element);
        }
        self.reshape(result, &node.dims)
    }
}

#[cfg(test)]
mod tests {
    use super::super::matcher::weights_of;
    use super::*;
    use crate::graph::import;
    use crate::testing::module;

    /// More than what is folded while a graph is made.
    const SIZE: usize = 512;

    /// Which of the products of a function of weights `%c`, codes, and `%s`, scales, read codes.
    fn read(text: &str, codes: &Tensor, scales: &Tensor) -> Vec<bool> {
        let module = module(text);
        let weights = |at: usize| [codes, scales].get(at).map(|&tensor| tensor.clone());
        let graph = import(module.function("main").unwrap(), &weights).unwrap();
        let found = read_stored_weights(&graph);
        let products = found.ids().filter(|&id| matches!(found.node(id).op, Op::Dot(_)));
        products.map(|id| weights_of(&found, id).is_some()).collect()
    }

    #[test]
    fn codes_with_a_scale_for_each_output_are_read_as_they_are_stored() {
        let bytes: Vec<i8> = (0..SIZE * SIZE).map(|at| (at % 251) as i8).collect();
        let codes = Tensor::from_slice(&[SIZE, SIZE], &bytes).unwrap();
        let scales: Vec<f32> = (0..SIZE).map(|at| at as f32).collect();
        let scales = Tensor::from_slice(&[SIZE], &scales).unwrap();
        let text = |element: &str, map: usize, contract: usize| {
            format!(
                "func.func @main(%c: tensor<512x512xi8>, %s: tensor<512xf32>, %x: tensor<4x512x{element}>) -> tensor<4x512x{element}> {{
                %w = stablehlo.convert %c : (tensor<512x512xi8>) -> tensor<512x512xf32>
                %b = stablehlo.broadcast_in_dim %s, dims = [{map}] : (tensor<512xf32>) -> tensor<512x512xf32>
                %m = stablehlo.multiply %w, %b : tensor<512x512xf32>
                %n = stablehlo.convert %m : (tensor<512x512xf32>) -> tensor<512x512x{element}>
                %t = stablehlo.transpose %n, dims = [1, 0] : (tensor<512x512x{element}>) -> tensor<512x512x{element}>
                %d = stablehlo.dot_general %x, %t, contracting_dims = [1] x [{contract}]
                    : (tensor<4x512x{element}>, tensor<512x512x{element}>) -> tensor<4x512x{element}>
                return %d : tensor<4x512x{element}>
            }}"
            )
        };
        for element in ["f32", "bf16"] {
            assert_eq!(read(&text(element, 0, 0), &codes, &scales), [true]);
            assert_eq!(read(&text(element, 1, 1), &codes, &scales), [true]);
            // A scale for each input is no scale of the result.
            assert_eq!(read(&text(element, 1, 0), &codes, &scales), [false]);
            assert_eq!(read(&text(element, 0, 1), &codes, &scales), [false]);
        }
    }

    #[test]
    fn groups_behind_a_transposition_are_read_as_they_are_stored() {
        let bytes: Vec<u8> = (0..SIZE * SIZE).map(|at| (at % 16) as u8).collect();
        let shape = |dims: &[usize]| warpforge_tensor::Shape::new(dims).unwrap();
        let codes = Tensor::from_bytes(ElementType::I4, shape(&[SIZE, 8, 64]), &bytes).unwrap();
        let scales: Vec<bf16> = (0..SIZE * 8).map(|at| bf16::from_f32((at % 97) as f32)).collect();
        let scales = Tensor::from_slice(&[SIZE, 8], &scales).unwrap();
        let text = |contract: usize| {
            format!(
                "func.func @main(%c: tensor<512x8x64xi4>, %s: tensor<512x8xbf16>, %x: tensor<4x512xf32>) -> tensor<4x512xf32> {{
                %w = stablehlo.convert %c : (tensor<512x8x64xi4>) -> tensor<512x8x64xf32>
                %f = stablehlo.convert %s : (tensor<512x8xbf16>) -> tensor<512x8xf32>
                %b = stablehlo.broadcast_in_dim %f, dims = [0, 1] : (tensor<512x8xf32>) -> tensor<512x8x64xf32>
                %m = stablehlo.multiply %w, %b : tensor<512x8x64xf32>
                %a = stablehlo.add %m, %b : tensor<512x8x64xf32>
                %r = stablehlo.reshape %a : (tensor<512x8x64xf32>) -> tensor<512x512xf32>
                %t = stablehlo.transpose %r, dims = [1, 0] : (tensor<512x512xf32>) -> tensor<512x512xf32>
                %d = stablehlo.dot_general %x, %t, contracting_dims = [1] x [{contract}]
                    : (tensor<4x512xf32>, tensor<512x512xf32>) -> tensor<4x512xf32>
                return %d : tensor<4x512xf32>
            }}"
            )
        };
        assert_eq!(read(&text(0), &codes, &scales), [true]);
        assert_eq!(read(&text(1), &codes, &scales), [false]);
    }
}
