//! Products whose weights a model stores in few bits and restores before it multiplies.
//!
//! The class: matrix products without batch dimensions whose right-hand operand is [`Affine`] in constants, with factors for each output or
//! for groups of inputs, transposed or not: what `warpt import --precision` writes, and what exporters of weight-only models do. They
//! become what [`quantize`](super::quantize) makes, so that kernels read the codes. Codes need no scale: exporters also multiply by it
//! after the product.

use half::bf16;
use warpforge_tensor::elementwise::Function;
use warpforge_tensor::{ElementType, Shape, Tensor};

use super::affine::{Affine, before_rounding, is_float};
use super::recipe::Recipe;
use super::rewrite::{Pass, free_dims};
use crate::graph::{Dot, Graph, Node, NodeId, Op, evaluate};
use crate::view::LayoutOp;

/// Codes of a group are packed by the word.
const CODES_OF_WORD: usize = 8;

/// Weights that a product restores.
enum Stored {
    /// Codes, a row for each output, and a scale for each where there are scales.
    Rows { codes: Tensor, scales: Option<Tensor> },
    /// Codes, scales and offsets of groups, and the depth.
    Groups([Tensor; 3], usize),
}

/// The graph whose products multiply codes and then by their scales.
pub(crate) fn read_stored_weights(graph: &Graph) -> Graph {
    let found: Vec<Option<(&Dot, Stored)>> = graph.ids().map(|id| stored(graph, id)).collect();
    if found.iter().all(Option::is_none) {
        return graph.clone();
    }
    // Weights stay as they are; no recipe is applied.
    let mut pass = Pass::new(graph, Recipe::Int8WeightOnly);
    for (id, found) in graph.ids().zip(found) {
        let node = pass.rewrite.next(id);
        let new = match found {
            Some((dot, weights)) => pass.restoring(id, dot, weights),
            None => pass.rewrite.push(node),
        };
        pass.rewrite.end(new);
    }
    pass.rewrite.finish(None).pruned()
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
    let mut at = before_rounding(graph, rhs);
    while let (Op::Layout(LayoutOp::Transpose(order)), &[input]) =
        (&graph.node(at).op, graph.node(at).inputs.as_slice())
    {
        (at, depth) = (before_rounding(graph, input), order[depth]);
    }
    if let (Op::Layout(LayoutOp::Reshape(_)), &[input]) =
        (&graph.node(at).op, graph.node(at).inputs.as_slice())
        && depth == 1
        && graph.node(input).dims.len() == 3
    {
        return Some((dot, groups(&Affine::of(graph, input, &[0, 1])?, graph.node(at).dims[1])?));
    }
    Some((dot, rows(&Affine::of(graph, at, &[1 - depth])?, depth)?))
}

/// Weights with a scale for each output at most.
fn rows(weights: &Affine, depth: usize) -> Option<Stored> {
    if weights.offsets.is_some() || weights.codes.dims().len() != 2 {
        return None;
    }
    let codes = match weights.codes.element_type() {
        ElementType::Float(_) => weights.codes.clone(),
        ElementType::I8 if weights.zeros.is_none() => weights.codes.clone(),
        _ => Tensor::from_slice(weights.codes.dims(), &weights.distances()?).ok()?,
    };
    let codes = match depth {
        1 => codes,
        _ => {
            let dims = [codes.dims()[1], codes.dims()[0]];
            let op = Op::Layout(LayoutOp::Transpose(vec![1, 0]));
            evaluate(&op, std::slice::from_ref(&codes), codes.element_type(), &dims)?
        }
    };
    Some(Stored::Rows { codes, scales: weights.scales.clone() })
}

/// Weights `[columns, groups, codes]` of 4 bits, as far as kernels read them.
fn groups(weights: &Affine, depth: usize) -> Option<Stored> {
    let &[columns, groups, size] = weights.codes.dims() else { return None };
    if groups * size != depth || !size.is_multiple_of(CODES_OF_WORD) {
        return None;
    }
    let distances = weights.distances()?;
    if distances.iter().any(|distance| !(-8..8).contains(distance)) {
        return None;
    }
    let nibbles: Vec<u8> = distances.iter().map(|distance| distance.cast_unsigned() & 0xf).collect();
    let shape = Shape::new(weights.codes.dims()).ok()?;
    let codes = Tensor::from_bytes(ElementType::I4, shape, &nibbles).ok()?;
    let factors = |given: &Option<Tensor>, neutral: f32| match given {
        Some(given) => as_bf16(given),
        None => Tensor::from_slice(&[columns, groups], &vec![bf16::from_f32(neutral); columns * groups]).ok(),
    };
    let (scales, offsets) = (factors(&weights.scales, 1.0)?, factors(&weights.offsets, 0.0)?);
    Some(Stored::Groups([codes, scales, offsets], depth))
}

