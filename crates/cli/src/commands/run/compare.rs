//! `--compare`: what came of a run's operations beside the reference.

use warpforge_golden::op_by_op::{Compared, Difference};
use warpforge_report::{Align, Screen, Style, Table};

use crate::exit::Exit;

/// Operations that are shown: the first in order of execution.
const SHOWN: usize = 12;

/// What the comparison means for the program's exit code.
pub(super) fn exit(compared: Option<&Compared>) -> Exit {
    match compared {
        Some(compared) if compared.out_of_tolerance > 0 => Exit::CheckFailed,
        Some(Compared { operations: 0, .. }) => Exit::Inconclusive,
        _ => Exit::Pass,
    }
}

/// The comparison for people.
pub(super) fn text(compared: &Compared, screen: Screen) -> String {
    let Compared { operations, identical, out_of_tolerance, .. } = compared;
    let within = operations - identical - out_of_tolerance;
    let line = |text: String| screen.line(Style::Plain, 2, &text);
    let mut out = line(format!(
        "each operation beside the reference, on the operands that it had: {operations} compared, \
         {identical} identical, {within} within tolerance, {out_of_tolerance} out of it"
    ));
    if let Some(furthest) = &compared.furthest {
        out += &line(format!(
            "furthest within tolerance: {}{}, {:.1e} of its scale, {} ULP",
            furthest.op,
            place(furthest),
            furthest.of_scale,
            furthest.max_ulp
        ));
    }
    if !compared.differences.is_empty() {
        out.push('\n');
        out += &differences(&compared.differences).to_text(screen);
        if *out_of_tolerance > SHOWN {
            out += &line(format!("… {} more", out_of_tolerance - SHOWN));
        }
    }
    for reason in compared.not_compared.iter().take(SHOWN) {
        out += &line(format!("not compared: {reason}"));
    }
    if compared.not_compared.len() > SHOWN {
        out += &line(format!("not compared: {} more", compared.not_compared.len() - SHOWN));
    }
    out
}

fn place(found: &Difference) -> String {
    let node = found.node.as_ref().map_or_else(String::new, |node| format!(", node `{node}`"));
    let source = found.source.as_ref().map_or_else(String::new, |source| format!(", {source}"));
    format!(" {}{node}{source}", found.name)
}

fn differences(found: &[Difference]) -> Table {
    let mut table = Table::new(&[
        ("out of tolerance", Align::Left),
        ("value", Align::Left),
        ("node", Align::Left),
        ("source", Align::Left),
        ("differing", Align::Right),
        ("max abs", Align::Right),
        ("of scale", Align::Right),
        ("first", Align::Left),
    ]);
    for one in found.iter().take(SHOWN) {
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        table.row(
            Style::Bad,
            [
                one.op.clone(),
                one.name.clone(),
                known(&one.node),
                known(&one.source),
                format!("{} of {}", one.differing, one.elements),
                format!("{:.1e}", one.max_abs),
                format!("{:.1e}", one.of_scale),
                known(&one.problem),
            ],
        );
    }
    table
}
