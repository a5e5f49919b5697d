//! `align_pairs` beside parasail and edlib.

use super::{Stage, find, number};
use crate::peers::table::{Bound, Contest, Figures, Row};

/// Lengths and divergences in per cent.
const SHAPES: [(&str, &str); 3] = [("150", "5"), ("1000", "10"), ("5000", "15")];

/// GCUPS of each mode; the scores of both sides are compared by the gate of ours and the check of theirs.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (length, divergence) in SHAPES {
        let own = [("length", length), ("divergence_percent", divergence)];
        let (folder, _) = stage.export("align_pairs", &own)?;
        let pairs = folder.join("pairs.fa").display().to_string();
        let threads = stage.threads.to_string();
        for (peer, modes) in [("parasail", &["global", "local"][..]), ("edlib", &["edit"])] {
            let label = |mode: &str| format!("{mode} {length} bases {divergence} %");
            let theirs = || {
                let found = stage.python("bio_align.py", &[peer, &pairs, &threads])?;
                modes.iter().map(|mode| Ok((label(mode), number(&found, mode)?))).collect()
            };
            let ours = || {
                let metrics = stage.measure("align_pairs", &own)?;
                let rate = |mode: &&str| Ok((label(mode), find(&metrics, "gcups", &[("mode", mode)])?));
                modes.iter().map(rate).collect::<anyhow::Result<Figures>>()
            };
            let contest = Contest {
                name: "align_pairs",
                peer,
                unit: "GCUPS",
                bound: Bound::AtLeast(1.0),
                theirs: &theirs,
                ours: &ours,
            };
            rows.extend(contest.hold(stage.alternations)?);
        }
    }
    Ok(rows)
}