/// Factors of groups as kernels read them; none where bf16 does not hold them.
fn as_bf16(tensor: &Tensor) -> Option<Tensor> {
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
                (self.rewrite.convert(codes, ElementType::F32), scales.map(|scales| self.constant(scales)))
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

    #[test]
    fn groups_are_read_where_the_module_has_them() {
        let text = "func.func @main(%s: tensor<512x8xbf16>, %z: tensor<1xbf16>, %x: tensor<4x512xf32>) -> tensor<4x512xf32> {
            %c = stablehlo.constant dense<-3> : tensor<512x8x64xi4>
            %w = stablehlo.convert %c : (tensor<512x8x64xi4>) -> tensor<512x8x64xf32>
            %f = stablehlo.convert %s : (tensor<512x8xbf16>) -> tensor<512x8xf32>
            %b = stablehlo.broadcast_in_dim %f, dims = [0, 1] : (tensor<512x8xf32>) -> tensor<512x8x64xf32>
            %m = stablehlo.multiply %w, %b : tensor<512x8x64xf32>
            %r = stablehlo.reshape %m : (tensor<512x8x64xf32>) -> tensor<512x512xf32>
            %d = stablehlo.dot_general %x, %r, contracting_dims = [1] x [1] : (tensor<4x512xf32>, tensor<512x512xf32>) -> tensor<4x512xf32>
            return %d : tensor<4x512xf32>
        }";
        let scales = Tensor::from_slice(&[SIZE, 8], &vec![bf16::from_f32(0.5); SIZE * 8]).unwrap();
        let nothing = Tensor::from_slice(&[1], &[bf16::ZERO]).unwrap();
        assert_eq!(read(text, &scales, &nothing), [true]);
    }

    /// How PyTorch packs weights for the matrix instructions of GPUs.
    #[test]
    fn groups_are_read_where_words_of_tiles_hold_them() {
        let text = "func.func @main(%c: tensor<64x8x32x2xi32>, %s: tensor<512x8xbf16>, %x: tensor<4x512xf32>) -> tensor<4x512xf32> {
            %w = stablehlo.reshape %c : (tensor<64x8x32x2xi32>) -> tensor<64x8x8x4x2xi32>
            %a = stablehlo.constant dense<[0, 4, 8, 12, 16, 20, 24, 28]> : tensor<8xi32>
            %i = stablehlo.broadcast_in_dim %a, dims = [5] : (tensor<8xi32>) -> tensor<64x8x8x4x2x8xi32>
            %v = stablehlo.broadcast_in_dim %w, dims = [0, 1, 2, 3, 4] : (tensor<64x8x8x4x2xi32>) -> tensor<64x8x8x4x2x8xi32>
            %h = stablehlo.shift_right_logical %v, %i : tensor<64x8x8x4x2x8xi32>
            %m = stablehlo.constant dense<15> : tensor<64x8x8x4x2x8xi32>
            %q = stablehlo.and %h, %m : tensor<64x8x8x4x2x8xi32>
            %r = stablehlo.reshape %q : (tensor<64x8x8x4x2x8xi32>) -> tensor<64x8x8x4x2x2x2x2xi32>
            %t = stablehlo.transpose %r, dims = [0, 2, 1, 4, 6, 7, 3, 5] : (tensor<64x8x8x4x2x2x2x2xi32>) -> tensor<64x8x8x2x2x2x4x2xi32>
            %g = stablehlo.reshape %t : (tensor<64x8x8x2x2x2x4x2xi32>) -> tensor<512x8x64xi32>
            %f = stablehlo.convert %g : (tensor<512x8x64xi32>) -> tensor<512x8x64xf32>
            %e = stablehlo.constant dense<8.0> : tensor<512x8x64xf32>
            %d = stablehlo.subtract %f, %e : tensor<512x8x64xf32>
            %k = stablehlo.convert %s : (tensor<512x8xbf16>) -> tensor<512x8xf32>
            %b = stablehlo.broadcast_in_dim %k, dims = [0, 1] : (tensor<512x8xf32>) -> tensor<512x8x64xf32>
            %n = stablehlo.multiply %d, %b : tensor<512x8x64xf32>
            %o = stablehlo.reshape %n : (tensor<512x8x64xf32>) -> tensor<512x512xf32>
            %p = stablehlo.dot_general %x, %o, contracting_dims = [1] x [1] : (tensor<4x512xf32>, tensor<512x512xf32>) -> tensor<4x512xf32>
            return %p : tensor<4x512xf32>
        }";
        let words: Vec<i32> = (0..64 * 8 * 32 * 2i32).map(|at| at.wrapping_mul(-1_640_531_535)).collect();
        let words = Tensor::from_slice(&[64, 8, 32, 2], &words).unwrap();
        let scales = Tensor::from_slice(&[SIZE, 8], &vec![bf16::from_f32(0.5); SIZE * 8]).unwrap();
        assert_eq!(read(text, &words, &scales), [true]);
    }

    #[test]
    fn codes_are_read_where_the_product_is_scaled_afterwards_and_where_zero_points_are_subtracted() {
        let bytes: Vec<i8> = (0..SIZE * SIZE).map(|at| (at % 251) as i8).collect();
        let codes = Tensor::from_slice(&[SIZE, SIZE], &bytes).unwrap();
        let unsigned: Vec<u8> = (0..SIZE * SIZE).map(|at| (at % 256) as u8).collect();
        let unsigned = Tensor::from_slice(&[SIZE, SIZE], &unsigned).unwrap();
        let text = |element: &str, weights: &str| {
            format!(
                "func.func @main(%c: tensor<512x512x{element}>, %z: tensor<512xi64>, %x: tensor<4x512xbf16>) -> tensor<4x512xbf16> {{
                {weights}
                %t = stablehlo.transpose %n, dims = [1, 0] : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
                %d = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0]
                    : (tensor<4x512xbf16>, tensor<512x512xbf16>) -> tensor<4x512xbf16>
                return %d : tensor<4x512xbf16>
            }}"
            )
        };
        let plain = "%n = stablehlo.convert %c : (tensor<512x512xi8>) -> tensor<512x512xbf16>";
        let zeros = |value: i64| Tensor::from_slice(&[SIZE], &vec![value; SIZE]).unwrap();
        assert_eq!(read(&text("i8", plain), &codes, &zeros(0)), [true]);
        let moved = "%i = stablehlo.convert %c : (tensor<512x512xui8>) -> tensor<512x512xi64>
            %b = stablehlo.broadcast_in_dim %z, dims = [0] : (tensor<512xi64>) -> tensor<512x512xi64>
            %m = stablehlo.subtract %i, %b : tensor<512x512xi64>
            %n = stablehlo.convert %m : (tensor<512x512xi64>) -> tensor<512x512xbf16>";
        assert_eq!(read(&text("ui8", moved), &unsigned, &zeros(128)), [true]);
        // 255 less 127 is no i8.
        assert_eq!(read(&text("ui8", moved), &unsigned, &zeros(127)), [false]);
    }

    #[test]
    fn groups_of_bytes_that_four_bits_hold_are_read_as_such() {
        let text = "func.func @main(%c: tensor<512x512xi8>, %s: tensor<512x8xf32>, %x: tensor<4x512xf32>) -> tensor<4x512xf32> {
            %g = stablehlo.reshape %c : (tensor<512x512xi8>) -> tensor<512x8x64xi8>
            %w = stablehlo.convert %g : (tensor<512x8x64xi8>) -> tensor<512x8x64xf32>
            %z = stablehlo.constant dense<0.0> : tensor<512x8x64xf32>
            %o = stablehlo.subtract %w, %z : tensor<512x8x64xf32>
            %b = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<512x8xf32>) -> tensor<512x8x64xf32>
            %m = stablehlo.multiply %o, %b : tensor<512x8x64xf32>
            %r = stablehlo.reshape %m : (tensor<512x8x64xf32>) -> tensor<512x512xf32>
            %d = stablehlo.dot_general %x, %r, contracting_dims = [1] x [1] : (tensor<4x512xf32>, tensor<512x512xf32>) -> tensor<4x512xf32>
            return %d : tensor<4x512xf32>
        }";
        let codes = |most: i32| {
            let bytes: Vec<i8> = (0..SIZE * SIZE).map(|at| (at as i32 % (most + 9) - 8) as i8).collect();
            Tensor::from_slice(&[SIZE, SIZE], &bytes).unwrap()
        };
        let scales = |step: f32| {
            let values: Vec<f32> = (0..SIZE * 8).map(|at| 1.0 + (at % 3) as f32 * step).collect();
            Tensor::from_slice(&[SIZE, 8], &values).unwrap()
        };
        assert_eq!(read(text, &codes(7), &scales(0.125)), [true]);
        assert_eq!(read(text, &codes(8), &scales(0.125)), [false]);
        // bf16 has no such scales.
        assert_eq!(read(text, &codes(7), &scales(0.001)), [false]);
    }

    #[test]
    fn floats_of_eight_bits_are_read_through_operations_that_no_engine_has() {
        let bytes: Vec<u8> = (0..SIZE * SIZE).map(|at| (at % 120) as u8).collect();
        let shape = Shape::new(vec![SIZE, SIZE]).unwrap();
        let element = ElementType::Float(warpforge_tensor::FloatType::F8E4M3Fn);
        let codes = Tensor::from_bytes(element, shape, &bytes).unwrap();
        let scales = Tensor::from_slice(&[SIZE], &vec![0.5f32; SIZE]).unwrap();
        let text = "func.func @main(%c: tensor<512x512xf8E4M3FN>, %s: tensor<512xf32>, %x: tensor<4x512xf32>) -> tensor<4x512xf32> {
            %t = stablehlo.transpose %c, dims = [1, 0] : (tensor<512x512xf8E4M3FN>) -> tensor<512x512xf8E4M3FN>
            %w = stablehlo.convert %t : (tensor<512x512xf8E4M3FN>) -> tensor<512x512xf32>
            %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<512xf32>) -> tensor<512x512xf32>
            %m = stablehlo.multiply %w, %b : tensor<512x512xf32>
            %d = stablehlo.dot_general %x, %m, contracting_dims = [1] x [0] : (tensor<4x512xf32>, tensor<512x512xf32>) -> tensor<4x512xf32>
            return %d : tensor<4x512xf32>
        }";
        assert_eq!(read(text, &codes, &scales), [true]);
    }
}
