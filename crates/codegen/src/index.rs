//! Index expressions.

use warpforge_fusion::View;

use crate::text::Text;

/// A domain with adjacent dimensions merged where all views allow it.
#[derive(Debug, Clone)]
pub(crate) struct IndexSpace {
    /// The sizes, none of them 1.
    pub(crate) dims: Vec<usize>,
    /// The strides of each view.
    pub(crate) strides: Vec<Vec<isize>>,
}

impl IndexSpace {
    /// These dimensions of a domain, with the strides of views over the whole domain.
    pub(crate) fn new(dims: &[usize], kept: &[usize], views: &[&View]) -> Self {
        let mut space = Self { dims: Vec::new(), strides: vec![Vec::new(); views.len()] };
        for &at in kept.iter().filter(|&&at| dims[at] != 1) {
            let size = dims[at] as isize;
            let joins = !space.dims.is_empty()
                && space
                    .strides
                    .iter()
                    .zip(views)
                    .all(|(known, view)| known.last() == Some(&(view.strides[at] * size)));
            if joins && let Some(last) = space.dims.last_mut() {
                *last *= dims[at];
            } else {
                space.dims.push(dims[at]);
            }
            for (known, view) in space.strides.iter_mut().zip(views) {
                if joins {
                    known.pop();
                }
                known.push(view.strides[at]);
            }
        }
        space
    }

    /// The number of indices.
    pub(crate) fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Emits the split of a linear index into `{prefix}0`, `{prefix}1`, …, last dimension fastest.
    pub(crate) fn split(&self, text: &mut Text, number: &str, prefix: &str, int: &str) {
        let mut rest = number.to_owned();
        for (at, dim) in self.dims.iter().enumerate().rev() {
            if at == 0 {
                text.line(format!("const {int} {prefix}0 = {rest};"));
            } else {
                text.line(format!("const {int} {prefix}{at} = {rest} % {dim};"));
                let next = format!("{prefix}{at}_");
                text.line(format!("const {int} {next} = {rest} / {dim};"));
                rest = next;
            }
        }
    }

    /// The linear index of a view at `{prefix}0`, ….
    pub(crate) fn linear_index(&self, view: usize, prefix: &str) -> String {
        linear_index(&self.strides[view], prefix)
    }

    /// The stride of a view along the last dimension; none without dimensions.
    pub(crate) fn inner(&self, view: usize) -> Option<isize> {
        self.strides[view].last().copied()
    }

    /// Whether groups of `count` elements along the last dimension are contiguous and aligned in a view.
    pub(crate) fn vectors(&self, view: usize, count: usize) -> bool {
        let count = count as isize;
        match self.strides[view].split_last() {
            Some((&1, outer)) => outer.iter().all(|stride| stride % count == 0),
            _ => false,
        }
    }
}

/// Σ index · stride; the empty sum is 0.
pub(crate) fn linear_index(strides: &[isize], prefix: &str) -> String {
    let terms: Vec<String> = strides
        .iter()
        .enumerate()
        .filter(|&(_, &stride)| stride != 0)
        .map(
            |(at, &stride)| {
                if stride == 1 { format!("{prefix}{at}") } else { format!("{prefix}{at} * {stride}") }
            },
        )
        .collect();
    if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") }
}

/// A sum of expressions without zero terms.
pub(crate) fn sum<S: AsRef<str>>(terms: &[S]) -> String {
    let terms: Vec<&str> = terms.iter().map(AsRef::as_ref).filter(|term| *term != "0").collect();
    if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") }
}

/// The integer type for indices up to a bound.
pub(crate) fn index_type(most: usize) -> &'static str {
    if most < (1 << 31) { "int" } else { "long long" }
}

/// The largest index that any of these views reaches.
pub(crate) fn max_index(views: &[&View]) -> usize {
    let of = |view: &View| {
        let far: usize = view
            .dims
            .iter()
            .zip(&view.strides)
            .map(|(&dim, &stride)| dim.saturating_sub(1) * stride.unsigned_abs())
            .sum();
        far + view.offset.unsigned_abs() + view.len()
    };
    views.iter().map(|view| of(view)).max().unwrap_or(0)
}
