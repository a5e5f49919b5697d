//! Strided views: which element of a dense array stands at an index of some domain.

/// Where the elements of a domain lie in an array: position = offset + Σ index · stride.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct View {
    /// The position of the first element.
    pub offset: isize,
    /// The sizes of the domain.
    pub dims: Vec<usize>,
    /// The distance between neighbours along each dimension; 0 repeats an element.
    pub strides: Vec<isize>,
}

/// A change of the index: what layout operations do to a view.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LayoutOp {
    /// Dimension `i` of the result is dimension `permutation[i]`.
    Transpose(Vec<usize>),
    /// The same elements in row-major order in other dimensions.
    Reshape(Vec<usize>),
    /// Into these dimensions; dimension `i` becomes `map[i]`, the others repeat.
    Broadcast {
        /// The sizes of the result.
        dims: Vec<usize>,
        /// Where each dimension goes, ascending.
        map: Vec<usize>,
    },
    /// From `starts` on every `steps`-th element.
    Slice {
        /// The first index along each dimension.
        starts: Vec<usize>,
        /// The distance between the indices.
        steps: Vec<usize>,
        /// The sizes of the result.
        dims: Vec<usize>,
    },
    /// Backwards along these dimensions.
    Reverse(Vec<usize>),
}

impl View {
    /// A dense array in row-major order.
    #[must_use]
    pub fn dense(dims: &[usize]) -> Self {
        Self { offset: 0, dims: dims.to_vec(), strides: dense_strides(dims) }
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the elements lie one after the other in row-major order.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        let mut expected = 1;
        for (&dim, &stride) in self.dims.iter().zip(&self.strides).rev() {
            if dim != 1 && stride != expected {
                return false;
            }
            expected *= dim as isize;
        }
        self.offset == 0
    }

    /// The view after a change of the index, where strides can still describe it.
    #[must_use]
    pub fn after(&self, step: &LayoutOp) -> Option<Self> {
        Some(match step {
            LayoutOp::Transpose(permutation) => Self {
                offset: self.offset,
                dims: permutation.iter().map(|&at| self.dims[at]).collect(),
                strides: permutation.iter().map(|&at| self.strides[at]).collect(),
            },
            LayoutOp::Reshape(dims) => self.reshaped(dims)?,
            LayoutOp::Broadcast { dims, map } => {
                let mut strides = vec![0; dims.len()];
                for (&to, &stride) in map.iter().zip(&self.strides) {
                    strides[to] = stride;
                }
                Self { offset: self.offset, dims: dims.clone(), strides }
            }
            LayoutOp::Slice { starts, steps, dims } => {
                let moved: isize =
                    starts.iter().zip(&self.strides).map(|(&start, stride)| start as isize * stride).sum();
                let strides =
                    self.strides.iter().zip(steps).map(|(stride, &step)| stride * step as isize).collect();
                Self { offset: self.offset + moved, dims: dims.clone(), strides }
            }
            LayoutOp::Reverse(axes) => {
                let mut view = self.clone();
                for &axis in axes {
                    let last = view.dims[axis].saturating_sub(1) as isize;
                    view.offset += last * view.strides[axis];
                    view.strides[axis] = -view.strides[axis];
                }
                view
            }
        })
    }

    /// The view after several changes of the index.
    #[must_use]
    pub fn after_all<'s>(&self, steps: impl IntoIterator<Item = &'s LayoutOp>) -> Option<Self> {
        steps.into_iter().try_fold(self.clone(), |view, step| view.after(step))
    }

    fn reshaped(&self, dims: &[usize]) -> Option<Self> {
        if self.dims == dims {
            return Some(self.clone());
        }
        if self.is_empty() {
            return Some(Self { offset: self.offset, dims: dims.to_vec(), strides: vec![0; dims.len()] });
        }
        let old: Vec<(usize, isize)> =
            merged(self.dims.iter().copied().zip(self.strides.iter().copied()).filter(|&(dim, _)| dim != 1));
        let mut strides = vec![0; dims.len()];
        let mut pieces = old.into_iter().rev();
        let mut current: Option<(usize, isize)> = None;
        for (at, &dim) in dims.iter().enumerate().rev() {
            if dim == 1 {
                continue;
            }
            let (size, stride) = match current.take() {
                Some(piece) => piece,
                None => pieces.next()?,
            };
            if size % dim != 0 {
                return None;
            }
            strides[at] = stride;
            if size != dim {
                current = Some((size / dim, stride * dim as isize));
            }
        }
        (current.is_none() && pieces.next().is_none()).then(|| Self {
            offset: self.offset,
            dims: dims.to_vec(),
            strides,
        })
    }
}

/// The strides of a dense array in row-major order.
#[must_use]
pub fn dense_strides(dims: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; dims.len()];
    for at in (1..dims.len()).rev() {
        strides[at - 1] = strides[at] * dims[at] as isize;
    }
    strides
}

/// Dimensions with their strides, neighbours that lie one after the other made one.
pub fn merged(dims: impl IntoIterator<Item = (usize, isize)>) -> Vec<(usize, isize)> {
    let mut result: Vec<(usize, isize)> = Vec::new();
    for (dim, stride) in dims {
        match result.last_mut() {
            Some(last) if last.1 == stride * dim as isize => *last = (last.0 * dim, stride),
            _ => result.push((dim, stride)),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(view: &View) -> Vec<isize> {
        let mut all = vec![view.offset];
        for (&dim, &stride) in view.dims.iter().zip(&view.strides) {
            all = all.iter().flat_map(|at| (0..dim as isize).map(move |index| at + index * stride)).collect();
        }
        all
    }

    #[test]
    fn a_transposed_matrix_reads_down_the_columns() {
        let view = View::dense(&[2, 3]).after(&LayoutOp::Transpose(vec![1, 0])).unwrap();
        assert_eq!(positions(&view), [0, 3, 1, 4, 2, 5]);
        assert!(!view.is_dense());
        assert!(view.after(&LayoutOp::Reshape(vec![6])).is_none());
    }

    #[test]
    fn heads_split_from_rows_and_merge_again() {
        let heads = [LayoutOp::Reshape(vec![1, 4, 2, 3]), LayoutOp::Transpose(vec![0, 2, 1, 3])];
        let view = View::dense(&[4, 6]).after_all(&heads).unwrap();
        assert_eq!((view.dims.as_slice(), view.strides.as_slice()), (&[1, 2, 4, 3][..], &[0, 3, 6, 1][..]));
        let back = [LayoutOp::Transpose(vec![0, 2, 1, 3]), LayoutOp::Reshape(vec![4, 6])];
        assert!(view.after_all(&back).unwrap().is_dense());
    }

    #[test]
    fn repeated_elements_keep_their_place_when_reshaped() {
        let broadcast = LayoutOp::Broadcast { dims: vec![4, 6], map: vec![1] };
        let view = View::dense(&[6]).after(&broadcast).unwrap();
        let reshaped = view.after(&LayoutOp::Reshape(vec![2, 2, 3, 2])).unwrap();
        assert_eq!(positions(&reshaped), positions(&view));
        assert_eq!(reshaped.strides, [0, 0, 2, 1]);
    }

    #[test]
    fn slices_and_reversals_move_the_start() {
        let steps = [
            LayoutOp::Slice { starts: vec![1, 0], steps: vec![2, 1], dims: vec![2, 2] },
            LayoutOp::Reverse(vec![1]),
        ];
        let view = View::dense(&[4, 3]).after_all(&steps).unwrap();
        assert_eq!(positions(&view), [4, 3, 10, 9]);
    }
}
