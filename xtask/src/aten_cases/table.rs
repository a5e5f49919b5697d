//! Which operations each file of lowerings has, read from the tables in its source.
//!
//! The table itself is not part of the library's interface. A test of `snakegrinder` holds the cases against it, so an
//! entry that is written in a way that is not found here is noticed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;

/// The operations of each file below a folder, by the file's path without its ending; `mod` is the folder's own.
pub(super) fn families(folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let mut found = BTreeMap::new();
    visit(folder, "", &mut found)?;
    Ok(found)
}

fn visit(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Vec<String>>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        if path.is_dir() {
            visit(&path, &format!("{prefix}{name}/"), found)?;
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let family =
            if name == "mod" { prefix.trim_end_matches('/').to_owned() } else { format!("{prefix}{name}") };
        let names = entries(&text);
        if !names.is_empty() {
            found.insert(family, names);
        }
    }
    Ok(())
}

/// The names in `op("…", …)`, `view("…", …)` and `.also(&["…", …])`.
fn entries(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    for constructor in ["op(", "view("] {
        for (at, _) in source.match_indices(constructor) {
            let inside_a_word = source[..at]
                .ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == '.');
            let rest = source[at + constructor.len()..].trim_start();
            let name = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')).map(|(name, _)| name);
            if let Some(name) = name.filter(|name| !inside_a_word && name.contains('.')) {
                names.push(name.to_owned());
            }
        }
    }
    for (_, rest) in source.match_indices(".also(&[").map(|(at, text)| source.split_at(at + text.len())) {
        let list = rest.split_once(']').map_or("", |(list, _)| list);
        names.extend(list.split('"').skip(1).step_by(2).map(str::to_owned));
    }
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_table_are_found() {
        let source = r#"
            op("aten.add.Tensor", add).also(&["aten.add.Scalar"]),
            view("aten.t.default", |cx, args| drop("x.y")),
            op(
                "aten.mul.Tensor", mul,
            ).also(&[
                "aten.mul.Scalar",
                "aten.multiply.Tensor",
            ]),
            self.op("aten.no.entry"), stop("aten.none.either"), op(name, lower)
        "#;
        let expected = [
            "aten.add.Scalar",
            "aten.add.Tensor",
            "aten.mul.Scalar",
            "aten.mul.Tensor",
            "aten.multiply.Tensor",
            "aten.t.default",
        ];
        assert_eq!(entries(source), expected);
    }
}
