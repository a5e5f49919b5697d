//! Attention: scores, their softmax, and the weighted values.

use std::collections::BTreeMap;

use super::text::{ModuleText, ty};
use super::{Case, Dtype};

/// How far attention goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Steps {
    Scores,
    Softmax,
    Full,
}

impl Steps {
    pub(super) const ALL: [Self; 3] = [Self::Scores, Self::Softmax, Self::Full];
}

/// Attention over `[batch, heads, sequence, width]`.
pub(super) fn case(shape: [usize; 4], steps: Steps, dtype: Dtype) -> Case {
    let [batch, heads, sequence, width] = shape;
    Case { shape: shape.to_vec(), ..between([batch, heads, sequence, sequence, width], steps, dtype) }
}

/// Attention over `[batch, heads, queries, keys, width]`.
pub(super) fn cross(shape: [usize; 5], dtype: Dtype) -> Case {
    between(shape, Steps::Full, dtype)
}

fn between(shape: [usize; 5], steps: Steps, dtype: Dtype) -> Case {
    let [batch, heads, queries, keys, width] = shape;
    let (of_queries, of_keys) = ([batch, heads, queries, width], [batch, heads, keys, width]);
    let [q, k] = [of_queries, of_keys].map(|dims| ty(&dims, "f32"));
    let s = ty(&[batch, heads, queries, keys], "f32");
    let scale = 1.0 / (width as f64).sqrt();
    let matmul = format!(
        "  %scores = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : \
         ({q}, {k}) -> {s}\n"
    );
    let scaled = format!(
        "  %factor = stablehlo.constant dense<{scale:e}> : {s}\n  %scale = stablehlo.multiply %scores, %factor : {s}\n"
    );
    let mut module = ModuleText::default().input("q", &of_queries, "f32").input("k", &of_keys, "f32");
    if steps == Steps::Full {
        module = module.input("v", &of_keys, "f32");
    }
    module = module.operator("scores", &s, matmul).operator("scale", &s, scaled);
    if steps != Steps::Scores {
        let rows = [batch, heads, queries];
        module = module.operator("softmax", &s, softmax("scale", &rows, keys));
    }
    if steps == Steps::Full {
        let values = format!(
            "  %values = stablehlo.dot_general %softmax, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : \
             ({s}, {k}) -> {q}\n"
        );
        module = module.operator("values", &q, values);
    }
    let pattern = match steps {
        Steps::Scores => "QK^T",
        Steps::Softmax => "QK^T_Softmax",
        Steps::Full => "FullAttention",
    };
    Case {
        op: "attention",
        pattern: Some(pattern),
        shape: shape.to_vec(),
        dtype,
        module,
        extra: BTreeMap::new(),
    }
}

/// The lines of `%softmax` over the last dimension.
pub(super) fn softmax(of: &str, rows: &[usize], columns: usize) -> String {
    let last = rows.len();
    let dims: Vec<String> = (0..last).map(|at| at.to_string()).collect();
    let dims = dims.join(", ");
    let mut wide = rows.to_vec();
    wide.push(columns);
    let (y, r) = (ty(&wide, "f32"), ty(rows, "f32"));
    format!(
        "  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>\n  %nothing = stablehlo.constant dense<0.0> : tensor<f32>\n  \
         %s0 = stablehlo.reduce(%{of} init: %lowest) applies stablehlo.maximum across dimensions = [{last}] : ({y}, tensor<f32>) -> {r}\n  \
         %s1 = stablehlo.broadcast_in_dim %s0, dims = [{dims}] : ({r}) -> {y}\n  \
         %s2 = stablehlo.subtract %{of}, %s1 : {y}\n  %s3 = stablehlo.exponential %s2 : {y}\n  \
         %s4 = stablehlo.reduce(%s3 init: %nothing) applies stablehlo.add across dimensions = [{last}] : ({y}, tensor<f32>) -> {r}\n  \
         %s5 = stablehlo.broadcast_in_dim %s4, dims = [{dims}] : ({r}) -> {y}\n  \
         %softmax = stablehlo.divide %s3, %s5 : {y}\n"
    )
}
