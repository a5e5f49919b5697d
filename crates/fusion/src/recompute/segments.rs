//! Gradient checkpointing: the forward pass is divided into segments. What passes from one to the next is kept, and the backward pass
//! computes the rest of a segment again when it comes to it.
//!
//! The forward pass are the nodes up to the loss, the first single float of the results behind which values wait. A cut is best where few
//! bytes pass; segments are made as long as the least memory in all asks for.

use std::collections::HashMap;

use crate::graph::{Graph, NodeId, Op, Rewrite, below_layouts};

/// Most segments that are tried.
const MOST_SEGMENTS: usize = 128;

/// The graph whose backward pass computes the insides of segments again.
pub(super) fn keep_between_segments(graph: Graph) -> Graph {
    let Some(forward) = Forward::of(&graph) else { return graph };
    let cuts = forward.cuts();
    let Some(&last) = cuts.last() else { return graph };
    let again = forward.again(&graph, &cuts, last);
    let mut rewrite = Rewrite::new(&graph);
    let mut made = HashMap::new();
    for id in graph.ids() {
        let mut node = rewrite.next(id);
        if id.index() > forward.loss {
            for (at, &input) in graph.node(id).inputs.iter().enumerate() {
                let (source, layouts) = below_layouts(&graph, input);
                if again[source.index()] {
                    let copy = copy(&mut rewrite, &mut made, &again, source);
                    node.inputs[at] = rewrite.relayout(&layouts, copy);
                }
            }
        }
        let new = rewrite.push(node);
        rewrite.end(new);
    }
    rewrite.finish(None).pruned()
}

/// A value of a segment once more, for the backward pass.
fn copy(rewrite: &mut Rewrite<'_>, made: &mut HashMap<NodeId, NodeId>, again: &[bool], id: NodeId) -> NodeId {
    if let Some(&copy) = made.get(&id) {
        return copy;
    }
    let graph = rewrite.old;
    let mut node = graph.node(id).clone();
    for input in &mut node.inputs {
        let (source, layouts) = below_layouts(graph, *input);
        *input = if again[source.index()] {
            let copy = copy(rewrite, made, again, source);
            rewrite.relayout(&layouts, copy)
        } else {
            rewrite.moved(*input)
        };
    }
    let copy = rewrite.push(node);
    made.insert(id, copy);
    copy
}

/// The forward pass of a graph with gradients.
struct Forward {
    /// The place of the loss, its end.
    loss: usize,
    /// The bytes of each value, none where it is in memory anyway.
    bytes: Vec<usize>,
    /// The last reader of each value within the forward pass.
    last_reader: Vec<usize>,
    /// Whether the backward pass reads a value.
    waits: Vec<bool>,
    /// The bytes that pass each place on their way to later parts of the forward pass.
    passing: Vec<usize>,
}

impl Forward {
    fn of(graph: &Graph) -> Option<Self> {
        let readers = graph.users_through_layouts();
        let is_number = |id: &&NodeId| {
            let node = graph.node(**id);
            node.dims.is_empty() && node.element.is_float() && !in_memory_anyway(graph, **id)
        };
        let made = graph.outputs.iter().filter(is_number).map(|id| Self::until(graph, &readers, id.index()));
        made.into_iter().find(|forward| forward.waits.contains(&true))
    }

    fn until(graph: &Graph, readers: &[Vec<NodeId>], loss: usize) -> Self {
        let size = |id: NodeId| if in_memory_anyway(graph, id) { 0 } else { graph.node(id).bytes() };
        let bytes: Vec<usize> = graph.ids().take(loss + 1).map(size).collect();
        let within =
            |at: usize| readers[at].iter().map(|id| id.index()).filter(move |&reader| reader <= loss);
        let last_reader: Vec<usize> = (0..=loss).map(|at| within(at).max().unwrap_or(at)).collect();
        let beyond = |at: usize| readers[at].iter().any(|id| id.index() > loss);
        let waits = (0..=loss).map(|at| bytes[at] > 0 && beyond(at) && within(at).next().is_some()).collect();
        let mut changes = vec![0isize; loss + 2];
        for (at, (&bytes, &last)) in bytes.iter().zip(&last_reader).enumerate() {
            changes[at] += bytes.cast_signed();
            changes[last] -= bytes.cast_signed();
        }
        let running = changes.iter().take(loss + 1).scan(0, |sum: &mut isize, change| {
            *sum += change;
            Some(sum.cast_unsigned())
        });
        let passing = running.collect();
        Self { loss, bytes, last_reader, waits, passing }
    }

