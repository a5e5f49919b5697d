//! What `--monitor` saw, in a few lines, and where the whole of it is.

use std::path::Path;

use warpforge_inventory::live::TimelineRecord;
use warpforge_report::{Screen, Style, timeline};

/// The summary of a timeline. It is in a file, or in the record of the history.
pub(super) fn text(
    records: &[TimelineRecord],
    file: Option<&Path>,
    kept: Option<&str>,
    screen: Screen,
) -> String {
    let place = match (file, kept) {
        (Some(file), _) => format!("written to {}", file.display()),
        (None, Some(id)) => format!("in `warpt benchmark history show {id} --json`"),
        (None, None) => "not kept; --monitor-output FILE writes it to a file".to_owned(),
    };
    let samples =
        if records.len() == 1 { "1 sample".to_owned() } else { format!("{} samples", records.len()) };
    let heading = screen.line(Style::Plain, 2, &format!("timeline: {samples}, {place}"));
    let indented = |line: &str| format!("  {line}\n");
    let table: String = timeline::table(records).to_text(screen.indented(2)).lines().map(indented).collect();
    format!("\n{heading}{table}")
}
