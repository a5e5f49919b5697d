//! Where PyTorch keeps a tensor's elements, as far as it decides whether two tensors share memory.

use super::cx::Cx;
use crate::graph::schema::{SymInt, TensorMeta};

impl Cx<'_> {
    /// The recorded sizes and strides as numbers: dynamic ones have the values they had when the model was traced.
    pub(crate) fn recorded_layout(&self, meta: &TensorMeta) -> Option<(Vec<i64>, Vec<i64>)> {
        let number = |size: &SymInt| match size {
            SymInt::Int(value) => Some(*value),
            SymInt::Expr(expr) => {
                let known = self.symbols.size(size).ok().and_then(|size| size.as_int());
                known.or_else(|| expr.hinted())
            }
        };
        let sizes = meta.sizes.iter().map(number).collect::<Option<Vec<_>>>()?;
        let strides = meta.strides.iter().map(number).collect::<Option<Vec<_>>>()?;
        (sizes.len() == strides.len()).then_some((sizes, strides))
    }
}

/// Whether elements lie in row-major order without gaps.
pub(crate) fn is_contiguous(sizes: &[i64], strides: &[i64]) -> bool {
    let mut expected = 1i64;
    sizes.contains(&0)
        || sizes.iter().zip(strides).rev().all(|(&size, &stride)| {
            let fits = size == 1 || stride == expected;
            expected = expected.saturating_mul(size);
            fits
        })
}

/// Whether another shape can be a view of the same memory: each group of dimensions that is regrouped must lie without
/// gaps.
pub(crate) fn can_view(sizes: &[i64], strides: &[i64], new: &[i64]) -> bool {
    if sizes.contains(&0) || sizes.is_empty() {
        return true;
    }
    let mut at = new.len();
    let mut chunk_base = *strides.last().unwrap_or(&1);
    let mut chunk_size = 1i64;
    let mut view_size = 1i64;
    for axis in (0..sizes.len()).rev() {
        chunk_size = chunk_size.saturating_mul(sizes[axis]);
        let ends =
            axis == 0 || (sizes[axis - 1] != 1 && strides[axis - 1] != chunk_size.saturating_mul(chunk_base));
        if !ends {
            continue;
        }
        while at > 0 && (view_size < chunk_size || new[at - 1] == 1) {
            view_size = view_size.saturating_mul(new[at - 1]);
            at -= 1;
        }
        if view_size != chunk_size {
            return false;
        }
        if axis > 0 {
            chunk_base = strides[axis - 1];
            chunk_size = 1;
            view_size = 1;
        }
    }
    at == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regrouping_needs_memory_without_gaps() {
        assert!(is_contiguous(&[2, 3], &[3, 1]));
        assert!(is_contiguous(&[2, 1, 3], &[3, 7, 1]));
        assert!(!is_contiguous(&[2, 3], &[1, 2]));
        assert!(can_view(&[2, 3, 4], &[12, 4, 1], &[6, 4]));
        assert!(can_view(&[2, 3, 4], &[12, 4, 1], &[24]));
        assert!(!can_view(&[3, 2], &[1, 3], &[6]), "a transposed matrix cannot be flattened");
        assert!(can_view(&[3, 2, 4], &[4, 12, 1], &[3, 2, 2, 2]), "its last dimension can be split");
        assert!(can_view(&[], &[], &[1, 1]));
    }
}
