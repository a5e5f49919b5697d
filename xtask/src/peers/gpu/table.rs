//! What both sides took, and the table of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

/// What is known of one workload.
#[derive(Debug, Default)]
pub(super) struct Row {
    name: String,
    tier: String,
    judged: bool,
    near: f64,
    theirs: BTreeMap<String, Vec<f64>>,
    ours: Vec<f64>,
    launches: Option<u64>,
    bytes: Option<f64>,
    fallbacks: usize,
    distance: Option<f64>,
    /// The output that is so far.
    worst: Option<String>,
    problems: Vec<String>,
    notes: Vec<String>,
}

impl Row {
    pub(super) fn new(name: &str, tier: &str, judged: bool, near: f64) -> Self {
        Self { name: name.to_owned(), tier: tier.to_owned(), judged, near, ..Self::default() }
    }

    pub(super) fn theirs(&mut self, way: &str, milliseconds: Option<f64>) {
        self.theirs.entry(way.to_owned()).or_default().extend(milliseconds);
    }

    pub(super) fn ours(&mut self, record: &Value) {
        self.ours.extend(record["median_ms"].as_f64());
        self.launches = record["kernel_launches"].as_u64();
        self.bytes = record["bytes_moved"].as_f64();
        self.fallbacks = record["fallbacks"].as_array().map_or(0, Vec::len);
    }

    pub(super) fn ran(&self) -> bool {
        !self.ours.is_empty()
    }

    pub(super) fn distance(&mut self, distance: Option<f64>, worst: Option<&str>) {
        self.distance = distance;
        self.worst = worst.map(str::to_owned);
    }

    pub(super) fn problem(&mut self, what: String) {
        self.problems.push(what);
    }

    pub(super) fn note(&mut self, what: String) {
        self.notes.push(what);
    }

    /// The best of PyTorch's ways, and its time.
    fn best(&self) -> Option<(&str, f64)> {
        let times = self.theirs.iter().filter_map(|(way, times)| Some((way.as_str(), least(times)?)));
        times.min_by(|one, other| one.1.total_cmp(&other.1))
    }

    fn ratio(&self) -> Option<f64> {
        Some(self.best()?.1 / least(&self.ours)?)
    }

    /// What is wrong with our side, if anything is.
    pub(super) fn wrong(&self) -> Option<String> {
        let far = self.distance.filter(|&distance| distance.is_nan() || distance > self.near);
        let which = self.worst.as_deref().unwrap_or("outputs");
        let far =
            far.map(|distance| format!("{which}: {distance:.1e} from PyTorch's, {:.0e} allowed", self.near));
        let all: Vec<String> = self.problems.iter().cloned().chain(far).collect();
        (!all.is_empty()).then(|| format!("{} ({}): {}", self.name, self.tier, all.join("; ")))
    }

    /// What the host computed of ours, if anything.
    fn on_host(&self) -> String {
        if self.fallbacks == 0 { String::new() } else { format!(" + {} on the host", self.fallbacks) }
    }

    /// One line for people who wait.
    pub(super) fn line(&self) -> String {
        let ours = least(&self.ours).map_or("–".to_owned(), |time| format!("{time:.4} ms"));
        let best = self.best().map_or("–".to_owned(), |(way, time)| format!("{time:.4} ms ({way})"));
        let ratio = self.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.3}"));
        let mut line = format!("{} {}: PyTorch {best}, ours {ours}, ratio {ratio}", self.name, self.tier);
        if let Some(launches) = self.launches {
            line += &format!(", {launches} launches{}", self.on_host());
        }
        if let Some(distance) = self.distance {
            line += &format!(", distance {distance:.1e}");
        }
        // A run that is cut ends before the table: what is wrong is said here as well.
        for more in self.wrong().iter().chain(&self.notes) {
            line += &format!("\n  {more}");
        }
        line
    }
}

fn least(times: &[f64]) -> Option<f64> {
    times.iter().copied().min_by(f64::total_cmp)
}