    /// Where the forward pass is cut for the least memory; nowhere where nothing is gained.
    fn cuts(&self) -> Vec<usize> {
        let waiting: usize = self.waiting(0..self.loss + 1);
        let all = (2..=MOST_SEGMENTS).map(|segments| self.cuts_by(waiting / segments));
        let best = all.map(|cuts| (self.memory(&cuts), cuts)).min_by_key(|(memory, _)| *memory);
        best.filter(|(memory, _)| *memory < waiting).map(|(_, cuts)| cuts).unwrap_or_default()
    }

    fn waiting(&self, places: std::ops::Range<usize>) -> usize {
        places.filter(|&at| self.waits[at]).map(|at| self.bytes[at]).sum()
    }

    /// Cuts between which at most so many bytes wait, each where the fewest bytes pass.
    fn cuts_by(&self, most: usize) -> Vec<usize> {
        let (mut cuts, mut begin, mut held, mut at) = (Vec::new(), 0, 0, 0);
        let mut best: Option<usize> = None;
        while at < self.loss {
            held += if self.waits[at] { self.bytes[at] } else { 0 };
            if held > most
                && let Some(cut) = best.take()
            {
                cuts.push(cut);
                (begin, held) = (cut + 1, 0);
                at = begin;
                continue;
            }
            if best.is_none_or(|best| self.passing[at] <= self.passing[best]) && self.waiting_any(begin, at) {
                best = Some(at);
            }
            at += 1;
        }
        cuts
    }

    /// Whether a segment from a place to another has anything to compute again.
    fn waiting_any(&self, begin: usize, end: usize) -> bool {
        self.waits[begin..=end].contains(&true)
    }

    /// The bytes that are kept at the cuts, and those of the segment that has most.
    fn memory(&self, cuts: &[usize]) -> usize {
        let kept: usize = cuts.iter().map(|&cut| self.passing[cut]).sum();
        let begins = std::iter::once(0).chain(cuts.iter().map(|cut| cut + 1));
        let ends = cuts.iter().map(|cut| cut + 1).chain([self.loss + 1]);
        kept + begins.zip(ends).map(|(begin, end)| self.waiting(begin..end)).max().unwrap_or(0)
    }

    /// The values that the backward pass computes again.
    fn again(&self, graph: &Graph, cuts: &[usize], last: usize) -> Vec<bool> {
        let mut again = vec![false; graph.nodes.len()];
        for id in graph.ids().take(last + 1) {
            let at = id.index();
            let passes = cuts.iter().any(|&cut| at <= cut && cut < self.last_reader[at]);
            let is_output = graph.outputs.contains(&id) || graph.effects.contains(&id);
            again[at] = !passes && !is_output && !in_memory_anyway(graph, id) && is_repeatable(graph, id);
        }
        again
    }
}

/// Whether a value takes no memory of its own. Codes that are widened to indices do.
fn in_memory_anyway(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    let is_weight = || graph.is_known(id) && node.element.is_float();
    matches!(node.op, Op::Argument(_) | Op::Constant(_) | Op::Layout(_)) || is_weight()
}

