//! Reductions of several operands together and select-and-scatter: operations by a function of scalars.

use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use super::exact_kernels;

/// Few different values, so that many are equal; with NaN for floats.
fn values(element: ElementType, dims: &[usize], seed: u64) -> Tensor {
    let mut state = seed;
    let shape = Shape::new(dims).unwrap();
    let count = shape.num_elements();
    let values = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (number, is_nan) = ((state >> 40) % 7, (state >> 33).is_multiple_of(23));
        match element {
            ElementType::Float(_) if is_nan => Scalar::Float(f64::NAN),
            ElementType::Float(_) => Scalar::Float(number as f64 - 3.0),
            _ => Scalar::Int(number.into()),
        }
    });
    Tensor::from_scalars(element, shape, values.take(count)).unwrap()
}

fn ty(dims: &[usize], element: &str) -> String {
    let dims: String = dims.iter().map(|dim| format!("{dim}x")).collect();
    format!("tensor<{dims}{element}>")
}

/// The bodies of argmax and argmin that frameworks write: the first of equal elements by the index, by the order, and NaN before all.
const BODIES: [&str; 4] = [
    "%p = stablehlo.compare GE, %a, %c : (tensor<E>, tensor<E>) -> tensor<i1>
     %v = stablehlo.select %p, %a, %c : tensor<i1>, tensor<E>
     %w = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i64>",
    "%p = stablehlo.compare LE, %a, %c : (tensor<E>, tensor<E>) -> tensor<i1>
     %v = stablehlo.select %p, %a, %c : tensor<i1>, tensor<E>
     %w = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i64>",
    "%g = stablehlo.compare GT, %a, %c : (tensor<E>, tensor<E>) -> tensor<i1>
     %n = stablehlo.compare NE, %a, %a : (tensor<E>, tensor<E>) -> tensor<i1>
     %o = stablehlo.or %g, %n : tensor<i1>
     %e = stablehlo.compare EQ, %a, %c : (tensor<E>, tensor<E>) -> tensor<i1>
     %l = stablehlo.compare LT, %b, %d : (tensor<i64>, tensor<i64>) -> tensor<i1>
     %t = stablehlo.and %e, %l : tensor<i1>
     %p = stablehlo.or %o, %t : tensor<i1>
     %v = stablehlo.select %o, %a, %c : tensor<i1>, tensor<E>
     %w = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i64>",
    "%v = stablehlo.maximum %a, %c : tensor<E>
     %w = stablehlo.add %b, %d : tensor<i64>",
];

#[test]
fn places_of_extremes() {
    let shapes: [(&[usize], &[usize]); 8] = [
        (&[5, 30], &[1]),
        (&[5, 30], &[0]),
        (&[3, 40, 7], &[1]),
        (&[4, 3, 5], &[0, 2]),
        (&[2, 3000], &[1]),
        (&[700], &[0]),
        (&[2, 3, 4], &[0, 1, 2]),
        (&[0, 3], &[0]),
    ];
    for element in ["f32", "f64", "bf16", "i32", "ui8"] {
        for (dims, axes) in shapes {
            for body in BODIES {
                let kept: Vec<usize> =
                    (0..dims.len()).filter(|axis| !axes.contains(axis)).map(|axis| dims[axis]).collect();
                let (x, i) = (ty(dims, element), ty(dims, "i64"));
                let (v, w) = (ty(&kept, element), ty(&kept, "i64"));
                let body = body.replace("tensor<E>", &format!("tensor<{element}>"));
                let initial = if element.contains('f') { "-1.0" } else { "1" };
                let text = format!(
                    "func.func @main(%x: {x}, %i: {i}) -> ({v}, {w}) {{
                    %init = stablehlo.constant dense<{initial}> : tensor<{element}>
                    %zero = stablehlo.constant dense<0> : tensor<i64>
                    %r:2 = stablehlo.reduce(%x init: %init), (%i init: %zero) across dimensions = {axes:?}
                        : ({x}, {i}, tensor<{element}>, tensor<i64>) -> ({v}, {w})
                     reducer(%a: tensor<{element}>, %c: tensor<{element}>) (%b: tensor<i64>, %d: tensor<i64>) {{
                        {body}
                        stablehlo.return %v, %w : tensor<{element}>, tensor<i64>
                    }}
                    func.return %r#0, %r#1 : {v}, {w} }}"
                );
                let element = match element {
                    "f32" => ElementType::F32,
                    "f64" => ElementType::F64,
                    "bf16" => ElementType::BF16,
                    "i32" => ElementType::I32,
                    _ => ElementType::U8,
                };
                let inputs = [values(element, dims, 1), values(ElementType::I64, dims, 2)];
                assert_eq!(exact_kernels(&text, &inputs), ["variadic reduction"]);
            }
        }
    }
}

