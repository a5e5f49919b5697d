//! Modules whose weights are stored in few bits: what `warpt import --precision` writes.
//!
//! A weight argument that only matrix products read becomes its codes; scales, and offsets of groups, are arguments behind the others.
//! Where activations stay as they are, the function restores the weight before anything else; where they are rounded too, its products
//! are those of codes. Both are ordinary operations, which every device and tier runs.

use std::collections::BTreeMap;

use half::bf16;
use warpforge_ir::attr::Attribute;
use warpforge_ir::build::{BuildError, Builder};
use warpforge_ir::signature::{Argument, Signature};
use warpforge_ir::{BlockId, Module, OpKind, TensorType, Type, ValueId};
use warpforge_tensor::{ElementType, FloatType, Shape, Tensor};

use super::dynamic::{Readers, Stored, multiply_codes};
use super::recipe::Recipe;
use super::store_error::StoreError;
use super::weights::{QuantizeError, WeightMatrix};

/// A weight that only matrix products read: the argument's position, its name and its sizes.
struct Candidate {
    at: usize,
    name: String,
    dims: [usize; 2],
    element: ElementType,
}

/// Stores the weights of matrix products in few bits, both in the module and in the map, and gives their names. Weights that something
/// else reads too, such as an embedding that is the head as well, stay as they are.
///
/// # Errors
///
/// When there is no such function, a weight is no number, groups do not fill a row, or activations that are rounded have open sizes.
pub fn store_weights(
    module: &mut Module,
    entry: &str,
    weights: &mut BTreeMap<String, Tensor>,
    recipe: Recipe,
) -> Result<Vec<String>, StoreError> {
    let missing = || StoreError::NoFunction(entry.to_owned());
    let func = module.function(entry).ok_or_else(missing)?;
    let (op, block) = (func.op().id(), func.body().ok_or_else(missing)?);
    let arguments = func.arguments().to_vec();
    let mut signature = Signature::of(func);
    let attrs = func.op().attr("arg_attrs").and_then(Attribute::as_array).map(<[Attribute]>::to_vec);
    let candidates = candidates(module, block, &arguments, &signature, weights);
    check_groups(&candidates, recipe)?;
    let before = module.block_ops(block).to_vec();
    let (mut names, mut multiplied) = (Vec::new(), Vec::new());
    let readers = |module: &Module, at: usize| Readers::of(module, block, arguments[at]);
    if recipe.quantizes_activations() {
        let open = candidates.iter().filter(|one| readers(module, one.at).open(module));
        let open: Vec<&str> = open.map(|one| one.name.as_str()).collect();
        if !open.is_empty() {
            return Err(StoreError::OpenShapes(open.join(", ")));
        }
    }
    for Candidate { at, name, dims, element } in candidates {
        let Some(tensor) = weights.get(&name) else { continue };
        let values: Vec<f32> = tensor.iter().map(|value| value.to_f64() as f32).collect();
        let stored = stored(&name, &values, dims[1], recipe)?;
        let [codes, factors @ ..] = stored.as_slice() else { continue };
        let ty = |tensor: &Tensor| -> Type {
            let dims: Vec<u64> = tensor.dims().iter().map(|&dim| dim as u64).collect();
            TensorType::fixed(&dims, tensor.element_type()).into()
        };
        module.set_value_type(arguments[at], ty(codes));
        signature.arguments[at].ty = ty(codes);
        let role = signature.arguments[at].role;
        let mut more = Vec::new();
        for (factor, part) in factors.iter().zip(["scale", "offset"]) {
            more.push(module.add_argument(block, ty(factor)));
            signature.arguments.push(Argument::new(format!("{name}.{part}"), role, ty(factor)));
            weights.insert(format!("{name}.{part}"), factor.clone());
        }
        match more.as_slice() {
            &[scales] if recipe.quantizes_activations() => {
                let stored = Stored { codes: arguments[at], scales };
                multiplied.push((readers(module, at), stored));
            }
            more => restore(module, block, arguments[at], more, dims, element)?,
        }
        weights.insert(name.clone(), codes.clone());
        names.push(name);
    }
    // What restores weights comes first.
    let all = module.block_ops(block).to_vec();
    module.retain_ops(block, |_| false);
    all[before.len()..].iter().chain(&before).for_each(|&op| module.append_op(block, op));
    if recipe.quantizes_activations() {
        multiply_codes(module, block, recipe, &multiplied)?;
    }
    declare(module, op, &signature, attrs);
    Ok(names)
}

