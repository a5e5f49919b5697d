//! Indices and places: which element of a value stands where, as expressions.

use warpforge_fusion::View;

use crate::text::Text;

/// A domain with neighbouring dimensions made one where all views allow it.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    /// The sizes; none is 1.
    pub(crate) dims: Vec<usize>,
    /// For each view given, its strides.
    pub(crate) strides: Vec<Vec<isize>>,
}

impl Space {
    /// These dimensions of a domain, seen by views over the whole domain.
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

    /// Lines that take a number apart into `{prefix}0`, `{prefix}1`, …, the last dimension the fastest.
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

    /// The distance that the indices `{prefix}0`, … move a view.
    pub(crate) fn place(&self, view: usize, prefix: &str) -> String {
        place(&self.strides[view], prefix)
    }

    /// How a view moves along the last dimension; nothing where there is no dimension.
    pub(crate) fn inner(&self, view: usize) -> Option<isize> {
        self.strides[view].last().copied()
    }

    /// Whether so many neighbours along the last dimension lie side by side in a view, aligned together.
    pub(crate) fn vectors(&self, view: usize, count: usize) -> bool {
        let count = count as isize;
        match self.strides[view].split_last() {
            Some((&1, outer)) => outer.iter().all(|stride| stride % count == 0),
            _ => false,
        }
    }
}

/// Σ index · stride; the empty sum is 0.
pub(crate) fn place(strides: &[isize], prefix: &str) -> String {
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

/// A sum of expressions without its zeros.
pub(crate) fn sum<S: AsRef<str>>(terms: &[S]) -> String {
    let terms: Vec<&str> = terms.iter().map(AsRef::as_ref).filter(|term| *term != "0").collect();
    if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") }
}

/// The integer type for numbers up to a bound.
pub(crate) fn int(most: usize) -> &'static str {
    if most < (1 << 31) { "int" } else { "long long" }
}

/// The farthest that any of these views reaches.
pub(crate) fn reach(views: &[&View]) -> usize {
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
