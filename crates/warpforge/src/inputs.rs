//! The inputs of a run, by name.

use std::collections::BTreeMap;

use warpforge_tensor::Tensor;

/// Tensors by name. What is given without names is `arg0`, `arg1`, … in order.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    tensors: BTreeMap<String, Tensor>,
}

impl Inputs {
    /// No inputs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an input, or replaces the one of that name.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) {
        self.tensors.insert(name.into(), tensor);
    }

    /// The input of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// The inputs, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }
}

impl From<BTreeMap<String, Tensor>> for Inputs {
    fn from(tensors: BTreeMap<String, Tensor>) -> Self {
        Self { tensors }
    }
}

impl<N: Into<String>> FromIterator<(N, Tensor)> for Inputs {
    fn from_iter<I: IntoIterator<Item = (N, Tensor)>>(named: I) -> Self {
        Self { tensors: named.into_iter().map(|(name, tensor)| (name.into(), tensor)).collect() }
    }
}

impl<N: Into<String>, const COUNT: usize> From<[(N, Tensor); COUNT]> for Inputs {
    fn from(named: [(N, Tensor); COUNT]) -> Self {
        named.into_iter().collect()
    }
}

impl From<Vec<Tensor>> for Inputs {
    fn from(tensors: Vec<Tensor>) -> Self {
        tensors.into_iter().enumerate().map(|(index, tensor)| (format!("arg{index}"), tensor)).collect()
    }
}

impl<const COUNT: usize> From<[Tensor; COUNT]> for Inputs {
    fn from(tensors: [Tensor; COUNT]) -> Self {
        Vec::from(tensors).into()
    }
}
