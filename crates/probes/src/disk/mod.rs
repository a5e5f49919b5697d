//! Disks: direct reads and writes at a given queue depth.
