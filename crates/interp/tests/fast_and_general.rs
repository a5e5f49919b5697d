//! The loops for common types give what the general path gives: bit by bit, but for the kind of NaN.

mod support;

use fastrand::Rng;
use support::{Case, dims, floats, random_tensor, ty};
use warpforge_tensor::{ElementType, FloatType};

const UNARY: &[&str] = &[
    "abs",
    "negate",
    "sign",
    "sqrt",
    "rsqrt",
    "exponential",
    "log",
    "tanh",
    "logistic",
    "ceil",
    "floor",
    "round_nearest_even",
    "round_nearest_afz",
    "cosine",
    "cbrt",
    "exponential_minus_one",
    "log_plus_one",
    "not",
    "popcnt",
    "count_leading_zeros",
];
const BINARY: &[&str] = &[
    "add",
    "subtract",
    "multiply",
    "divide",
    "remainder",
    "power",
    "maximum",
    "minimum",
    "and",
    "or",
    "xor",
    "shift_left",
    "shift_right_logical",
    "shift_right_arithmetic",
    "atan2",
];

/// Element types with loops of their own, and some without.
fn elements() -> Vec<ElementType> {
    let mut all = vec![
        ElementType::Bool,
        ElementType::F64,
        ElementType::F32,
        ElementType::F16,
        ElementType::BF16,
        ElementType::I4,
        ElementType::U2,
        ElementType::C64,
        ElementType::Float(FloatType::F8E4M3Fn),
    ];
    all.extend([ElementType::I8, ElementType::I16, ElementType::I32, ElementType::I64]);
    all.extend([ElementType::U8, ElementType::U16, ElementType::U32, ElementType::U64]);
    all
}

#[test]
fn element_by_element() {
    let mut random = Rng::with_seed(1);
    let mut compared = 0;
    for element in elements() {
        let shape = [3, 67];
        let t = ty(element, &shape);
        let inputs = vec![
            random_tensor(&mut random, element, &shape),
            random_tensor(&mut random, element, &shape),
            random_tensor(&mut random, element, &shape),
        ];
        for op in UNARY {
            compared += Case::new(&[&t], &t, &format!("%r = stablehlo.{op} %a0 : {t}")).compare(&inputs[..1]);
        }
        for op in BINARY {
            let body = format!("%r = stablehlo.{op} %a0, %a1 : {t}");
            compared += Case::new(&[&t, &t], &t, &body).compare(&inputs[..2]);
        }
        let clamp = format!("%r = stablehlo.clamp %a0, %a1, %a2 : {t}");
        compared += Case::new(&[&t, &t, &t], &t, &clamp).compare(&inputs);
        let truth = ty(ElementType::Bool, &shape);
        for direction in ["EQ", "NE", "GE", "GT", "LE", "LT"] {
            for kind in ["FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"] {
                let body =
                    format!("%r = stablehlo.compare {direction}, %a0, %a1, {kind} : ({t}, {t}) -> {truth}");
                compared += Case::new(&[&t, &t], &truth, &body).compare(&inputs[..2]);
            }
        }
        let finite = format!("%r = stablehlo.is_finite %a0 : ({t}) -> {truth}");
        compared += Case::new(&[&t], &truth, &finite).compare(&inputs[..1]);
        let select = format!("%r = stablehlo.select %a0, %a1, %a2 : {truth}, {t}");
        let which = random_tensor(&mut random, ElementType::Bool, &shape);
        let chosen = [which, inputs[1].clone(), inputs[2].clone()];
        compared += Case::new(&[&truth, &t, &t], &t, &select).compare(&chosen);
        for to in elements() {
            let result = ty(to, &shape);
            let body = format!("%r = stablehlo.convert %a0 : ({t}) -> {result}");
            compared += Case::new(&[&t], &result, &body).compare(&inputs[..1]);
        }
    }
    assert!(compared > 700, "only {compared} combinations are valid");
}

#[test]
fn reductions() {
    let mut random = Rng::with_seed(2);
    let mut compared = 0;
    for element in elements() {
        for op in ["add", "multiply", "maximum", "minimum", "and", "or"] {
            for round in 0..4 {
                let shape = dims(&mut random, 4, 5);
                let axes: Vec<usize> = (0..shape.len()).filter(|_| random.bool()).collect();
                let kept: Vec<usize> =
                    (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect();
                let (t, s, r) = (ty(element, &shape), ty(element, &[]), ty(element, &kept));
                let body = format!(
                    "%r = \"stablehlo.reduce\"(%a0, %a1) <{{dimensions = array<i64{}{}>}}> ({{
                     ^bb0(%x: {s}, %y: {s}):
                       %z = stablehlo.{op} {} : {s}
                       stablehlo.return %z : {s}
                     }}) : ({t}, {s}) -> {r}",
                    if axes.is_empty() { "" } else { ": " },
                    axes.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
                    if round % 2 == 0 { "%x, %y" } else { "%y, %x" },
                );
                let inputs =
                    [random_tensor(&mut random, element, &shape), random_tensor(&mut random, element, &[])];
                compared += Case::new(&[&t, &s], &r, &body).compare(&inputs);
            }
        }
    }
    assert!(compared > 150, "only {compared} combinations are valid");
}

