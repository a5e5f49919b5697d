//! How weights of 4 bits lie in memory that PyTorch packed for the processor it ran on.
//!
//! The archive itself does not say; the Python package leaves the processor's instruction set in it.

use serde::Deserialize;

use crate::{Archive, Error};

/// Where the Python package says it.
const FILE: &str = "extra/warpforge_packing.json";
/// The newest form of that file that is understood.
const SCHEMA_VERSION: u64 = 1;

/// Rows of a block: a byte has a row of the block's first half in its low bits and the row that far behind it in its high bits. The
/// bytes of all halves' rows are side by side, those of the next index of the depth behind them. Rows that fill no block are packed in
/// pairs of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedRows(pub(crate) i64);

impl PackedRows {
    /// Those of AVX-512.
    pub(crate) const AVX512: Self = Self(64);
    /// Those of AVX2.
    pub(crate) const AVX2: Self = Self(32);
}

/// How the packed weights of an archive lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packing {
    /// Those packed for a CPU, where the archive says so.
    pub(crate) rows: Option<PackedRows>,
    /// Whether those packed for a GPU are in the layout of AMD's.
    pub(crate) on_hip: bool,
}

/// The file.
#[derive(Deserialize)]
struct Recorded {
    schema_version: u64,
    cpu_capability: String,
    /// `cuda` or `hip`; archives of older packages do not say.
    gpu: Option<String>,
}

impl Recorded {
    fn packing(&self) -> Packing {
        let rows = match self.cpu_capability.as_str() {
            "AVX512" => Some(PackedRows::AVX512),
            "AVX2" => Some(PackedRows::AVX2),
            _ => None,
        };
        Packing { rows, on_hip: self.gpu.as_deref() == Some("hip") }
    }
}

impl Archive {
    /// How packed weights lie in memory, where the archive says so.
    pub(crate) fn packing(&self) -> Result<Packing, Error> {
        if !self.has(FILE) {
            return Ok(Packing::default());
        }
        let recorded: Recorded = self.json(FILE)?;
        if recorded.schema_version > SCHEMA_VERSION {
            return Err(Error::Version {
                what: "record of packed weights",
                found: recorded.schema_version.to_string(),
                supported: SCHEMA_VERSION.to_string(),
            });
        }
        Ok(recorded.packing())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_say_how_weights_are_packed() {
        let read = |text: &str| serde_json::from_str::<Recorded>(text).unwrap().packing();
        let found = read(r#"{"schema_version": 1, "cpu_capability": "AVX2", "gpu": "hip"}"#);
        assert_eq!(found, Packing { rows: Some(PackedRows::AVX2), on_hip: true });
        let found = read(r#"{"schema_version": 1, "cpu_capability": "AVX512", "gpu": "cuda"}"#);
        assert_eq!(found, Packing { rows: Some(PackedRows::AVX512), on_hip: false });
        // What packages wrote before they said the kind of GPU.
        assert_eq!(read(r#"{"schema_version": 1, "cpu_capability": "DEFAULT"}"#), Packing::default());
    }
}