/// The table, and what is made of it.
pub(super) fn figures(rows: &[Row], copy: Option<f64>) -> String {
    let mut text = String::from(
        "| workload | eager ms | compile ms | graphs ms | ours ms | ratio | launches | distance |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let time = |times: Option<f64>| times.map_or("–".to_owned(), |time| format!("{time:.4}"));
    for row in rows {
        let way = |way: &str| time(row.theirs.get(way).and_then(|times| least(times)));
        let tier = if row.tier == "production" { String::new() } else { format!(" ({})", row.tier) };
        let ratio = row.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.3}"));
        let launches = row.launches.map_or("–".to_owned(), |launches| launches.to_string());
        let host = row.on_host();
        let distance = row.distance.map_or("–".to_owned(), |distance| format!("{distance:.1e}"));
        let _ = writeln!(
            text,
            "| {}{tier} | {} | {} | {} | {} | {ratio} | {launches}{host} | {distance} |",
            row.name,
            way("eager"),
            way("compile"),
            way("graphs"),
            time(least(&row.ours)),
        );
    }
    let ratios: Vec<f64> = rows.iter().filter(|row| row.judged).filter_map(Row::ratio).collect();
    if !ratios.is_empty() {
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let _ = writeln!(text, "\nGeometric mean of {} ratios: {mean:.3}.", ratios.len());
    }
    if let Some((copy, share)) = copy.and_then(|copy| Some((copy, copy_share(rows, copy)?))) {
        let gigabytes = copy / 1e9;
        let _ = writeln!(
            text,
            "A copy moves {gigabytes:.0} GB/s; the elementwise chain reaches {share:.3} of that."
        );
    }
    if let Some(share) = observable_share(rows) {
        let _ = writeln!(text, "The observable tier's f32 product reaches {share:.3} of production's.");
    }
    text
}

/// What part of a copy's bandwidth the chain of elementwise operations reaches.
fn copy_share(rows: &[Row], copy: f64) -> Option<f64> {
    let chain = rows.iter().find(|row| row.name.starts_with("elementwise_chain"))?;
    Some(chain.bytes? / (least(&chain.ours)? / 1e3) / copy)
}

/// What part of production's speed the observable tier's product reaches.
fn observable_share(rows: &[Row]) -> Option<f64> {
    let of = |tier: &str| {
        let row = rows.iter().find(|row| row.name == "matmul_4096_f32" && row.tier == tier)?;
        least(&row.ours)
    };
    Some(of("production")? / of("observable")?)
}

/// Everything, for programs.
pub(super) fn json(rows: &[Row], copy: Option<f64>) -> Value {
    let row = |row: &Row| {
        json!({
            "workload": row.name, "tier": row.tier, "torch_ms": row.theirs, "ours_ms": row.ours, "ratio": row.ratio(),
            "kernel_launches": row.launches, "bytes_moved": row.bytes, "fallbacks": row.fallbacks,
            "distance": row.distance, "worst": row.worst, "problems": row.problems, "notes": row.notes,
        })
    };
    json!({ "copy_bytes_per_s": copy, "workloads": rows.iter().map(row).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_the_others_is_what_counts() {
        let mut row = Row::new("elementwise_chain", "production", true, 1e-3);
        row.theirs("eager", Some(4.0));
        row.theirs("compile", Some(2.0));
        row.theirs("compile", Some(1.5));
        row.ours(&json!({ "median_ms": 1.0, "kernel_launches": 3, "bytes_moved": 2e6, "fallbacks": [] }));
        assert_eq!(row.ratio(), Some(1.5));
        assert_eq!(copy_share(std::slice::from_ref(&row), 4e9), Some(0.5));
        assert_eq!(row.wrong(), None);
        row.distance(Some(1e-2), None);
        assert!(row.wrong().unwrap().contains("1.0e-2"));
        assert!(row.line().contains("1.0e-2 from PyTorch's, 1e-3 allowed"), "{}", row.line());
        assert!(row.line().contains("ratio 1.500, 3 launches, distance 1.0e-2"), "{}", row.line());
        row.distance(Some(f64::NAN), None);
        assert!(row.wrong().is_some());
        let text = figures(&[row], Some(4e9));
        assert!(text.contains("| 1.5000 |") && text.contains("0.500 of that"), "{text}");
    }
}
