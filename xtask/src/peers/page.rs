//! The parts of the documentation that figures replace.

use std::path::Path;

use anyhow::Context as _;

const END: &str = "<!-- end of figures -->";

/// Puts the figures of a task, such as `peers micro`, into their place on a page.
pub(super) fn update(path: &Path, task: &str, figures: &str) -> anyhow::Result<()> {
    let page = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let replaced = replace(&page, task, figures).with_context(|| path.display().to_string())?;
    std::fs::write(path, replaced).with_context(|| path.display().to_string())?;
    eprintln!("figures written to {}", path.display());
    Ok(())
}

fn replace(page: &str, task: &str, figures: &str) -> anyhow::Result<String> {
    let (before, _, after) = parts(page, task)?;
    Ok(format!("{before}\n\n{}\n\n{END}{after}", figures.trim()))
}

/// The page up to the figures of a task, the figures, and what comes after them.
fn parts<'a>(page: &'a str, task: &str) -> anyhow::Result<(&'a str, &'a str, &'a str)> {
    let begin = format!("<!-- figures of `cargo xtask {task}` -->");
    let at = page.find(&begin).with_context(|| format!("there is no place for the figures of {task}"))?;
    let (before, rest) = page.split_at(at + begin.len());
    let (figures, after) = rest.split_once(END).context("the place for the figures has no end")?;
    Ok((before, figures, after))
}

/// A new table of a task with the rows of the page's that it has no new figures of. Rows are known by their first two
/// cells.
pub(super) fn merged(path: &Path, task: &str, table: &str) -> anyhow::Result<String> {
    let page = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let (_, old, _) = parts(&page, task).with_context(|| path.display().to_string())?;
    Ok(merge(old, table))
}

fn merge(old: &str, new: &str) -> String {
    let key = |row: &str| row.splitn(4, '|').take(3).map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| ---");
    let fresh: Vec<_> = new.lines().filter(is_row).map(key).collect();
    let kept = old.lines().filter(is_row).filter(|row| !fresh.contains(&key(row)));
    new.lines().chain(kept).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_replace_only_their_part_of_the_page() {
        let begin = "<!-- figures of `cargo xtask peers micro` -->";
        let other = "<!-- figures of `cargo xtask peers cpu` -->";
        let page = format!("# Title\n{other}\nold\n{END}\n{begin}\nold\n{END}\nrest\n");
        let once = replace(&page, "peers micro", "new").unwrap();
        assert_eq!(once, format!("# Title\n{other}\nold\n{END}\n{begin}\n\nnew\n\n{END}\nrest\n"));
        assert_eq!(replace(&once, "peers micro", "new").unwrap(), once);
        assert!(replace("nothing", "peers micro", "new").is_err());
        assert!(replace(begin, "peers micro", "new").is_err());
    }

    #[test]
    fn rows_without_new_figures_stay() {
        let table = |rows: &str| format!("| benchmark | other | theirs |\n| --- | --- | ---: |\n{rows}");
        let old = table("| a | x | 1 |\n| b | x | 2 |\n| b | y | 3 |\n");
        let new = table("| b | x | 4 |\n");
        assert_eq!(merge(&old, &new), table("| b | x | 4 |\n| a | x | 1 |\n| b | y | 3 |\n"));
        assert_eq!(merge("none", &new), new);
    }
}
