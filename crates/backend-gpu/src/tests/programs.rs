//! Programs for unit tests with fakes and for `tests/device`.

/// Operations that canonicalisation removes, a host loop, a call, and an unused value.
pub(crate) const AS_WRITTEN: &str = "func.func private @twice(%x: tensor<4xi32>) -> tensor<4xi32> {
    %0 = stablehlo.add %x, %x : tensor<4xi32>
    return %0 : tensor<4xi32>\n}
func.func @main(%x: tensor<4xi32>, %n: tensor<i32>) -> (tensor<2x2xi32>, tensor<i32>) {
    %one = stablehlo.constant dense<1> : tensor<4xi32>
    %list = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
    %0 = stablehlo.multiply %x, %one : tensor<4xi32>
    %1 = stablehlo.reshape %0 : (tensor<4xi32>) -> tensor<4xi32>
    %2 = stablehlo.add %1, %list : tensor<4xi32>
    %3 = stablehlo.add %1, %list : tensor<4xi32>
    %4 = stablehlo.optimization_barrier %2 : tensor<4xi32>
    %5 = call @twice(%4) : (tensor<4xi32>) -> tensor<4xi32>
    %6 = stablehlo.while(%i = %n) : tensor<i32>
     cond {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %c = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %less = stablehlo.constant dense<1> : tensor<i32>
      %s = stablehlo.subtract %i, %less : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }
    %7 = stablehlo.reshape %5 : (tensor<4xi32>) -> tensor<2x2xi32>
    return %7, %6 : tensor<2x2xi32>, tensor<i32>\n}";

/// Emits the tanh approximation of GELU of `%x`: `%halved` times `%gate`, which is 1 + `%tanh`.
fn bent(ty: &str) -> String {
    format!(
        "%cubic = stablehlo.constant dense<0.044715> : {ty}
    %beta = stablehlo.constant dense<0.7978845608> : {ty}
    %one = stablehlo.constant dense<1.0> : {ty}
    %half = stablehlo.constant dense<0.5> : {ty}
    %square = stablehlo.multiply %x, %x : {ty}
    %cube = stablehlo.multiply %square, %x : {ty}
    %bend = stablehlo.multiply %cube, %cubic : {ty}
    %inner = stablehlo.add %x, %bend : {ty}
    %scaled = stablehlo.multiply %inner, %beta : {ty}
    %tanh = stablehlo.tanh %scaled : {ty}
    %gate = stablehlo.add %tanh, %one : {ty}
    %halved = stablehlo.multiply %x, %half : {ty}"
    )
}

/// A dense layer of size m, n, k with bias and GELU, computed in f32.
pub(crate) fn gelu(element: &str, [m, n, k]: [usize; 3]) -> String {
    let (a, w) = (format!("tensor<{m}x{k}x{element}>"), format!("tensor<{n}x{k}x{element}>"));
    let (b, y, wide) = (
        format!("tensor<{n}x{element}>"),
        format!("tensor<{m}x{n}x{element}>"),
        format!("tensor<{m}x{n}xf32>"),
    );
    format!(
        "func.func @main(%a: {a}, %w: {w}, %b: {b}) -> {y} {{
    %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [1] : ({a}, {w}) -> {y}
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : ({b}) -> {y}
    %2 = stablehlo.add %0, %1 : {y}
    %x = stablehlo.convert %2 : ({y}) -> {wide}
    {}
    %r = stablehlo.multiply %halved, %gate : {wide}
    %n = stablehlo.convert %r : ({wide}) -> {y}
    return %n : {y}\n}}",
        bent(&wide)
    )
}

/// The input gradient of a dense layer, times the derivative of GELU.
pub(crate) fn gelu_gradient(element: &str, [m, n, k]: [usize; 3]) -> String {
    let (g, w) = (format!("tensor<{m}x{k}x{element}>"), format!("tensor<{k}x{n}x{element}>"));
    let (y, wide) = (format!("tensor<{m}x{n}x{element}>"), format!("tensor<{m}x{n}xf32>"));
    format!(
        "func.func @main(%g: {g}, %w: {w}, %before: {y}) -> {y} {{
    %0 = stablehlo.dot_general %g, %w, contracting_dims = [1] x [0] : ({g}, {w}) -> {y}
    %given = stablehlo.convert %0 : ({y}) -> {wide}
    %x = stablehlo.convert %before : ({y}) -> {wide}
    {}
    %left = stablehlo.multiply %gate, %half : {wide}
    %tangents = stablehlo.multiply %tanh, %tanh : {wide}
    %steep = stablehlo.subtract %one, %tangents : {wide}
    %three = stablehlo.constant dense<0.134145> : {wide}
    %grown = stablehlo.multiply %square, %three : {wide}
    %more = stablehlo.add %grown, %one : {wide}
    %wider = stablehlo.multiply %more, %beta : {wide}
    %right = stablehlo.multiply %halved, %steep : {wide}
    %rights = stablehlo.multiply %right, %wider : {wide}
    %slope = stablehlo.add %left, %rights : {wide}
    %r = stablehlo.multiply %given, %slope : {wide}
    %n = stablehlo.convert %r : ({wide}) -> {y}
    return %n : {y}\n}}",
        bent(&wide)
    )
}