/// Writes the signature to the function; attributes of arguments that were there stay.
fn declare(
    module: &mut Module,
    func: warpforge_ir::OpId,
    signature: &Signature,
    attrs: Option<Vec<Attribute>>,
) {
    let inputs = signature.arguments.iter().map(|argument| argument.ty.clone()).collect();
    let results = signature.results.iter().map(|result| result.ty.clone()).collect();
    module.set_attr(func, "function_type", Attribute::Type(Type::function(inputs, results)));
    let mut all: Vec<Attribute> = signature.argument_attrs().as_array().unwrap_or_default().to_vec();
    for (own, old) in all.iter_mut().zip(attrs.unwrap_or_default()) {
        *own = old;
    }
    module.set_attr(func, "arg_attrs", Attribute::Array(all.into()));
}

/// The weights whose rows are contracted by every operation that reads them.
fn candidates(
    module: &Module,
    block: BlockId,
    arguments: &[ValueId],
    signature: &Signature,
    weights: &BTreeMap<String, Tensor>,
) -> Vec<Candidate> {
    let counts = module.use_counts();
    let mut found = Vec::new();
    for (at, argument) in signature.weights() {
        let ty = argument.ty.as_tensor().and_then(|ty| Some((ty.shape_usize()?, ty.element().plain()?)));
        let Some((dims, element @ (ElementType::F32 | ElementType::BF16 | ElementType::F16))) = ty else {
            continue;
        };
        let Ok(dims) = <[usize; 2]>::try_from(dims) else { continue };
        let rows = argument.alias.is_none() && contracted(module, block, &counts, arguments[at]) == Some(1);
        if rows && !dims.contains(&0) && weights.contains_key(&argument.name) {
            found.push(Candidate { at, name: argument.name.clone(), dims, element });
        }
    }
    found
}

/// The dimension of a value that every reader contracts as the right-hand side of a product; none where one does something else.
fn contracted(module: &Module, block: BlockId, counts: &[u32], value: ValueId) -> Option<usize> {
    let users: Vec<_> = module.ops_in(block).filter(|op| op.operands().contains(&value)).collect();
    if users.is_empty() || users.len() != counts[value.index()] as usize {
        return None;
    }
    let mut found = None;
    for user in users {
        let dimension = match user.kind()? {
            OpKind::DotGeneral if user.operand(0) != Some(value) => {
                let dims = user.dot_dims()?;
                match (dims.rhs_batching.as_slice(), dims.rhs_contracting.as_slice()) {
                    ([], &[dimension]) => usize::try_from(dimension).ok()?,
                    _ => return None,
                }
            }
            OpKind::Transpose => {
                let inner = contracted(module, block, counts, user.result(0)?)?;
                usize::try_from(*user.attr_i64s("permutation")?.get(inner)?).ok()?
            }
            OpKind::Convert => {
                let element = user.result_tensor(0)?.element().plain()?;
                if !matches!(element, ElementType::F32 | ElementType::BF16 | ElementType::F16) {
                    return None;
                }
                contracted(module, block, counts, user.result(0)?)?
            }
            _ => return None,
        };
        if found.is_some_and(|found| found != dimension) {
            return None;
        }
        found = Some(dimension);
    }
    found
}

