//! What `--dry-run` shows.

use std::fmt::Write as _;

use warpforge_bench::selection::Selection;

/// What would run.
pub(super) fn text(selection: &Selection, rounds: u32, duration: Option<f64>) -> String {
    let mut out = String::new();
    for chosen in &selection.chosen {
        let spec = &chosen.spec;
        let seconds = duration.or(spec.default_duration_seconds.map(f64::from));
        let how_long = match seconds {
            Some(seconds) => format!("{seconds} s in {rounds} rounds"),
            None => format!("{rounds} rounds"),
        };
        let _ = writeln!(out, "{:<24} {how_long}", spec.id.to_string());
        for (name, value) in spec.params.iter().flatten() {
            let _ = writeln!(out, "    {name} = {value}");
        }
        for peer in &chosen.peers {
            let _ = writeln!(out, "    beside {}", peer.name());
        }
    }
    out
}
