//! Comparing two runs, metric by metric.
