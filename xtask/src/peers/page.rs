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
    let begin = format!("<!-- figures of `cargo xtask {task}` -->");
    let (before, rest) =
        page.split_once(&begin).with_context(|| format!("there is no place for the figures of {task}"))?;
    let (_, after) = rest.split_once(END).context("the place for the figures has no end")?;
    Ok(format!("{before}{begin}\n\n{}\n\n{END}{after}", figures.trim()))
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
}