fn check_groups(candidates: &[Candidate], recipe: Recipe) -> Result<(), QuantizeError> {
    let Some(group) = recipe.group() else { return Ok(()) };
    let odd: Vec<String> = candidates
        .iter()
        .filter(|one| !one.dims[1].is_multiple_of(group))
        .map(|one| format!("{} ({}x{})", one.name, one.dims[1], one.dims[0]))
        .collect();
    match odd.is_empty() {
        true => Ok(()),
        false => Err(QuantizeError::groups(group, &odd)),
    }
}

/// Codes, scales and, of groups, offsets.
fn stored(name: &str, values: &[f32], k: usize, recipe: Recipe) -> Result<Vec<Tensor>, QuantizeError> {
    let matrix = WeightMatrix { values, k };
    let n = values.len() / k;
    matrix.check_layer(|| format!("{name} ({k}x{n})"))?;
    let failed = |error: warpforge_tensor::Error| QuantizeError::Tensor(error.to_string());
    let bytes = |element: ElementType, dims: &[usize], bytes: &[u8]| {
        Shape::new(dims).and_then(|shape| Tensor::from_bytes(element, shape, bytes)).map_err(failed)
    };
    if let Recipe::Int4WeightOnly { group, hqq } = recipe {
        let group = group as usize;
        let four = matrix.int4(group, hqq);
        let codes: Vec<u8> = four.codes.iter().map(|&code| code.cast_unsigned() & 0xf).collect();
        let factors = |values: &[bf16]| Tensor::from_slice(&[n, k / group], values).map_err(failed);
        let codes = bytes(ElementType::I4, &[n, k / group, group], &codes)?;
        return Ok(vec![codes, factors(&four.scales)?, factors(&four.offsets)?]);
    }
    let (element, rows) = match recipe {
        Recipe::Int8WeightOnly | Recipe::Int8Dynamic => (ElementType::I8, matrix.int8()),
        _ => {
            let one_scale = recipe == Recipe::Float8DynamicTensor;
            (ElementType::Float(FloatType::F8E4M3Fn), matrix.float8(one_scale))
        }
    };
    let scales = match recipe {
        Recipe::Float8DynamicTensor => Tensor::from_slice(&[], &rows.scales[..1]),
        _ => Tensor::from_slice(&[n], &rows.scales),
    };
    let scales = scales.map_err(failed)?;
    Ok(vec![bytes(element, &[n, k], &rows.codes)?, scales])
}