/// Forms of the ReLU gradient of `%y` and `%dy`: PyTorch's, with swapped branches, with zero on the left.
pub(crate) const GATES: [&str; 3] = [
    "%c = stablehlo.compare LE, %y, %zero : (TYPE, TYPE) -> TRUTH
    %d = stablehlo.select %c, %zero, %dy : TRUTH, TYPE",
    "%c = stablehlo.compare GT, %y, %zero : (TYPE, TYPE) -> TRUTH
    %d = stablehlo.select %c, %dy, %zero : TRUTH, TYPE",
    "%c = stablehlo.compare LT, %zero, %y : (TYPE, TYPE) -> TRUTH
    %d = stablehlo.select %c, %dy, %zero : TRUTH, TYPE",
];

/// Special values in a ReLU gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extreme {
    /// None.
    No,
    /// `%y` has NaNs.
    Nan,
    /// `%dy` has infinities or NaNs.
    Infinite,
}

/// The input gradient of a dense layer of size m, n, k, masked by the gradient of the preceding ReLU.
pub(crate) fn relu_gradient(element: &str, [m, n, k]: [usize; 3], gate: &str, extreme: Extreme) -> String {
    let of = |rows: usize, columns: usize| format!("tensor<{rows}x{columns}x{element}>");
    let (g, w, y) = (of(m, k), of(k, n), of(m, n));
    let gate = gate.replace("TYPE", &y).replace("TRUTH", &format!("tensor<{m}x{n}xi1>"));
    let far = if extreme == Extreme::Infinite { 1000.0 } else { 1.0 };
    let bent = if extreme == Extreme::Nan { "sqrt" } else { "tanh" };
    format!(
        "func.func @main(%h: {g}, %w: {w}, %s: {y}) -> ({y}, {y}) {{
    %zero = stablehlo.constant dense<0.0> : {y}
    %far = stablehlo.constant dense<{far:?}> : {g}
    %i = stablehlo.multiply %h, %far : {g}
    %g = stablehlo.exponential %i : {g}
    %y = stablehlo.{bent} %s : {y}
    %dy = stablehlo.dot_general %g, %w, contracting_dims = [1] x [0] : ({g}, {w}) -> {y}
    {gate}
    return %d, %y : {y}, {y}\n}}"
    )
}

/// A training step of two dense layers with bias and ReLU: the result, and the gradients of the first layer.
pub(crate) fn relu_training(element: &str, [m, n, k, after]: [usize; 4], gate: &str) -> String {
    let of = |rows: usize, columns: usize| format!("tensor<{rows}x{columns}x{element}>");
    let (x, w, v, y, r) = (of(m, k), of(k, n), of(n, after), of(m, n), of(m, after));
    let (b, bw, wide) =
        (format!("tensor<{n}x{element}>"), format!("tensor<{n}xf32>"), format!("tensor<{m}x{n}xf32>"));
    let gate = gate.replace("TYPE", &y).replace("TRUTH", &format!("tensor<{m}x{n}xi1>"));
    format!(
        "func.func @main(%x: {x}, %w: {w}, %b: {b}, %v: {v}, %g: {r}) -> ({r}, {y}, {w}, {b}) {{
    %zero = stablehlo.constant dense<0.0> : {y}
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {y}
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : ({b}) -> {y}
    %2 = stablehlo.add %0, %1 : {y}
    %y = stablehlo.maximum %2, %zero : {y}
    %r = stablehlo.dot_general %y, %v, contracting_dims = [1] x [0] : ({y}, {v}) -> {r}
    %dy = stablehlo.dot_general %g, %v, contracting_dims = [1] x [1] : ({r}, {v}) -> {y}
    {gate}
    %dw = stablehlo.dot_general %x, %d, contracting_dims = [0] x [0] : ({x}, {y}) -> {w}
    %dl = stablehlo.convert %d : ({y}) -> {wide}
    %dc = stablehlo.reduce(%dl init: %none) applies stablehlo.add across dimensions = [0] : ({wide}, tensor<f32>) -> {bw}
    %db = stablehlo.convert %dc : ({bw}) -> {b}
    return %r, %d, %dw, %db : {r}, {y}, {w}, {b}\n}}"
    )
}

/// A convolution with pointwise scalar operations on its result.
pub(crate) fn convolution_with_numbers(element: &str, channels: usize, ops: &[&str]) -> String {
    let (x, w) = (format!("tensor<2x64x64x32x{element}>"), format!("tensor<{channels}x32x1x1x{element}>"));
    let y = format!("tensor<2x64x64x{channels}x{element}>");
    let lines: Vec<String> = ops
        .iter()
        .enumerate()
        .map(|(at, &op)| {
            let number = if op == "maximum" { "zero" } else { "number" };
            format!("%{} = stablehlo.{op} %{at}, %{number} : {y}\n    ", at + 1)
        })
        .collect();
    format!(
        "func.func @main(%x: {x}, %w: {w}) -> {y} {{
    %number = stablehlo.constant dense<0.25> : {y}
    %zero = stablehlo.constant dense<0.0> : {y}
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {{}} {{feature_group_count = 1 : i64, batch_group_count = 1 : i64}} : ({x}, {w}) -> {y}
    {}return %{} : {y}\n}}",
        lines.concat(),
        ops.len()
    )
}