/// Whether a node gives one value and does nothing else.
fn is_repeatable(graph: &Graph, id: NodeId) -> bool {
    let op = &graph.node(id).op;
    !op.is_tuple() && !matches!(op, Op::Result(_) | Op::Opaque(_) | Op::Call(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    const LAYERS: usize = 9;
    const SQUARE: &str = "tensor<64x64xf32>";

    /// The loss of so many layers `x = tanh(x w)` and the gradients of their weights.
    fn training() -> Graph {
        use std::fmt::Write as _;
        let dot =
            |contract: &str| format!("contracting_dims = {contract} : ({SQUARE}, {SQUARE}) -> {SQUARE}");
        let arguments: Vec<String> = (0..LAYERS).map(|at| format!("%w{at}: {SQUARE}")).collect();
        let gradients: Vec<String> = (0..LAYERS).map(|at| format!("%d{at}")).collect();
        let mut text = format!(
            "func.func @main(%x0: {SQUARE}, {}) -> (tensor<f32>, {}) {{
                %zero = stablehlo.constant dense<0.0> : tensor<f32>
                %ones = stablehlo.constant dense<1.0> : {SQUARE}\n",
            arguments.join(", "),
            [SQUARE; LAYERS].join(", "),
        );
        for at in 0..LAYERS {
            writeln!(text, "%z{at} = stablehlo.dot_general %x{at}, %w{at}, {}", dot("[1] x [0]")).unwrap();
            writeln!(text, "%x{} = stablehlo.tanh %z{at} : {SQUARE}", at + 1).unwrap();
        }
        let sum = "applies stablehlo.add across dimensions = [0, 1]";
        writeln!(
            text,
            "%loss = stablehlo.reduce(%x{LAYERS} init: %zero) {sum} : ({SQUARE}, tensor<f32>) -> tensor<f32>"
        )
        .unwrap();
        writeln!(text, "%g{LAYERS} = stablehlo.add %ones, %ones : {SQUARE}").unwrap();
        for at in (0..LAYERS).rev() {
            let after = at + 1;
            writeln!(text, "%q{at} = stablehlo.multiply %x{after}, %x{after} : {SQUARE}").unwrap();
            writeln!(text, "%s{at} = stablehlo.subtract %ones, %q{at} : {SQUARE}").unwrap();
            writeln!(text, "%h{at} = stablehlo.multiply %g{after}, %s{at} : {SQUARE}").unwrap();
            writeln!(text, "%d{at} = stablehlo.dot_general %x{at}, %h{at}, {}", dot("[0] x [0]")).unwrap();
            writeln!(text, "%g{at} = stablehlo.dot_general %h{at}, %w{at}, {}", dot("[1] x [1]")).unwrap();
        }
        let results = [SQUARE; LAYERS].join(", ");
        writeln!(text, "return %loss, {} : tensor<f32>, {results}\n}}", gradients.join(", ")).unwrap();
        graph(&text).pruned()
    }

    fn dots(graph: &Graph) -> usize {
        graph.nodes.iter().filter(|node| matches!(node.op, Op::Dot(_))).count()
    }

    /// The bytes that wait for the backward pass.
    fn waiting(graph: &Graph) -> usize {
        let forward = Forward::of(graph).unwrap();
        forward.waiting(0..forward.loss + 1)
    }

    #[test]
    fn the_backward_pass_keeps_what_lies_between_segments_and_computes_the_rest_again() {
        let before = training();
        let (products, kept) = (dots(&before), waiting(&before));
        assert_eq!(products, LAYERS + 2 * LAYERS - 1);
        let after = keep_between_segments(before);
        assert!(waiting(&after) * 2 <= kept, "{} of {kept} bytes wait", waiting(&after));
        // No layer is computed more than once again, and those behind the last cut are not.
        assert!(dots(&after) > products && dots(&after) < products + LAYERS, "{}", dots(&after));
        // What is computed again follows the gradient that comes into its segment.
        let loss = after.outputs[0].index();
        let again = after.ids().filter(|id| id.index() > loss).find(|&id| {
            let is_forward = |input: &NodeId| matches!(after.node(*input).op, Op::Argument(at) if at > 0);
            matches!(&after.node(id).op, Op::Dot(dot) if dot.lhs_contract == [1] && dot.rhs_contract == [0])
                && after.node(id).inputs.iter().any(is_forward)
        });
        let gradients = |id: &NodeId| matches!(&after.node(*id).op, Op::Dot(dot) if dot.rhs_contract == [1]);
        let first = after.ids().find(gradients).unwrap();
        assert!(again.unwrap() > first);
    }

    #[test]
    fn a_program_without_gradients_stays_as_it_is() {
        let text = format!(
            "func.func @main(%x: {SQUARE}) -> tensor<f32> {{
                %zero = stablehlo.constant dense<0.0> : tensor<f32>
                %y = stablehlo.tanh %x : {SQUARE}
                %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] : ({SQUARE}, tensor<f32>) -> tensor<f32>
                return %s : tensor<f32>
            }}"
        );
        let before = graph(&text);
        let count = before.nodes.len();
        assert_eq!(keep_between_segments(before).nodes.len(), count);
    }
}
