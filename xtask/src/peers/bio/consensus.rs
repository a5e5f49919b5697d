//! `consensus_poa` beside spoa.

use super::{Stage, find, number};
use crate::peers::table::{Bound, Contest, Figures, Row};

/// Windows per second, and the identity of the consensus with the truth.
pub(super) fn hold(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let (folder, metrics) = stage.export("consensus_poa", &[])?;
    let folder = folder.display().to_string();
    let threads = stage.threads.to_string();
    let label = "500 bases, 30 reads".to_owned();
    let theirs = || {
        let found = stage.python("bio_consensus.py", &[&folder, &threads])?;
        Ok(Figures::from([(label.clone(), number(&found, "windows_per_second")?)]))
    };
    let ours = || stage.figure(&label, "consensus_poa", &[], "windows_per_second");
    let contest = Contest {
        name: "consensus_poa",
        peer: "spoa",
        unit: "windows/s",
        bound: Bound::AtLeast(1.0),
        theirs: &theirs,
        ours: &ours,
    };
    let mut rows = contest.hold(stage.alternations)?;
    let identity = || {
        let found = stage.python("bio_consensus.py", &[&folder, &threads])?;
        Ok(Figures::from([("identity".to_owned(), number(&found, "identity")?)]))
    };
    let own = || Ok(Figures::from([("identity".to_owned(), find(&metrics, "identity", &[])?)]));
    let contest = Contest {
        name: "consensus_poa",
        peer: "spoa",
        unit: "share",
        bound: Bound::AtLeast(1.0),
        theirs: &identity,
        ours: &own,
    };
    rows.extend(contest.hold(1)?);
    Ok(rows)
}
