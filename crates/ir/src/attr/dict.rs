//! Named attributes, sorted by name.

use std::borrow::Cow;
use std::sync::Arc;

use super::Attribute;

/// The name of an attribute: those of the op table are static.
pub type AttrName = Cow<'static, str>;

/// Attributes by name, sorted and without duplicates. Cheap to clone; a change copies a shared one.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Dict {
    entries: Option<Arc<Vec<(AttrName, Attribute)>>>,
}

impl Dict {
    /// An empty dictionary.
    pub fn new() -> Self {
        Self::default()
    }

    /// All entries in order.
    pub fn entries(&self) -> &[(AttrName, Attribute)] {
        self.entries.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The attribute of a name.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        let entries = self.entries();
        let at = entries.binary_search_by(|(entry, _)| entry.as_ref().cmp(name)).ok()?;
        entries.get(at).map(|(_, value)| value)
    }

    /// Sets an attribute and returns the one it replaces.
    pub fn set(&mut self, name: impl Into<AttrName>, value: Attribute) -> Option<Attribute> {
        let name = name.into();
        let entries = Arc::make_mut(self.entries.get_or_insert_default());
        match entries.binary_search_by(|(entry, _)| entry.cmp(&name)) {
            Ok(at) => Some(std::mem::replace(&mut entries[at].1, value)),
            Err(at) => {
                entries.insert(at, (name, value));
                None
            }
        }
    }

    /// Removes an attribute and returns it.
    pub fn remove(&mut self, name: &str) -> Option<Attribute> {
        let entries = Arc::make_mut(self.entries.as_mut()?);
        let at = entries.binary_search_by(|(entry, _)| entry.as_ref().cmp(name)).ok()?;
        Some(entries.remove(at).1)
    }

    /// The numbers of operands or results in each group, as an attribute of this name says.
    pub fn segment_sizes(&self, name: &str) -> Option<Vec<usize>> {
        match self.get(name)? {
            Attribute::DenseArray(_, sizes) => {
                sizes.iter().map(|size| usize::try_from(size.as_i64()?).ok()).collect()
            }
            Attribute::I64s(sizes) => sizes.iter().map(|size| usize::try_from(*size).ok()).collect(),
            _ => None,
        }
    }

    /// How many attributes there are.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }
}

impl<N: Into<AttrName>> FromIterator<(N, Attribute)> for Dict {
    fn from_iter<I: IntoIterator<Item = (N, Attribute)>>(items: I) -> Self {
        let mut dict = Dict::new();
        for (name, value) in items {
            dict.set(name, value);
        }
        dict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_sorted_and_unique() {
        let mut dict = Dict::new();
        assert!(dict.set("b", Attribute::i64(1)).is_none());
        assert!(dict.set("a", Attribute::Unit).is_none());
        assert_eq!(dict.set("b", Attribute::i64(2)), Some(Attribute::i64(1)));
        let names: Vec<&str> = dict.entries().iter().map(|(name, _)| name.as_ref()).collect();
        assert_eq!(names, ["a", "b"]);
        let copy = dict.clone();
        assert_eq!(dict.remove("a"), Some(Attribute::Unit));
        assert_eq!(copy.len(), 2, "a copy keeps what the original drops");
        assert_eq!(dict.get("a"), None);
    }
}
