//! Figures that follow the clock of the processor, which other guests of a host take away: compared at one pace of the machine.

use std::collections::BTreeMap;

use super::table::{Contest, Row};

/// Two paces are one if they are no further apart than this part.
const NEAR: f64 = 0.04;

/// Turns are added, up to so many times those asked for, until each figure has a pace that both sides were at.
const PATIENCE: usize = 2;

/// A figure, and the pace that the machine was at: GFLOP/s of a loop in registers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) value: f64,
    pub(super) pace: f64,
}

/// Named figures of one side.
pub(super) type Samples = BTreeMap<String, Sample>;

impl Contest<'_, Samples> {
    /// Runs both sides in turn, so often or until each figure was measured at one pace by both. A figure that never was is not compared.
    pub(super) fn hold_at_one_pace(&self, times: usize) -> anyhow::Result<Vec<Row>> {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for turn in 1..=times * PATIENCE {
            eprintln!("{} and {}: {turn} of {times} or more", self.name, self.peer);
            self.turn(&mut theirs, &mut ours)?;
            if turn >= times && theirs[0].keys().all(|label| compared(&theirs, &ours, label).is_some()) {
                break;
            }
        }
        Ok(theirs[0].keys().map(|label| self.row(label, compared(&theirs, &ours, label))).collect())
    }
}

/// The largest figure of each side at the fastest pace that both were at: a limit is what others have taken nothing away from.
fn compared(theirs: &[Samples], ours: &[Samples], label: &str) -> Option<(f64, f64)> {
    let of =
        |side: &[Samples]| -> Vec<Sample> { side.iter().filter_map(|run| run.get(label).copied()).collect() };
    let (theirs, ours) = (of(theirs), of(ours));
    let is_near = |sample: &Sample, pace: f64| (sample.pace / pace - 1.0).abs() <= NEAR;
    let shared = theirs.iter().filter(|sample| ours.iter().any(|own| is_near(own, sample.pace)));
    let pace = shared.map(|sample| sample.pace).max_by(f64::total_cmp)?;
    let largest = |side: &[Sample]| {
        let near = side.iter().filter(|sample| is_near(sample, pace));
        near.map(|sample| sample.value).max_by(f64::total_cmp)
    };
    Some((largest(&theirs)?, largest(&ours)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::table::{Bound, markdown};

    fn run(value: f64, pace: f64) -> Samples {
        Samples::from([("L1 read".to_owned(), Sample { value, pace })])
    }

    #[test]
    fn only_runs_at_one_pace_are_compared() {
        let theirs = [run(410.0, 300.0), run(350.0, 220.0)];
        let ours = [run(346.0, 222.0), run(352.0, 223.0)];
        assert_eq!(compared(&theirs, &ours, "L1 read"), Some((350.0, 352.0)));
        assert_eq!(compared(&theirs[..1], &ours, "L1 read"), None);
    }

    #[test]
    fn turns_are_added_until_both_sides_had_one_pace() {
        let turn = std::cell::Cell::new(0.0);
        let theirs = || Ok(run(410.0, 300.0));
        let ours = || {
            turn.set(turn.get() + 1.0);
            Ok(if turn.get() < 2.0 { run(350.0, 220.0) } else { run(400.0, 298.0) })
        };
        let (name, peer, unit, bound) = ("calibrate", "likwid-bench", "GB/s", Bound::Within(0.1));
        let contest = Contest { name, peer, unit, bound, theirs: &theirs, ours: &ours };
        let (text, holds) = markdown(&contest.hold_at_one_pace(1).unwrap());
        assert!(holds && text.contains("| 410.0 | 400.0 |"), "{text}");
        let never = Contest { ours: &|| Ok(run(350.0, 220.0)), ..contest };
        let (text, holds) = markdown(&never.hold_at_one_pace(1).unwrap());
        assert!(!holds && text.contains("| – | – | – | ± 10 % | **not compared** |"), "{text}");
    }
}
