//! `align_pairs`: scores of many pairs of sequences, global, local and edit distance.

use std::time::Duration;

use warpforge_bio::align::{self, Mode, Pair, Scoring, cells, edit_distances, instruction_set, scores};
use warpforge_bio::formats::{read_nucleotides, write_fasta};
use warpforge_bio::simulate::{self, Random};

use super::workload::{Common, bad_data, bad_export, bad_value, measure, report_memory, spec, timed, within};
use crate::benchmark::{Benchmark, BenchmarkError, MetricKey, RunContext, text};
use crate::record::{BenchmarkSpec, ParamValue, Params};

/// Cells of plain dynamic programming that the gate may take: about a second.
const GATE_CELLS: u64 = 400_000_000;

/// The benchmark.
#[derive(Debug)]
pub(super) struct AlignPairs;

/// The modes by their names.
const MODES: [&str; 3] = ["global", "local", "edit"];

/// The longest generated sequences.
const LONGEST: i64 = 100_000;

/// Two sequences, as codes.
type OwnedPair = (Vec<u8>, Vec<u8>);

struct Settings {
    common: Common,
    modes: Vec<&'static str>,
    length: usize,
    divergence: f64,
}

impl Settings {
    fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let wanted = text(params, "modes");
        let mut modes = Vec::new();
        for name in wanted.split(',').map(str::trim) {
            match MODES.iter().find(|known| **known == name) {
                Some(mode) if !modes.contains(mode) => modes.push(*mode),
                Some(_) => {}
                None => return Err(bad_value("modes", &wanted, "it takes a list of global, local, edit")),
            }
        }
        let length = within(params, "length", 1, LONGEST)?;
        let percent = within(params, "divergence_percent", 0, 100)?;
        Ok(Self { common: Common::from(params)?, modes, length, divergence: percent as f64 / 100.0 })
    }

    /// The pairs: consecutive records of a file, or places of a genome and their mutated copies.
    fn pairs(&self) -> Result<Vec<OwnedPair>, BenchmarkError> {
        if let Some(path) = &self.common.data {
            let records = read_nucleotides(path).map_err(bad_data)?;
            let pairs = records.chunks_exact(2).map(|two| (two[0].codes.clone(), two[1].codes.clone()));
            return Ok(pairs.collect());
        }
        let bases: usize = self.common.size.pick(6_000_000, 30_000_000, 300_000_000);
        let count = (bases / self.length / 2).clamp(16, 1_000_000);
        let genome = simulate::genome(2_000_000.max(2 * self.length), self.common.seed);
        let mut random = Random::new(self.common.seed);
        let pair = |_| {
            let start = random.below(genome.len() - self.length + 1);
            let first = genome[start..start + self.length].to_vec();
            let second = simulate::mutate(&first, self.divergence, &mut random);
            (first, second)
        };
        Ok((0..count).map(pair).collect())
    }
}

impl Benchmark for AlignPairs {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Scores of pairs of DNA sequences: global and local with affine gaps (2, -4, 4 + 2n), and edit \
                           distance. `modes` is a list; `length` and `divergence_percent` shape generated pairs.";
        spec(
            "align_pairs",
            description,
            &[
                ("modes", ParamValue::Text("global,local,edit".to_owned())),
                ("length", ParamValue::Int(150)),
                ("divergence_percent", ParamValue::Int(5)),
            ],
        )
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        super::workload::takes(&[
            ("modes", format!("a list of {}", MODES.join(", "))),
            ("length", format!("1 to {LONGEST}")),
            ("divergence_percent", "0 to 100".to_owned()),
        ])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from(params).map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let settings = Settings::from(context.params())?;
        let owned = settings.pairs()?;
        if owned.is_empty() {
            return Err(BenchmarkError::BadInput("data: no pairs of sequences".to_owned()));
        }
        if let Some(folder) = &settings.common.export {
            let names: Vec<String> = (0..2 * owned.len()).map(|index| format!("s{index}")).collect();
            let sequences = owned.iter().flat_map(|(a, b)| [a.as_slice(), b.as_slice()]);
            let records = names.iter().map(String::as_str).zip(sequences);
            write_fasta(&folder.join("pairs.fa"), records).map_err(bad_export)?;
        }
        let pairs: Vec<Pair<'_>> = owned.iter().map(|(a, b)| (a.as_slice(), b.as_slice())).collect();
        context.plan(settings.modes.len());
        for mode in &settings.modes {
            context.begin(mode);
            run_mode(context, &settings, mode, &pairs, context.share())?;
        }
        report_memory(context, &settings.common)
    }
}

/// The score of each pair in a mode; an edit distance counts as its negative.
fn align(mode: &str, pairs: &[Pair<'_>], threads: usize) -> Vec<i32> {
    match mode {
        "global" => scores(pairs, Mode::Global, &Scoring::READS, threads),
        "local" => scores(pairs, Mode::Local, &Scoring::READS, threads),
        _ => edit_distances(pairs, threads).into_iter().map(|distance| -(distance as i32)).collect(),
    }
}

fn plain(mode: &str, (a, b): Pair<'_>) -> i32 {
    match mode {
        "global" => align::plain::global(a, b, &Scoring::READS),
        "local" => align::plain::local(a, b, &Scoring::READS),
        _ => -(align::plain::edit(a, b) as i32),
    }
}

fn run_mode(
    context: &mut RunContext<'_>,
    settings: &Settings,
    mode: &str,
    pairs: &[Pair<'_>],
    time: Duration,
) -> Result<(), BenchmarkError> {
    let common = &settings.common;
    let work = |stages: &mut _| Ok(timed(stages, "align", || align(mode, pairs, common.threads)));
    let (_, samples) = measure(context, work, |scores: &Vec<i32>| gate(mode, pairs, scores), time)?;
    let tagged = |key: MetricKey| {
        let key = key.tag("mode", mode).tag("instructions", instruction_set());
        if common.data.is_some() {
            return key;
        }
        key.tag("length", settings.length).tag("divergence", settings.divergence)
    };
    let giga_cells = cells(pairs) as f64 / 1e9;
    samples.report(context, common, tagged(MetricKey::more_is_better("gcups", "GCUPS")), giga_cells)?;
    let rate = tagged(MetricKey::more_is_better("pairs_per_second", "pairs/s"));
    context.record(common.tag(rate), samples.rates(pairs.len() as f64))
}

/// Every score, or as many as there is time for, evenly taken, is that of plain dynamic programming.
fn gate(mode: &str, pairs: &[Pair<'_>], scores: &[i32]) -> Result<(), BenchmarkError> {
    let step = cells(pairs).div_ceil(GATE_CELLS).max(1) as usize;
    for (index, (&pair, &score)) in pairs.iter().zip(scores).enumerate().step_by(step) {
        let right = plain(mode, pair);
        if score != right {
            return Err(BenchmarkError::Failed(format!(
                "wrong answer: pair {index} has the {mode} score {score}, plain dynamic programming gives {right}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_score_is_a_failure() {
        let pairs: Vec<Pair<'_>> = vec![(&[0, 1, 2, 3], &[0, 1, 3, 3]), (&[1; 9], &[1; 7])];
        for mode in MODES {
            let mut scores = align(mode, &pairs, 1);
            assert_eq!(gate(mode, &pairs, &scores), Ok(()));
            scores[1] += 1;
            let error = gate(mode, &pairs, &scores).unwrap_err();
            assert!(error.to_string().starts_with("wrong answer: pair 1"), "{error}");
        }
    }
}
