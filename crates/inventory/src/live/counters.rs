//! Counters of devices that are read by name and turned into rates.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The counters of every device of a kind, by its name.
type Reader<C> = fn(&Path) -> BTreeMap<String, C>;

/// The usage of a device: its name, its counters now and before, which a new device does not have, and the seconds
/// between.
type Rates<C, U> = fn(&str, &C, Option<&C>, f64) -> U;

/// Turns the counters of devices into rates.
#[derive(Debug)]
pub(crate) struct CounterSampler<C, U> {
    root: PathBuf,
    read: Reader<C>,
    usage: Rates<C, U>,
    before: BTreeMap<String, C>,
}

impl<C, U> CounterSampler<C, U> {
    pub(crate) fn new(root: &Path, read: Reader<C>, usage: Rates<C, U>) -> Self {
        Self { root: root.to_owned(), read, usage, before: read(root) }
    }

    pub(crate) fn sample(&mut self, seconds: f64) -> Vec<U> {
        let now = (self.read)(&self.root);
        let usage = |(name, now): (&String, &C)| (self.usage)(name, now, self.before.get(name), seconds);
        let usages = now.iter().map(usage).collect();
        self.before = now;
        usages
    }
}
