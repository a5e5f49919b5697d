//! Figures of both sides, alternated, and the table of their ratios.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Context as _;
use warpforge_measure::stats;

/// Named figures of one side.
pub(super) type Figures = BTreeMap<String, f64>;

/// What a ratio must be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bound {
    /// At least this.
    AtLeast(f64),
    /// No further from 1 than this.
    Within(f64),
}

impl Bound {
    fn holds(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(least) => ratio >= least,
            Self::Within(share) => (1.0 / (1.0 + share)..=1.0 + share).contains(&ratio),
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(least) => format!("≥ {least:.2}"),
            Self::Within(share) => format!("± {:.0} %", share * 100.0),
        }
    }
}

/// One line of the table.
#[derive(Debug)]
pub(super) struct Row {
    name: String,
    peer: String,
    unit: &'static str,
    /// Theirs and ours, where they could be compared.
    figures: Option<(f64, f64)>,
    bound: Bound,
}

/// What counts of several turns.
#[derive(Debug, Clone, Copy)]
pub(super) enum Statistic {
    Median,
    /// For limits: other guests of a host only take away from them.
    Largest,
}

impl Statistic {
    fn of(self, runs: &[Figures], label: &str) -> Option<f64> {
        let values = runs.iter().map(|run| run.get(label).copied()).collect::<Option<Vec<_>>>()?;
        match self {
            Self::Median => stats::median(&values),
            Self::Largest => values.into_iter().max_by(f64::total_cmp),
        }
    }
}

/// One benchmark of ours beside one tool. A run of a side gives figures, or samples of them at a pace.
pub(super) struct Contest<'a, F = Figures> {
    pub(super) name: &'a str,
    pub(super) peer: &'a str,
    pub(super) unit: &'static str,
    pub(super) bound: Bound,
    pub(super) theirs: &'a dyn Fn() -> anyhow::Result<F>,
    pub(super) ours: &'a dyn Fn() -> anyhow::Result<F>,
}

impl<F> Contest<'_, F> {
    /// A run of each side.
    pub(super) fn turn(&self, theirs: &mut Vec<F>, ours: &mut Vec<F>) -> anyhow::Result<()> {
        theirs.push((self.theirs)().with_context(|| self.peer.to_owned())?);
        ours.push((self.ours)().with_context(|| self.name.to_owned())?);
        Ok(())
    }

    /// The line of a figure: of theirs and ours, or of none that can be compared.
    pub(super) fn row(&self, label: &str, figures: Option<(f64, f64)>) -> Row {
        let (name, peer) = (format!("{} {label}", self.name), self.peer.to_owned());
        Row { name, peer, unit: self.unit, figures, bound: self.bound }
    }
}

impl Contest<'_> {
    /// Runs both sides in turn, so often, and compares the medians of each figure.
    pub(super) fn hold(&self, times: usize) -> anyhow::Result<Vec<Row>> {
        self.hold_by(Statistic::Median, times)
    }

    /// Runs both sides in turn, so often, and compares what counts of each figure.
    pub(super) fn hold_by(&self, statistic: Statistic, times: usize) -> anyhow::Result<Vec<Row>> {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for turn in 1..=times {
            eprintln!("{} and {}: {turn} of {times}", self.name, self.peer);
            self.turn(&mut theirs, &mut ours)?;
        }
        let of = |side: &[Figures], name: &str, label: &str| {
            statistic.of(side, label).with_context(|| format!("{name} gave no {label}"))
        };
        let labels = theirs[0].keys();
        labels
            .map(|label| {
                Ok(self.row(label, Some((of(&theirs, self.peer, label)?, of(&ours, self.name, label)?))))
            })
            .collect()
    }
}

/// The table as Markdown, and whether every bound holds.
pub(super) fn markdown(rows: &[Row]) -> (String, bool) {
    let mut out = "| benchmark | other tool | unit | theirs | ours | ratio | must | holds |\n".to_owned();
    out += "| --- | --- | --- | ---: | ---: | ---: | --- | --- |\n";
    let mut all = true;
    for row in rows {
        let Row { name, peer, unit, figures, bound } = row;
        let holds = figures.is_some_and(|(theirs, ours)| bound.holds(ours / theirs));
        all &= holds;
        let (compared, verdict) = match figures {
            Some((theirs, ours)) => {
                let verdict = if holds { "yes" } else { "**no**" };
                (format!("{} | {} | {:.2}", figure(*theirs), figure(*ours), ours / theirs), verdict)
            }
            None => ("– | – | –".to_owned(), "**not compared**"),
        };
        let _ = writeln!(out, "| {name} | {peer} | {unit} | {compared} | {} | {verdict} |", bound.text());
    }
    (out, all)
}

/// A number with four digits that count.
fn figure(value: f64) -> String {
    let digits = (3 - value.abs().log10().floor() as i64).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_medians_and_bounds_are_judged() {
        let theirs = || Ok(Figures::from([("triad".to_owned(), 20.0)]));
        let count = std::cell::Cell::new(0.0);
        let ours = || {
            count.set(count.get() + 1.0);
            Ok(Figures::from([("triad".to_owned(), 16.0 + count.get())]))
        };
        let mut contest = Contest {
            name: "mem_bandwidth",
            peer: "STREAM",
            unit: "GB/s",
            bound: Bound::Within(0.1),
            theirs: &theirs,
            ours: &ours,
        };
        let (text, holds) = markdown(&contest.hold(3).unwrap());
        assert!(
            text.contains("| mem_bandwidth triad | STREAM | GB/s | 20.00 | 18.00 | 0.90 | ± 10 % | **no** |"),
            "{text}"
        );
        assert!(!holds);
        count.set(0.0);
        assert!(markdown(&contest.hold_by(Statistic::Largest, 3).unwrap()).1, "19 of 20");
        contest.bound = Bound::AtLeast(0.9);
        count.set(0.0);
        assert!(markdown(&contest.hold(3).unwrap()).1);
        assert!(contest.hold(1).is_ok());
        contest.ours = &|| Ok(Figures::new());
        assert!(format!("{:#}", contest.hold(1).unwrap_err()).contains("mem_bandwidth gave no triad"));
    }
}