/// Appends what restores a weight from its codes, and lets all others read that.
fn restore(
    module: &mut Module,
    block: BlockId,
    codes: ValueId,
    factors: &[ValueId],
    dims: [usize; 2],
    element: ElementType,
) -> Result<(), BuildError> {
    let mut builder = Builder::at(module, block);
    let mut value = builder.convert(codes, ElementType::F32)?;
    let first = builder.module().block_ops(block).last().copied();
    let shape = builder.tensor_type(value)?.shape_usize().unwrap_or_default();
    let shape: Vec<u64> = shape.into_iter().map(|dim| dim as u64).collect();
    let along: Vec<i64> = (0..shape.len() as i64 - 1).collect();
    for (&factor, kind) in factors.iter().zip([OpKind::Multiply, OpKind::Add]) {
        let mut factor = factor;
        if builder.tensor_type(factor)?.element().plain() != Some(ElementType::F32) {
            factor = builder.convert(factor, ElementType::F32)?;
        }
        let repeated = builder.broadcast_in_dim(factor, &shape, &along)?;
        value = builder.binary(kind, value, repeated)?;
    }
    if shape.len() > 2 {
        value = builder.reshape(value, &dims.map(|dim| dim as u64))?;
    }
    if element != ElementType::F32 {
        value = builder.convert(value, element)?;
    }
    module.replace_uses(codes, value);
    if let Some(first) = first {
        module.set_operand(first, 0, codes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::float8::round_in_f32;
    use super::super::names::WeightNames;
    use super::super::rewrite::quantize;
    use super::super::stored::read_stored_weights;
    use super::*;
    use crate::graph::{Graph, Op, import};
    use crate::testing::module;

    const MODEL: &str = "func.func @main(
        %w: tensor<8x32xf32> {warpforge.name = \"w\", warpforge.role = \"parameter\"},
        %e: tensor<8x32xf32> {warpforge.name = \"e\", warpforge.role = \"parameter\"},
        %x: tensor<4x32xf32> {warpforge.name = \"x\"}) -> (tensor<4x8xf32>, tensor<8x32xf32>) {
        %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<8x32xf32>) -> tensor<32x8xf32>
        %d = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32>
        %f = stablehlo.dot_general %x, %e, contracting_dims = [1] x [1] : (tensor<4x32xf32>, tensor<8x32xf32>) -> tensor<4x8xf32>
        %s = stablehlo.add %d, %f : tensor<4x8xf32>
        func.return %s, %e : tensor<4x8xf32>, tensor<8x32xf32>
    }";

    fn weights() -> BTreeMap<String, Tensor> {
        let values: Vec<f32> = (0..256).map(|at| (at * 37 % 256) as f32 / 64.0 - 2.0).collect();
        ["w", "e"].map(|name| (name.to_owned(), Tensor::from_slice(&[8, 32], &values).unwrap())).into()
    }

    #[test]
    fn weights_of_products_alone_are_stored_in_few_bits_and_restored() {
        for (recipe, element, parts) in [
            ("int8wo", ElementType::I8, 1),
            ("float8wo", ElementType::Float(FloatType::F8E4M3Fn), 1),
            ("int4wo-16", ElementType::I4, 2),
            ("int4wo-8-hqq", ElementType::I4, 2),
            ("int8dq", ElementType::I8, 1),
            ("float8dq-row", ElementType::Float(FloatType::F8E4M3Fn), 1),
            ("float8dq-tensor", ElementType::Float(FloatType::F8E4M3Fn), 1),
        ] {
            let (mut module, mut weights) = (module(MODEL), weights());
            let names = store_weights(&mut module, "main", &mut weights, recipe.parse().unwrap()).unwrap();
            assert_eq!(names, ["w"], "{recipe}: `e` is a result too");
            assert!(
                warpforge_ir::verify(&module).is_empty(),
                "{recipe}: {}",
                warpforge_ir::print::print(&module)
            );
            assert_eq!(weights["w"].element_type(), element);
            assert_eq!(weights.len(), 2 + parts, "{recipe}");
            let signature = Signature::of(module.function("main").unwrap());
            let named: Vec<&str> =
                signature.arguments.iter().map(|argument| argument.name.as_str()).collect();
            assert_eq!(named[..4], ["w", "e", "x", "w.scale"], "{recipe}");
            for (_, argument) in signature.weights() {
                let ty = argument.ty.as_tensor().unwrap();
                let tensor = &weights[&argument.name];
                assert_eq!(ty.shape_usize().unwrap(), tensor.dims(), "{recipe} {}", argument.name);
                assert_eq!(ty.element().plain(), Some(tensor.element_type()));
            }
        }
    }

    #[test]
    fn what_cannot_be_stored_is_an_error() {
        let store = |recipe: &str, entry: &str| {
            store_weights(&mut module(MODEL), entry, &mut weights(), recipe.parse().unwrap())
                .unwrap_err()
                .to_string()
        };
        assert!(store("int8wo", "other").contains("@other"));
        assert!(store("int4wo-24", "main").contains("w (32x8)"));
        let stored = |text: &str, value: f32, recipe: &str| {
            let mut weights = weights();
            weights.insert("w".to_owned(), Tensor::from_slice(&[8, 32], &[value; 256]).unwrap());
            store_weights(&mut module(text), "main", &mut weights, recipe.parse().unwrap())
                .map_err(|error| error.to_string())
        };
        assert_eq!(
            stored(MODEL, f32::NAN, "int8dq").unwrap_err(),
            "a weight of w (32x8) is NaN or infinite: it has no scale"
        );
        let open = MODEL.replace("4x", "?x");
        assert!(stored(&open, 1.0, "int8dq").unwrap_err().contains("activations of w have"));
        assert_eq!(stored(&open, 1.0, "int8wo").unwrap(), ["w"]);
    }

    #[test]
    fn products_of_rounded_activations_are_those_that_the_rewrite_makes() {
        // Two products of the same activations, one of them behind a product, in bf16.
        let text = "func.func @main(
            %w: tensor<32x32xbf16> {warpforge.name = \"w\", warpforge.role = \"parameter\"},
            %v: tensor<32x32xbf16> {warpforge.name = \"v\", warpforge.role = \"parameter\"},
            %x: tensor<2x4x32xbf16> {warpforge.name = \"x\"}) -> tensor<2x4x32xbf16> {
            %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
            %u = stablehlo.transpose %v, dims = [1, 0] : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
            %a = stablehlo.dot_general %x, %t, contracting_dims = [2] x [0] : (tensor<2x4x32xbf16>, tensor<32x32xbf16>) -> tensor<2x4x32xbf16>
            %b = stablehlo.dot_general %x, %u, contracting_dims = [2] x [0] : (tensor<2x4x32xbf16>, tensor<32x32xbf16>) -> tensor<2x4x32xbf16>
            %s = stablehlo.add %a, %b : tensor<2x4x32xbf16>
            func.return %s : tensor<2x4x32xbf16>
        }";
        let values = |seed: usize| -> Vec<bf16> {
            (0..1024).map(|at| bf16::from_f32(((at * seed) % 251) as f32 / 40.0 - 3.0)).collect()
        };
        let matrix = |seed: usize| Tensor::from_slice(&[32, 32], &values(seed)).unwrap();
        let model = module(text);
        let given = [matrix(37), matrix(53)];
        let bound = |at: usize| given.get(at).cloned();
        let graph = import(model.function("main").unwrap(), &bound).unwrap();
        for recipe in ["int8dq", "float8dq-row", "float8dq-tensor"] {
            let recipe: Recipe = recipe.parse().unwrap();
            let rewritten = quantize(&graph, recipe, &|_, _| false, &WeightNames::default(), None).unwrap();
            let mut stored = module(text);
            let mut weights: BTreeMap<String, Tensor> =
                ["w", "v"].map(str::to_owned).into_iter().zip(given.clone()).collect();
            assert_eq!(store_weights(&mut stored, "main", &mut weights, recipe).unwrap(), ["w", "v"]);
            let signature = Signature::of(stored.function("main").unwrap());
            let bound = |at: usize| weights.get(&signature.arguments[at].name).cloned();
            let graph = import(stored.function("main").unwrap(), &bound).unwrap();
            let graph = round_in_f32(&read_stored_weights(&graph));
            let steps = |graph: &Graph| {
                let graph = crate::simplify::simplify(graph).pruned();
                let computed = graph
                    .ids()
                    .map(|id| graph.node(id))
                    .filter(|node| !matches!(node.op, Op::Constant(_) | Op::Layout(_)));
                let mut steps: Vec<String> = computed
                    .map(|node| format!("{} {:?} {}", node.op.name(), node.dims, node.element))
                    .collect();
                steps.sort_unstable();
                steps
            };
            let mut expected = steps(&rewritten);
            if recipe.is_float8_dynamic() {
                // A conversion gives NaN where the type has no number.
                let guard = ["abs [2, 4, 32] f32", "compare lt [2, 4, 32] i1", "select [2, 4, 32] f32"];
                expected.extend(guard.map(str::to_owned));
                expected.sort_unstable();
            }
            assert_eq!(steps(&graph), expected, "{recipe}");
        }
    }
}
