//! Linear layers: rows times weights, then bias and activation.

use std::collections::BTreeMap;

use super::text::{ModuleText, ty};
use super::{Case, Dtype};

/// What follows the matmul.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Epilogue {
    None,
    Bias,
    Relu,
    Gelu,
}

impl Epilogue {
    pub(super) const ALL: [Self; 4] = [Self::None, Self::Bias, Self::Relu, Self::Gelu];
}

/// A linear layer of `m` rows, `k` inputs and `n` outputs.
pub(super) fn case(m: usize, k: usize, n: usize, epilogue: Epilogue, dtype: Dtype) -> Case {
    let y = ty(&[m, n], "f32");
    let x = ty(&[m, k], "f32");
    let w = ty(&[k, n], "f32");
    let mut module = ModuleText::default().input("x", &[m, k], "f32").weight("w", &[k, n], "f32").operator(
        "matmul",
        &y,
        format!(
            "  %matmul = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {y}\n"
        ),
    );
    if epilogue != Epilogue::None {
        module = module.weight("bias", &[n], "f32").operator("add", &y, bias(n, 1, "matmul", &y));
    }
    let pattern = match epilogue {
        Epilogue::None => None,
        Epilogue::Bias => Some("Linear_Bias"),
        Epilogue::Relu => {
            module = module.operator("relu", &y, relu("add", &y));
            Some("Linear_Bias_ReLU")
        }
        Epilogue::Gelu => {
            module = module.operator("gelu", &y, gelu("add", &y));
            Some("Linear_Bias_GELU")
        }
    };
    let (shape, extra) = (vec![m, k, n], BTreeMap::new());
    Case { op: "linear", pattern, shape, dtype, module, extra }
}

/// A matmul of 8-bit integers or floats.
pub(super) fn of_bytes(m: usize, k: usize, n: usize, dtype: Dtype) -> Case {
    let (element, sum) = if dtype == Dtype::Float8 { ("f8E4M3FN", "f32") } else { ("i8", "i32") };
    let (x, w, y) = (ty(&[m, k], element), ty(&[k, n], element), ty(&[m, n], sum));
    let matmul = format!(
        "  %matmul = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {y}\n"
    );
    let module = ModuleText::default().input("x", &[m, k], element).weight("w", &[k, n], element);
    Case {
        op: "linear",
        pattern: None,
        shape: vec![m, k, n],
        dtype,
        module: module.operator("matmul", &y, matmul),
        extra: BTreeMap::new(),
    }
}

/// The lines of `%add`: a bias for each element of a dimension.
fn bias(n: usize, dim: usize, of: &str, y: &str) -> String {
    let b = ty(&[n], "f32");
    format!(
        "  %wide = stablehlo.broadcast_in_dim %bias, dims = [{dim}] : ({b}) -> {y}\n  \
         %add = stablehlo.add %{of}, %wide : {y}\n"
    )
}

/// The lines of `%relu`.
pub(super) fn relu(of: &str, y: &str) -> String {
    format!("  %zero = stablehlo.constant dense<0.0> : {y}\n  %relu = stablehlo.maximum %{of}, %zero : {y}\n")
}

/// The lines of `%gelu`, as export writes it.
pub(super) fn gelu(of: &str, y: &str) -> String {
    format!(
        "  %half = stablehlo.constant dense<0.5> : {y}\n  %one = stablehlo.constant dense<1.0> : {y}\n  \
         %root = stablehlo.constant dense<0.707106781> : {y}\n  \
         %g0 = stablehlo.multiply %{of}, %half : {y}\n  %g1 = stablehlo.multiply %{of}, %root : {y}\n  \
         %g2 = chlo.erf %g1 : {y} -> {y}\n  %g3 = stablehlo.add %g2, %one : {y}\n  \
         %gelu = stablehlo.multiply %g0, %g3 : {y}\n"
    )
}
