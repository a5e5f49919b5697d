//! What the machine is doing right now, sampled.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One record of a monitoring timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimelineRecord {
    /// When the sample was taken.
    pub timestamp: Timestamp,
}
