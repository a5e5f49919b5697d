//! The sequences that reads are mapped to, one behind the other.

/// Named sequences as one run of codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    names: Vec<String>,
    /// Where each sequence begins, and where the last one ends.
    bounds: Vec<usize>,
    bases: Vec<u8>,
}

/// Why sequences cannot be a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// There are none, or only empty ones.
    #[error("the reference has no bases")]
    Empty,
    /// Two sequences have one name.
    #[error("the reference has two sequences named `{0}`")]
    DuplicateName(String),
    /// Positions would not fit into 31 bits.
    #[error("the reference has {0} bases; at most 2^31 - 1 are supported")]
    TooLong(usize),
}

impl Reference {
    /// A reference of these sequences.
    ///
    /// # Errors
    /// If there is no base, two have one name, or they are longer than positions can say.
    pub fn new(sequences: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Self, ReferenceError> {
        let mut reference = Self { names: Vec::new(), bounds: vec![0], bases: Vec::new() };
        let mut seen = std::collections::HashSet::new();
        for (name, bases) in sequences {
            if !seen.insert(name.clone()) {
                return Err(ReferenceError::DuplicateName(name));
            }
            reference.bases.extend_from_slice(&bases);
            reference.bounds.push(reference.bases.len());
            reference.names.push(name);
        }
        match reference.bases.len() {
            0 => Err(ReferenceError::Empty),
            length if length >= 1 << 31 => Err(ReferenceError::TooLong(length)),
            _ => Ok(reference),
        }
    }

    /// All bases, one sequence behind the other.
    #[must_use]
    pub fn bases(&self) -> &[u8] {
        &self.bases
    }

    /// The names of the sequences.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The bases of one sequence.
    #[must_use]
    pub fn sequence(&self, contig: usize) -> &[u8] {
        &self.bases[self.span(contig)]
    }

    /// Where a sequence lies among all bases.
    #[must_use]
    pub fn span(&self, contig: usize) -> std::ops::Range<usize> {
        self.bounds[contig]..self.bounds[contig + 1]
    }

    /// The sequence that a place among all bases is in.
    #[must_use]
    #[inline]
    pub fn contig_of(&self, place: usize) -> usize {
        if self.names.len() == 1 {
            return 0;
        }
        self.bounds.partition_point(|&start| start <= place).saturating_sub(1).min(self.names.len() - 1)
    }
}
