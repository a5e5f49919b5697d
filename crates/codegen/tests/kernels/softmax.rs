//! The text of a softmax in StableHLO, for tests that write attention out.

/// Numerators `%e` and row sums `%ss` of the softmax of `%x` over the last of four dimensions. `scores` is the type of `%x`,
/// `rows` that of its row maxima; `%least` and `%zero` are the scalars that the reductions start from.
pub(crate) fn softmax(scores: &str, rows: &str) -> String {
    format!(
        "%max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [3] : ({scores}, tensor<f32>) -> {rows}
    %mm = stablehlo.broadcast_in_dim %max, dims = [0, 1, 2] : ({rows}) -> {scores}
    %dd = stablehlo.subtract %x, %mm : {scores}
    %e = stablehlo.exponential %dd : {scores}
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : ({scores}, tensor<f32>) -> {rows}
    %ss = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : ({rows}) -> {scores}"
    )
}
