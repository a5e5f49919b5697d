//! Every pattern in the forms that PyTorch's export gives, and things that only look like one.

use super::patterns;
use crate::simplify::simplify;
use crate::testing::graph;

/// The names of what is found in a function of `x`, a 4x8 tensor, whose lines are given.
fn found(lines: &str) -> Vec<&'static str> {
    let module = format!(
        "func.func @main(%x: tensor<4x8xf32>, %scale: tensor<4x8xf32>, %other: tensor<4x8xf32>) -> tensor<4x8xf32> {{\n\
         %zero = stablehlo.constant dense<0.0> : tensor<f32>\n%low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n\
         {lines}\nreturn %out : tensor<4x8xf32>\n}}"
    );
    let graph = simplify(&graph(&module));
    patterns(&graph).iter().map(|pattern| pattern.name).collect()
}

/// A constant that is the same number everywhere.
fn number(name: &str, value: f64) -> String {
    format!("%{name} = stablehlo.constant dense<{value:.9}> : tensor<4x8xf32>\n")
}

/// `%NAME = operation operands`, all 4x8.
fn line(name: &str, operation: &str, operands: &str) -> String {
    format!("%{name} = stablehlo.{operation} {operands} : tensor<4x8xf32>\n")
}

/// The rows of a value folded, and the result repeated along them as `%NAME`.
fn fold(name: &str, of: &str, with: &str, init: &str) -> String {
    format!(
        "%{name}_row = stablehlo.reduce({of} init: {init}) applies stablehlo.{with} across dimensions = [1] : \
         (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>\n\
         %{name} = stablehlo.broadcast_in_dim %{name}_row, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>\n"
    )
}

fn mean(name: &str, of: &str) -> String {
    let sum = fold(&format!("{name}_sum"), of, "add", "%zero");
    let count = number(&format!("{name}_count"), 8.0);
    sum + &count + &line(name, "divide", &format!("%{name}_sum, %{name}_count"))
}

fn shifted() -> String {
    fold("most", "%x", "maximum", "%low") + &line("shifted", "subtract", "%x, %most")
}

#[test]
fn softmax_and_its_logarithm() {
    let exponential = shifted() + &line("e", "exponential", "%shifted");
    let total = exponential + &fold("total", "%e", "add", "%zero");
    assert_eq!(found(&(total.clone() + &line("out", "divide", "%e, %total"))), ["softmax"]);
    // Divided by the sum of something else.
    let other = shifted() + &line("e", "exponential", "%shifted") + &fold("total", "%x", "add", "%zero");
    assert!(found(&(other + &line("out", "divide", "%e, %total"))).is_empty());
    let logarithm = total + &line("l", "log", "%total") + &line("out", "subtract", "%shifted, %l");
    assert_eq!(found(&logarithm), ["log-softmax"]);
}

#[test]
fn norms() {
    let rest = |of: &str| {
        line("square", "multiply", &format!("{of}, {of}"))
            + &mean("variance", "%square")
            + &number("epsilon", 1e-5)
            + &line("sum", "add", "%variance, %epsilon")
            + &line("root", "rsqrt", "%sum")
            + &line("normal", "multiply", &format!("{of}, %root"))
            + &line("out", "multiply", "%normal, %scale")
    };
    let centred = mean("mean", "%x") + &line("centred", "subtract", "%x, %mean");
    assert_eq!(found(&(centred + &rest("%centred"))), ["layer norm"]);
    assert_eq!(found(&rest("%x")), ["RMS norm"]);
    let columns = (mean("mean", "%x") + &line("centred", "subtract", "%x, %mean") + &rest("%centred"))
        .replace("across dimensions = [1]", "across dimensions = [0]")
        .replace("dims = [0]", "dims = [1]")
        .replace("tensor<4xf32>", "tensor<8xf32>");
    assert_eq!(found(&columns), ["batch norm"]);
}

#[test]
fn activations() {
    let half = number("half", 0.5) + &number("one", 1.0);
    let erf = number("root", std::f64::consts::FRAC_1_SQRT_2)
        + &line("scaled", "multiply", "%x, %root")
        + "%gate = chlo.erf %scaled : tensor<4x8xf32> -> tensor<4x8xf32>\n";
    let opened = half.clone() + &erf + &line("open", "add", "%gate, %one");
    let value_halved =
        opened.clone() + &line("h", "multiply", "%x, %half") + &line("out", "multiply", "%h, %open");
    assert_eq!(found(&value_halved), ["GELU"]);
    let product_halved =
        opened.clone() + &line("p", "multiply", "%open, %x") + &line("out", "multiply", "%p, %half");
    assert_eq!(found(&product_halved), ["GELU"]);
    // The gate of another value.
    let of_other = opened + &line("h", "multiply", "%other, %half") + &line("out", "multiply", "%h, %open");
    assert!(found(&of_other).is_empty());
    let tanh = half
        + &number("factor", (2.0 / std::f64::consts::PI).sqrt())
        + &number("small", 0.044_715)
        + &line("square", "multiply", "%x, %x")
        + &line("cube", "multiply", "%square, %x")
        + &line("term", "multiply", "%cube, %small")
        + &line("sum", "add", "%x, %term")
        + &line("inner", "multiply", "%sum, %factor")
        + &line("gate", "tanh", "%inner")
        + &line("open", "add", "%gate, %one")
        + &line("h", "multiply", "%x, %half")
        + &line("out", "multiply", "%h, %open");
    assert_eq!(found(&tanh), ["GELU (tanh)"]);
    let silu = line("gate", "logistic", "%x") + &line("out", "multiply", "%gate, %x");
    assert_eq!(found(&silu), ["SiLU"]);
    assert!(found(&silu.replace("%gate, %x", "%gate, %other")).is_empty());
    assert_eq!(found(&(number("none", 0.0) + &line("out", "maximum", "%x, %none"))), ["ReLU"]);
    assert!(found(&(number("six", 6.0) + &line("out", "maximum", "%x, %six"))).is_empty());
}

#[test]
fn rotary_embedding() {
    let turned = "%first = stablehlo.slice %x [0:4, 0:4] : (tensor<4x8xf32>) -> tensor<4x4xf32>\n\
        %second = stablehlo.slice %x [0:4, 4:8] : (tensor<4x8xf32>) -> tensor<4x4xf32>\n\
        %less = stablehlo.negate %second : tensor<4x4xf32>\n\
        %turned = stablehlo.concatenate %less, %first, dim = 1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>\n"
        .to_owned();
    let products = turned + &line("a", "multiply", "%x, %scale") + &line("b", "multiply", "%turned, %other");
    assert_eq!(found(&(products.clone() + &line("out", "add", "%a, %b"))), ["rotary embedding"]);
    assert!(found(&(products + &line("out", "subtract", "%a, %b"))).is_empty());
}