/// A part that nothing reads has no memory of its own.
#[test]
fn places_alone() {
    let text = "func.func @main(%x: tensor<6x9xf32>) -> tensor<6xi64> {
        %i = stablehlo.iota dim = 1 : tensor<6x9xi64>
        %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %zero = stablehlo.constant dense<0> : tensor<i64>
        %r:2 = stablehlo.reduce(%x init: %init), (%i init: %zero) across dimensions = [1]
            : (tensor<6x9xf32>, tensor<6x9xi64>, tensor<f32>, tensor<i64>) -> (tensor<6xf32>, tensor<6xi64>)
         reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i64>, %d: tensor<i64>) {
            %p = stablehlo.compare GE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
            %v = stablehlo.select %p, %a, %c : tensor<i1>, tensor<f32>
            %w = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i64>
            stablehlo.return %v, %w : tensor<f32>, tensor<i64>
        }
        func.return %r#1 : tensor<6xi64> }";
    let names = exact_kernels(text, &[values(ElementType::F32, &[6, 9], 3)]);
    assert_eq!(names.last().map(String::as_str), Some("variadic reduction"));
}

/// Sizes, windows, strides and padding; negative padding cuts.
type Pooling = (&'static [usize], &'static [usize], &'static [usize], &'static [[i64; 2]]);

#[test]
fn gradients_of_pooling() {
    let cases: [Pooling; 6] = [
        (&[2, 9, 8, 3], &[1, 3, 3, 1], &[1, 2, 2, 1], &[[0, 0], [1, 1], [1, 0], [0, 0]]),
        (&[2, 3, 9, 8], &[1, 1, 2, 3], &[1, 1, 2, 1], &[[0, 0], [0, 0], [0, 0], [0, 2]]),
        (&[11], &[4], &[3], &[[-1, 2]]),
        (&[5, 6], &[2, 2], &[1, 1], &[[3, 3], [0, -1]]),
        (&[3, 4], &[1, 1], &[1, 1], &[[0, 0], [0, 0]]),
        (&[4, 5, 6], &[2, 3, 2], &[2, 3, 1], &[[1, 1], [0, 2], [1, 0]]),
    ];
    for element in ["f32", "f64", "i32"] {
        for (dims, sizes, strides, padding) in cases {
            for (select, scatter) in [("GE", "add"), ("LE", "add"), ("GT", "maximum")] {
                let counts: Vec<usize> = (0..dims.len())
                    .map(|at| {
                        let padded = dims[at] as i64 + padding[at][0] + padding[at][1] - sizes[at] as i64;
                        usize::try_from(padded).map_or(0, |left| left / strides[at] + 1)
                    })
                    .collect();
                let (x, s, one) = (ty(dims, element), ty(&counts, element), format!("tensor<{element}>"));
                let list =
                    |values: &[usize]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let init = if element == "i32" { "0" } else { "0.0" };
                let text = format!(
                    "func.func @main(%x: {x}, %s: {s}) -> {x} {{
                    %zero = stablehlo.constant dense<{init}> : {one}
                    %r = \"stablehlo.select_and_scatter\"(%x, %s, %zero) <{{window_dimensions = array<i64: {}>,
                        window_strides = array<i64: {}>, padding = dense<{padding:?}> : tensor<{}x2xi64>}}> ({{
                      ^bb0(%a: {one}, %b: {one}):
                        %p = stablehlo.compare {select}, %a, %b : ({one}, {one}) -> tensor<i1>
                        stablehlo.return %p : tensor<i1>
                    }}, {{
                      ^bb0(%a: {one}, %b: {one}):
                        %t = stablehlo.{scatter} %a, %b : {one}
                        stablehlo.return %t : {one}
                    }}) : ({x}, {s}, {one}) -> {x}
                    func.return %r : {x} }}",
                    list(sizes),
                    list(strides),
                    dims.len()
                );
                let types = [("f32", ElementType::F32), ("f64", ElementType::F64), ("i32", ElementType::I32)];
                let (_, element) = types.into_iter().find(|(name, _)| *name == element).unwrap();
                let given: Vec<Scalar> = (1..=counts.iter().product::<usize>() as i64)
                    .map(|at| {
                        if element == ElementType::I32 {
                            Scalar::Int(at.into())
                        } else {
                            Scalar::Float(at as f64)
                        }
                    })
                    .collect();
                let given =
                    Tensor::from_scalars(element, Shape::new(counts.clone()).unwrap(), given).unwrap();
                let names = exact_kernels(&text, &[values(element, dims, 4), given]);
                assert_eq!(names, ["select_and_scatter"]);
            }
        }
    }
}
