//! The part of the coverage page about PyTorch's Core ATen operations.

use std::path::PathBuf;

use anyhow::Context as _;
use warpforge_snakegrinder::lower::has_lowering;

use crate::command::root;

/// Those that are not imported, or only in part, and why.
const EXCEPTIONS: [(&str, &str); 5] = [
    ("aten.native_dropout.default", "where it drops nothing: with a probability of 0, or outside training"),
    ("aten.nonzero.default", "no: the shape of its result depends on the data"),
    ("aten.rand.default", "only where nothing uses it: StableHLO draws from another generator"),
    ("aten.randn.default", "only where nothing uses it: StableHLO draws from another generator"),
    ("aten.randperm.default", "only where nothing uses it: StableHLO draws from another generator"),
];

/// The names, as PyTorch lists them.
fn names() -> anyhow::Result<Vec<String>> {
    let path: PathBuf = root().join("crates/snakegrinder/tests/core_aten.txt");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(text.lines().filter(|line| !line.starts_with('#')).map(ToOwned::to_owned).collect())
}

/// The section of the page.
pub(crate) fn section() -> anyhow::Result<String> {
    let names = names()?;
    let exception = |name: &str| EXCEPTIONS.iter().find(|(known, _)| *known == name).map(|(_, why)| *why);
    let whole = names.iter().filter(|name| has_lowering(name) && exception(name).is_none()).count();
    let mut section = format!(
        "## Core ATen\n\nThe overloads that torch 2.15.0 tags as core, and whether `warpt import` lowers them: {whole} of {} \
        as a whole. Arguments that cannot be lowered exactly, such as masks whose count is not known, are refused.\n\n\
        | operation | imported |\n| --- | --- |\n",
        names.len()
    );
    for name in &names {
        let answer = exception(name).unwrap_or(if has_lowering(name) { "yes" } else { "no" });
        section += &format!("| `{name}` | {answer} |\n");
    }
    Ok(section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_core_operation_is_lowered_or_the_reason_is_known() {
        let names = names().unwrap();
        assert!(names.len() > 150, "{} names", names.len());
        let missing: Vec<&String> = names
            .iter()
            .filter(|name| !has_lowering(name) && !EXCEPTIONS.iter().any(|(known, _)| known == name))
            .collect();
        assert!(missing.is_empty(), "no lowering of {missing:?}");
        assert!(EXCEPTIONS.iter().all(|(known, _)| names.iter().any(|name| name == known)));
    }
}
