//! The outputs of a run, by name and in order.

use std::ops::Index;
use std::path::Path;

use warpforge_runtime::ClusterValues;
use warpforge_tensor::Tensor;
use warpforge_tensor::io::{carrier, safetensors};

use crate::Result;
use crate::profile::Profile;

/// Tensors by name, in the order of the model's results.
#[derive(Debug, Clone, Default)]
pub struct Outputs {
    named: Vec<(String, Tensor)>,
    profile: Profile,
    clusters: Vec<ClusterValues>,
}

impl Outputs {
    pub(crate) fn new(named: Vec<(String, Tensor)>, profile: Profile, clusters: Vec<ClusterValues>) -> Self {
        Self { named, profile, clusters }
    }

    /// The output of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, tensor)| tensor)
    }

    /// The outputs in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        self.named.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.named.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// What happened when, where [`RunOptions::profile`](crate::RunOptions::profile) asked for it.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// What each cluster gave, where [`RunOptions::clusters`](crate::RunOptions::clusters) asked for it.
    #[must_use]
    pub fn clusters(&self) -> &[ClusterValues] {
        &self.clusters
    }

    /// Writes all of them to a `safetensors` file. Element types that such files do not have are carried by another, as
    /// [`carrier`] says.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let stored: Vec<(&str, Tensor)> = self
            .iter()
            .map(|(name, tensor)| Ok((name, carrier::to_carrier(tensor)?)))
            .collect::<Result<_>>()?;
        safetensors::write(path.as_ref(), stored.iter().map(|(name, tensor)| (*name, tensor)))?;
        Ok(())
    }
}

impl Index<&str> for Outputs {
    type Output = Tensor;

    /// # Panics
    ///
    /// When there is no output of that name, as with a map.
    fn index(&self, name: &str) -> &Tensor {
        self.get(name).unwrap_or_else(|| {
            let known: Vec<&str> = self.iter().map(|(name, _)| name).collect();
            panic!("no output is named `{name}`; there are {known:?}")
        })
    }
}
