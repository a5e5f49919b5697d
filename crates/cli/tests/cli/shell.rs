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
    let page = |name: &str| std::fs::read_to_string(warpt.path("pages").join(name)).unwrap();
    assert!(page("warpt-benchmark-run.1").contains("burnin"));
    for name in &pages {
        let page = page(name);
        for section in ["EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES"] {
            let heading = [format!(".SH \"{section}\"\n"), format!(".SH {section}\n")];
            let rest = heading.iter().find_map(|heading| page.split_once(heading.as_str()));
            assert!(rest.is_some_and(|(_, rest)| rest.starts_with(".TP")), "{name} lacks {section}: {page}");
        }
    }
}

#[test]
fn values_are_offered_and_listed() {
    let warpt = Warpt::new();
    let script = warpt.run(&["completions", "bash"]).stdout;
    for values in [
        "production observable correctness",
        "cpu cuda hip",
        "model tf32 bf16 f16",
        "cpu_flops",
        "gflops gops",
    ] {
        assert!(script.contains(values), "no {values} in the script");
    }
    for (arguments, expected) in [
        (&["run", "--help"][..], "production, observable, correctness"),
        (&["run", "--help"], "tf32"),
        (&["benchmark", "run", "--help"], "mem_latency"),
        (&["benchmark", "list", "--help"], "storage"),
    ] {
        let help = warpt.run(arguments).stdout;
        assert!(help.contains(expected), "no {expected} in {help}");
    }
    let wrong = warpt.run(&["run", "m.mlir", "--tier", "fast"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("`fast` is no tier"), "{}", wrong.stderr);
}

#[test]
fn a_malformed_configuration_costs_neither_help_nor_the_version() {
    let warpt = Warpt::new();
    std::fs::create_dir_all(warpt.path("config/warpt")).unwrap();
    std::fs::write(warpt.path("config/warpt/config.toml"), "[benchmark").unwrap();
    for arguments in [&["--version"][..], &["--help"], &["benchmark", "run", "--help"]] {
        let done = warpt.run(arguments);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{arguments:?}");
    }
    let done = warpt.run(&["benchmark", "list"]);
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    assert!(done.stderr.contains("config.toml") && done.stderr.contains("line 1"), "{}", done.stderr);
}

#[test]
fn an_unknown_command_is_bad_usage() {
    let done = Warpt::new().run(&["benchmrak"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("benchmark"), "{}", done.stderr);
}
