//! What is built verifies and prints as expected; what breaks a rule is refused.

use super::*;
use crate::attr::{ComparisonDirection, ConvDims, DotDims, GatherDims};
use crate::print::print;
use crate::types::ElementType;

fn built(
    inputs: &[Type],
    body: impl FnOnce(&mut Builder<'_>, &[ValueId]) -> Result<Vec<ValueId>, BuildError>,
) -> Result<Module, BuildError> {
    let mut module = Module::new();
    Builder::new(&mut module).function("main", inputs, body)?;
    let found = crate::verify(&module);
    assert!(found.is_empty(), "{found:?}\n{}", print(&module));
    Ok(module)
}

fn result(module: &Module) -> String {
    module.function("main").unwrap().result_types()[0].to_string()
}

#[test]
fn types_are_inferred() {
    let x = Type::tensor(&[4, 8], ElementType::F32);
    let w = Type::tensor(&[8, 3], ElementType::F32);
    let module = built(&[x, w], |b, v| {
        let dims = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() };
        let dot = b.dot_general(v[0], v[1], dims.clone(), None)?;
        let wide = b.dot_general(v[0], v[1], dims, Some(ElementType::F64.into()))?;
        let wide = b.convert(wide, ElementType::F32)?;
        let sum = b.binary(OpKind::Add, dot, wide)?;
        let zero = b.scalar(ElementType::F32, 0.0)?;
        let max = b.reduce(OpKind::Maximum, sum, zero, &[1])?;
        let max = b.broadcast_in_dim(max, &[4, 3], &[0])?;
        let less = b.compare(ComparisonDirection::Lt, sum, max)?;
        let chosen = b.select(less, sum, max)?;
        let turned = b.transpose(chosen, &[1, 0])?;
        let padded = b.pad(turned, zero, &[1, 0], &[0, 2], &[1, 0])?;
        Ok(vec![padded])
    });
    assert_eq!(result(&module.unwrap()), "tensor<6x6xf32>");
}

#[test]
fn convolutions_gathers_and_loops_are_built() {
    let image = Type::tensor(&[1, 8, 8, 3], ElementType::F32);
    let kernel = Type::tensor(&[3, 3, 3, 5], ElementType::F32);
    let module = built(&[image, kernel], |b, v| {
        let dims = ConvDims {
            input_feature: 3,
            input_spatial: vec![1, 2],
            kernel_input_feature: 2,
            kernel_output_feature: 3,
            kernel_spatial: vec![0, 1],
            output_feature: 3,
            output_spatial: vec![1, 2],
            ..ConvDims::default()
        };
        let mut how = Convolution::new(dims);
        how.strides = vec![2, 2];
        how.padding = vec![(1, 1), (1, 1)];
        let image = b.convolution(v[0], v[1], &how, None)?;
        let flat = b.reshape(image, &[16, 5])?;
        let index = b.iota(ElementType::I32, &[6, 1], 0)?;
        let dims = GatherDims {
            offset_dims: vec![1],
            collapsed_slice_dims: vec![0],
            start_index_map: vec![0],
            index_vector_dim: 1,
            ..GatherDims::default()
        };
        let rows = b.gather(flat, index, dims, &[1, 5])?;
        let zero = b.scalar(ElementType::I32, 0i64)?;
        let values = b.while_loop(
            &[zero, rows],
            |b, v| {
                let limit = b.scalar(ElementType::I32, 3i64)?;
                b.compare(ComparisonDirection::Lt, v[0], limit)
            },
            |b, v| {
                let one = b.scalar(ElementType::I32, 1i64)?;
                Ok(vec![b.binary(OpKind::Add, v[0], one)?, b.unary(OpKind::Tanh, v[1])?])
            },
        )?;
        let pred = b.compare(ComparisonDirection::Eq, values[0], zero)?;
        b.if_else(pred, |_| Ok(vec![values[1]]), |b| Ok(vec![b.unary(OpKind::Negate, values[1])?]))
    });
    assert_eq!(result(&module.unwrap()), "tensor<6x5xf32>");
}

#[test]
fn locations_are_those_of_the_moment() {
    let module = built(&[Type::tensor(&[2], ElementType::F32)], |b, v| {
        b.set_location(Some(r#"loc("relu"("m.py":3:0))"#.into()));
        let value = b.unary(OpKind::Negate, v[0])?;
        b.set_location(None);
        Ok(vec![value])
    });
    let text = print(&module.unwrap());
    assert!(text.contains(r#"stablehlo.negate %arg0 : tensor<2xf32> loc("relu"("m.py":3:0))"#), "{text}");
}

#[test]
fn what_breaks_a_rule_is_refused() {
    let (a, b) = (Type::tensor(&[2], ElementType::F32), Type::tensor(&[3], ElementType::F32));
    let error = built(&[a.clone(), b], |b, v| Ok(vec![b.binary(OpKind::Add, v[0], v[1])?])).unwrap_err();
    assert!(error.to_string().starts_with("stablehlo.add: C1: "), "{error}");
    let error = built(std::slice::from_ref(&a), |b, v| Ok(vec![b.op(OpKind::Iota, v, [])?])).unwrap_err();
    assert!(error.to_string().contains("operands"), "{error}");
    let error = built(&[a], |b, v| Ok(vec![b.op(OpKind::Transpose, v, [])?])).unwrap_err();
    assert!(error.to_string().contains("`permutation` is missing"), "{error}");
}
