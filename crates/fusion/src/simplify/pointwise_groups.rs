//! Grouped convolutions of single pixels as batched matrix products, a group each.

use super::rewrite::Rewrite;
use crate::graph::{Conv, Dot, Graph, Node, NodeId, Op};

/// Fewest channels of a group, in and out, that a matrix product is for.
const FEWEST_CHANNELS: usize = 8;

/// The graph with batched products in the place of grouped convolutions of single pixels.
pub(super) fn as_products(graph: &Graph) -> Graph {
    if !graph.ids().any(|id| groups(graph, id).is_some()) {
        return graph.clone();
    }
    let mut rewrite = Rewrite::new(graph);
    for id in graph.ids() {
        match groups(graph, id) {
            Some(groups) => make(&mut rewrite, id, groups),
            None => {
                rewrite.copy(id);
            }
        }
    }
    rewrite.finish()
}

/// The number of groups of a convolution whose windows are single pixels.
fn groups(graph: &Graph, id: NodeId) -> Option<usize> {
    let node = graph.node(id);
    let (Op::Conv(Conv { strides, padding, base_dilation, groups, .. }), &[_, weights]) =
        (&node.op, node.inputs.as_slice())
    else {
        return None;
    };
    let [window @ .., channels, _] = graph.node(weights).dims.as_slice() else { return None };
    let single = [window, strides, base_dilation].iter().all(|sizes| sizes.iter().all(|&size| size == 1))
        && padding.iter().all(|&(low, high)| (low, high) == (0, 0));
    let wide = *channels >= FEWEST_CHANNELS && node.dims.last()? / groups >= FEWEST_CHANNELS;
    (*groups > 1 && single && wide && !node.is_empty()).then_some(*groups)
}

fn make(rewrite: &mut Rewrite<'_>, id: NodeId, groups: usize) {
    let Node { inputs, element, dims, origin, .. } = rewrite.old.node(id).clone();
    let (&[image, weights], Some((&out, outer))) = (inputs.as_slice(), dims.split_last()) else { return };
    let channels = rewrite.old.node(weights).dims.iter().rev().nth(1).copied().unwrap_or(1);
    let rows = outer.iter().product();
    let [image, weights] = [image, weights].map(|id| rewrite.made[&id]);
    let builder = &mut rewrite.builder;
    builder.origin = origin;
    let image = builder.reshape(image, vec![rows, groups, channels]);
    let weights = builder.reshape(weights, vec![channels, groups, out / groups]);
    let dot = Dot {
        lhs_batch: vec![1],
        rhs_batch: vec![1],
        lhs_contract: vec![2],
        rhs_contract: vec![0],
        ..Dot::default()
    };
    let product = builder.add(Op::Dot(dot), vec![image, weights], element, vec![groups, rows, out / groups]);
    let result = builder.transpose(product, vec![1, 0, 2]);
    let result = builder.reshape(result, dims);
    rewrite.made.insert(id, result);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    fn convolution(window: usize, channels: usize, groups: usize) -> Graph {
        let (image, given) = (format!("tensor<2x9x{channels}xf32>"), 10 - window);
        let weights = format!("tensor<{window}x{}x{channels}xf32>", channels / groups);
        let result = format!("tensor<2x{given}x{channels}xf32>");
        graph(&format!(
            "func.func @main(%x: {image}, %w: {weights}) -> {result} {{
            %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{}} \
             {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : ({image}, {weights}) -> {result}
            return %r : {result} }}"
        ))
    }

    fn products(graph: &Graph) -> Vec<Vec<usize>> {
        let products = graph.nodes.iter().filter(|node| matches!(node.op, Op::Dot(_)));
        products.map(|node| node.dims.clone()).collect()
    }

    #[test]
    fn groups_of_single_pixels_are_a_batch() {
        let made = as_products(&convolution(1, 64, 4));
        assert_eq!(products(&made), [vec![4, 18, 16]]);
        assert_eq!(made.node(made.outputs[0]).dims, [2, 9, 64]);
    }

    #[test]
    fn windows_single_channels_and_one_group_stay_convolutions() {
        for (window, channels, groups) in [(3, 64, 4), (1, 64, 64), (1, 64, 1)] {
            assert!(products(&as_products(&convolution(window, channels, groups))).is_empty());
        }
    }
}
