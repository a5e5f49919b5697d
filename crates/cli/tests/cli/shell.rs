//! Completions, manual pages, help.

use crate::warpt::{Warpt, file_names};

#[test]
fn completions_and_manual_pages_cover_the_commands() {
    let warpt = Warpt::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = warpt.run(&["completions", shell]);
        assert_eq!(script.code, 0);
        assert!(script.stdout.contains("monitor-interval"), "{shell}");
    }
    assert_eq!(warpt.run(&["man", "pages"]).code, 0);
    let pages = file_names(&warpt.path("pages"));
    for page in ["warpt.1", "warpt-list.1", "warpt-monitor.1", "warpt-benchmark-run.1", "warpt-serve.1"] {
        assert!(pages.iter().any(|name| name == page), "{page} is not among {pages:?}");
    }
    let page = std::fs::read_to_string(warpt.path("pages/warpt-benchmark-run.1")).unwrap();
    assert!(page.contains("burnin"), "{page}");
}

#[test]
fn an_unknown_command_is_bad_usage() {
    let done = Warpt::new().run(&["benchmrak"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("benchmark"), "{}", done.stderr);
}