#[test]
fn windows() {
    let mut random = Rng::with_seed(3);
    let mut compared = 0;
    for element in elements() {
        for op in ["add", "maximum", "minimum", "multiply"] {
            let rank = random.usize(1..4);
            let mut numbers =
                |low: i64, high: i64| (0..rank).map(|_| random.i64(low..high)).collect::<Vec<_>>();
            let (shape, sizes, strides) = (numbers(3, 9), numbers(1, 4), numbers(1, 3));
            let (base, window, low, high) = (numbers(1, 3), numbers(1, 3), numbers(-1, 3), numbers(0, 3));
            let counts: Vec<usize> = (0..rank)
                .map(|axis| {
                    let padded = (shape[axis] - 1) * base[axis] + 1 + low[axis] + high[axis];
                    let extent = (sizes[axis] - 1) * window[axis] + 1;
                    if padded < extent { 0 } else { ((padded - extent) / strides[axis] + 1) as usize }
                })
                .collect();
            let shape: Vec<usize> = shape.iter().map(|&dim| dim as usize).collect();
            let (t, s, r) = (ty(element, &shape), ty(element, &[]), ty(element, &counts));
            let pairs: Vec<String> =
                low.iter().zip(&high).map(|(low, high)| format!("[{low}, {high}]")).collect();
            let body = format!(
                "%r = \"stablehlo.reduce_window\"(%a0, %a1) <{{window_dimensions = array<i64: {}>,
                   window_strides = array<i64: {}>, base_dilations = array<i64: {}>,
                   window_dilations = array<i64: {}>, padding = dense<[{}]> : tensor<{rank}x2xi64>}}> ({{
                 ^bb0(%x: {s}, %y: {s}):
                   %z = stablehlo.{op} %x, %y : {s}
                   stablehlo.return %z : {s}
                 }}) : ({t}, {s}) -> {r}",
                list(&sizes),
                list(&strides),
                list(&base),
                list(&window),
                pairs.join(", "),
            );
            for init in [random_tensor(&mut random, element, &[]), support::zero(element)] {
                let inputs = [random_tensor(&mut random, element, &shape), init];
                compared += Case::new(&[&t, &s], &r, &body).compare(&inputs);
            }
            // The same windows select and scatter, without dilation.
            if base.iter().chain(&window).all(|&dilation| dilation == 1) && low.iter().all(|&low| low >= 0) {
                let truth = ty(ElementType::Bool, &[]);
                let body = format!(
                    "%r = \"stablehlo.select_and_scatter\"(%a0, %a1, %a2) <{{window_dimensions = array<i64: {}>,
                       window_strides = array<i64: {}>, padding = dense<[{}]> : tensor<{rank}x2xi64>}}> ({{
                     ^bb0(%x: {s}, %y: {s}):
                       %z = stablehlo.compare GE, %x, %y : ({s}, {s}) -> {truth}
                       stablehlo.return %z : {truth}
                     }}, {{
                     ^bb0(%x: {s}, %y: {s}):
                       %z = stablehlo.add %x, %y : {s}
                       stablehlo.return %z : {s}
                     }}) : ({t}, {r}, {s}) -> {t}",
                    list(&sizes), list(&strides), pairs.join(", "),
                );
                let inputs = [
                    random_tensor(&mut random, element, &shape),
                    random_tensor(&mut random, element, &counts),
                    random_tensor(&mut random, element, &[]),
                ];
                compared += Case::new(&[&t, &r, &s], &t, &body).compare(&inputs);
            }
        }
    }
    assert!(compared > 80, "only {compared} combinations are valid");
}

