//! What other programs did in turn with a benchmark.

use warpforge_bench::record::{BenchmarkRunResult, PeerRatio, PeerResult, Verdict};

use super::{interval, label};
use crate::number::{significant, with_unit};
use crate::table::{Align, Style, Table};

/// A row for each metric that a benchmark and a peer of it both have; a peer without any has a row that says why.
pub(super) fn table<'r>(results: impl Iterator<Item = &'r BenchmarkRunResult>) -> Option<Table> {
    let mut table = Table::new(&[
        ("beside", Align::Left),
        ("metric", Align::Left),
        ("theirs", Align::Right),
        ("times better", Align::Right),
        ("95 % interval", Align::Right),
        ("verdict", Align::Left),
    ]);
    let mut any = false;
    for peer in results.flat_map(|result| &result.beside) {
        any = true;
        let name = match &peer.version {
            Some(version) => format!("{} {version}", peer.peer),
            None => peer.peer.clone(),
        };
        let reason = peer.error_message.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let mut verdict = format!("{}{reason}", peer.verdict);
        for metric in &peer.metrics {
            let ratio = ratio_of(peer, &metric.name, metric.tags.as_ref());
            let (times, range) = ratio.map(figures).unwrap_or_default();
            let theirs = with_unit(metric.value, &metric.unit);
            table.row(
                style(peer.verdict),
                [name.clone(), label(metric), theirs, times, range, std::mem::take(&mut verdict)],
            );
        }
        if peer.metrics.is_empty() {
            let empty = String::new;
            table.row(style(peer.verdict), [name, empty(), empty(), empty(), empty(), verdict]);
        }
    }
    any.then_some(table)
}

/// The ratio that a metric of a peer went into: it has all of the metric's tags.
fn ratio_of<'p>(
    peer: &'p PeerResult,
    name: &str,
    tags: Option<&warpforge_bench::record::Tags>,
) -> Option<&'p PeerRatio> {
    peer.ratios.iter().find(|ratio| {
        let has = |(name, value)| ratio.tags.as_ref().and_then(|all| all.get(name)) == Some(value);
        ratio.name == name && tags.into_iter().flatten().all(has)
    })
}

fn figures(ratio: &PeerRatio) -> (String, String) {
    let range =
        ratio.ci_low.zip(ratio.ci_high).map_or_else(|| "?".to_owned(), |(low, high)| interval(low, high));
    (significant(ratio.ratio, 3), range)
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Pass => Style::Plain,
        Verdict::Fail => Style::Bad,
        Verdict::Skipped | Verdict::Inconclusive => Style::Faint,
    }
}
