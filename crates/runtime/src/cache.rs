//! A bounded map that forgets what was not used for longest.

use std::collections::HashMap;
use std::hash::Hash;

/// Values by key, at most `capacity` of them.
pub(crate) struct Cache<K, V> {
    capacity: usize,
    clock: u64,
    entries: HashMap<K, (u64, V)>,
}

impl<K: Hash + Eq + Clone, V: Clone> Cache<K, V> {
    /// An empty cache.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, clock: 0, entries: HashMap::new() }
    }

    /// The value of a key.
    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        self.clock += 1;
        let (used, value) = self.entries.get_mut(key)?;
        *used = self.clock;
        Some(value.clone())
    }

    /// Keeps a value; the one unused for longest goes when there is no room.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.clock += 1;
        if self.entries.len() >= self.capacity && !self.entries.contains_key(&key) {
            let oldest = self.entries.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.entries.remove(&oldest);
            }
        }
        self.entries.insert(key, (self.clock, value));
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_unused_for_longest_goes() {
        let mut cache = Cache::new(2);
        cache.insert('a', 1);
        cache.insert('b', 2);
        assert_eq!(cache.get(&'a'), Some(1));
        cache.insert('c', 3);
        assert_eq!((cache.get(&'a'), cache.get(&'b'), cache.get(&'c')), (Some(1), None, Some(3)));
        cache.insert('c', 4);
        assert_eq!((cache.len(), cache.get(&'c')), (2, Some(4)));
    }
}