fn list(values: &[i64]) -> String {
    values.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

#[test]
fn dots() {
    let mut random = Rng::with_seed(4);
    let mut compared = 0;
    for element in elements() {
        for depth in [1, 7, 130, 300] {
            let (batch, rows, columns) = (random.usize(1..3), random.usize(1..20), random.usize(1..20));
            let (lhs, rhs) = ([batch, rows, depth], [depth, columns, batch]);
            let (a, b, r) = (ty(element, &lhs), ty(element, &rhs), ty(element, &[batch, rows, columns]));
            let body = format!(
                "%r = stablehlo.dot_general %a0, %a1, batching_dims = [0] x [2], contracting_dims = [2] x [0]
                   : ({a}, {b}) -> {r}"
            );
            let inputs = [floats(&mut random, element, &lhs), floats(&mut random, element, &rhs)];
            compared += Case::new(&[&a, &b], &r, &body).compare(&inputs);
        }
    }
    assert!(compared > 40, "only {compared} combinations are valid");
}

#[test]
fn convolutions() {
    let mut random = Rng::with_seed(5);
    let mut compared = 0;
    for element in elements().into_iter().cycle().take(120) {
        let groups = random.usize(1..3);
        let by_batch = random.bool();
        let (batch, features, out) = (2 * random.usize(1..3), random.usize(1..4), 2 * random.usize(1..3));
        let (feature_groups, batch_groups) = if by_batch { (1, groups) } else { (groups, 1) };
        let mut pair = |low: i64, high: i64| [random.i64(low..high), random.i64(low..high)];
        let (size, window, stride) = (pair(2, 7), pair(1, 4), pair(1, 3));
        let (lhs_dilate, rhs_dilate, low, high) = (pair(1, 3), pair(1, 3), pair(-1, 3), pair(0, 3));
        let reverse = [random.bool(), random.bool()];
        let count = |axis: usize| {
            let padded = (size[axis] - 1) * lhs_dilate[axis] + 1 + low[axis] + high[axis];
            let extent = (window[axis] - 1) * rhs_dilate[axis] + 1;
            if padded < extent { 0 } else { (padded - extent) / stride[axis] + 1 }
        };
        let lhs = [batch, features * feature_groups, size[0] as usize, size[1] as usize];
        let rhs = [window[0] as usize, window[1] as usize, features, out];
        let result = [count(0) as usize, batch / batch_groups, out, count(1) as usize];
        let (a, b, r) = (ty(element, &lhs), ty(element, &rhs), ty(element, &result));
        let body = format!(
            "%r = stablehlo.convolution(%a0, %a1) dim_numbers = [b, f, 0, 1]x[0, 1, i, o]->[0, b, f, 1],
               window = {{stride = [{}], pad = [[{}, {}], [{}, {}]], lhs_dilate = [{}], rhs_dilate = [{}],
               reverse = [{}, {}]}} {{batch_group_count = {batch_groups} : i64,
               feature_group_count = {feature_groups} : i64}} : ({a}, {b}) -> {r}",
            list(&stride),
            low[0],
            high[0],
            low[1],
            high[1],
            list(&lhs_dilate),
            list(&rhs_dilate),
            reverse[0],
            reverse[1],
        );
        let inputs = [floats(&mut random, element, &lhs), floats(&mut random, element, &rhs)];
        compared += Case::new(&[&a, &b], &r, &body).compare(&inputs);
    }
    assert!(compared > 60, "only {compared} combinations are valid");
}

#[test]
fn scatters_and_sorts() {
    let mut random = Rng::with_seed(6);
    let mut compared = 0;
    for element in elements() {
        let s = ty(element, &[]);
        for op in ["add", "multiply", "maximum", "minimum", ""] {
            let combine = match op {
                "" => format!("stablehlo.return %y : {s}"),
                _ => format!("%z = stablehlo.{op} %x, %y : {s}\n stablehlo.return %z : {s}"),
            };
            // Windows of 2 x 3 at rows and columns; then single columns of all rows, the window before the indices.
            for (input, update, numbers) in [
                (
                    [6, 7],
                    vec![5, 2, 3],
                    "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1],",
                ),
                (
                    [2, 7],
                    vec![2, 5],
                    "update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1],",
                ),
            ] {
                let components = if update.len() == 3 { 2 } else { 1 };
                let indices = random_indices(&mut random, &[5, components]);
                let (t, u, i) =
                    (ty(element, &input), ty(element, &update), ty(ElementType::I32, &[5, components]));
                let body = format!(
                    "%r = \"stablehlo.scatter\"(%a0, %a1, %a2) <{{scatter_dimension_numbers =
                       #stablehlo.scatter<{numbers} index_vector_dim = 1>}}> ({{
                     ^bb0(%x: {s}, %y: {s}):
                       {combine}
                     }}) : ({t}, {i}, {u}) -> {t}"
                );
                let inputs = [
                    random_tensor(&mut random, element, &input),
                    indices,
                    random_tensor(&mut random, element, &update),
                ];
                compared += Case::new(&[&t, &i, &u], &t, &body).compare(&inputs);
            }
        }
        let shape = [4, 40];
        let (t, truth) = (ty(element, &shape), ty(ElementType::Bool, &[]));
        for (direction, order) in [("LT", ""), ("GT", ", TOTALORDER")] {
            let body = format!(
                "%r = \"stablehlo.sort\"(%a0) <{{dimension = {} : i64, is_stable = true}}> ({{
                 ^bb0(%x: {s}, %y: {s}):
                   %z = stablehlo.compare {direction}, %x, %y{order} : ({s}, {s}) -> {truth}
                   stablehlo.return %z : {truth}
                 }}) : ({t}) -> {t}",
                random.usize(0..2)
            );
            compared += Case::new(&[&t], &t, &body).compare(&[random_tensor(&mut random, element, &shape)]);
        }
    }
    assert!(compared > 120, "only {compared} combinations are valid");
}

/// Indices inside and outside.
fn random_indices(random: &mut Rng, shape: &[usize]) -> warpforge_tensor::Tensor {
    let count = shape.iter().product();
    let values: Vec<i32> = (0..count).map(|_| random.i32(-2..8)).collect();
    warpforge_tensor::Tensor::from_slice(shape, &values).expect("fits")
}
