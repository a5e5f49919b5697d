//! From the logits of all windows to an answer for each question.

use super::{Example, Feature};

/// A span of a text in characters, with its score.
type Span = (f64, (usize, usize));

/// The best span of all windows of each question, as a part of its text; empty where none is allowed.
pub(super) fn best(
    examples: &[Example],
    features: &[Feature],
    starts: &[Vec<f32>],
    ends: &[Vec<f32>],
    n_best: usize,
    max_length: usize,
) -> Vec<String> {
    let mut best: Vec<Option<Span>> = vec![None; examples.len()];
    for ((feature, starts), ends) in features.iter().zip(starts).zip(ends) {
        let (first, last) = (largest(starts, n_best), largest(ends, n_best));
        for &start in &first {
            for &end in &last {
                let (Some(from), Some(to)) = (feature.context_span(start), feature.context_span(end)) else {
                    continue;
                };
                if end < start || end - start >= max_length {
                    continue;
                }
                let score = f64::from(starts[start]) + f64::from(ends[end]);
                let known = &mut best[feature.example];
                if known.is_none_or(|(other, _)| score > other) {
                    *known = Some((score, (from.0, to.1)));
                }
            }
        }
    }
    let text = |(example, span): (&Example, Option<Span>)| match span {
        Some((_, (from, to))) => example.context.chars().skip(from).take(to.saturating_sub(from)).collect(),
        None => String::new(),
    };
    examples.iter().zip(best).map(text).collect()
}

/// The positions of the largest values, the largest first; of equal ones the first.
fn largest(values: &[f32], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    order.truncate(count);
    order
}
