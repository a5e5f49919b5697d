//! What could not be lowered, all of it.

use std::fmt;

use crate::graph::Source;

/// The operations that could not be lowered exactly.
#[derive(Debug, Default)]
pub struct Report {
    entries: Vec<Entry>,
}

/// One operation with one reason, and the nodes it was found at.
#[derive(Debug)]
struct Entry {
    target: String,
    reason: String,
    nodes: Vec<(String, Option<Source>)>,
}

impl Report {
    pub(super) fn add(&mut self, target: &str, reason: &str, node: &str, source: Option<Source>) {
        let found = self.entries.iter_mut().find(|entry| entry.target == target && entry.reason == reason);
        match found {
            Some(entry) => entry.nodes.push((node.to_owned(), source)),
            None => self.entries.push(Entry {
                target: target.to_owned(),
                reason: reason.to_owned(),
                nodes: vec![(node.to_owned(), source)],
            }),
        }
    }

    /// Whether everything could be lowered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many nodes could not be lowered.
    pub fn node_count(&self) -> usize {
        self.entries.iter().map(|entry| entry.nodes.len()).sum()
    }

    /// The names of the operations that could not be lowered, each once.
    pub fn targets(&self) -> Vec<&str> {
        let mut targets: Vec<&str> = self.entries.iter().map(|entry| entry.target.as_str()).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nodes, kinds) = (self.node_count(), self.targets().len());
        write!(f, "{nodes} node(s) of {kinds} operation(s) cannot be lowered exactly; nothing was written")?;
        for entry in &self.entries {
            write!(f, "\n  {} ({}x): {}", entry.target, entry.nodes.len(), entry.reason)?;
            for (name, source) in &entry.nodes {
                write!(f, "\n    {name}")?;
                if let Some(source) = source {
                    write!(f, " at {}:{}", source.file, source.line)?;
                    if let Some(code) = &source.code {
                        write!(f, ": {code}")?;
                    }
                }
            }
        }
        Ok(())
    }
}
