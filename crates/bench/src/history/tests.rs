use super::*;
use crate::record::{BenchmarkId, BenchmarkKind, BenchmarkMetric, BenchmarkRunResult, SCHEMA_VERSION, Tags};

fn run(id: &str, time: &str, value: f64) -> BenchmarkSuiteRun {
    let metric = BenchmarkMetric {
        name: "gflops".to_owned(),
        value,
        unit: "GFLOP/s".to_owned(),
        higher_is_better: true,
        tags: Some(Tags::from([
            ("dtype".to_owned(), "f32".to_owned()),
            ("threads".to_owned(), "1".to_owned()),
        ])),
        statistics: None,
    };
    let result = BenchmarkRunResult {
        spec: BenchmarkId::new("micro", "cpu_flops").spec(BenchmarkKind::Synthetic),
        metrics: vec![metric],
        success: true,
        error_message: None,
        start_time: time.parse().unwrap(),
        end_time: time.parse().unwrap(),
        system: None,
        verdict: None,
        conditions: None,
        warnings: vec![],
        beside: vec![],
    };
    BenchmarkSuiteRun {
        schema_version: SCHEMA_VERSION,
        run_id: id.to_owned(),
        tool_version: "0.1.0".to_owned(),
        suite: "micro".to_owned(),
        components: vec![],
        benchmarks: vec![result],
        metadata: None,
        timeline: vec![],
    }
}

fn history() -> (tempfile::TempDir, History) {
    let folder = tempfile::tempdir().unwrap();
    let mut history = History::open(&folder.path().join("deep/er/history.sqlite")).unwrap();
    // A whole second and a fraction of one: the text must sort as the times do.
    history.save(&run("20260102-aaaa", "2026-01-02T00:00:00.5Z", 2.0)).unwrap();
    history.save(&run("20260102-bbbb", "2026-01-02T00:00:00Z", 1.0)).unwrap();
    history.save(&run("20260103-aaaa", "2026-01-03T00:00:00Z", 3.0)).unwrap();
    (folder, history)
}

#[test]
fn runs_come_back_whole_by_id_by_prefix_and_by_age() {
    let (_folder, history) = history();
    let expected = run("20260103-aaaa", "2026-01-03T00:00:00Z", 3.0);
    for id in ["20260103-aaaa", "20260103", "latest", "latest~0"] {
        assert_eq!(history.load(id).unwrap(), expected, "{id}");
    }
    assert_eq!(history.load("latest~1").unwrap().run_id, "20260102-aaaa");
    assert!(matches!(history.load("20260102"), Err(HistoryError::Ambiguous { .. })));
    for id in ["2027", "latest~3", "latest~x", "latestx", "%", "2026010_-aaaa"] {
        assert!(matches!(history.load(id), Err(HistoryError::NoSuchRun { .. })), "{id}");
    }
}

#[test]
fn saving_a_run_again_replaces_it() {
    let (_folder, mut history) = history();
    history.save(&run("20260103-aaaa", "2026-01-03T00:00:00Z", 4.0)).unwrap();
    assert_eq!(history.list(10).unwrap().len(), 3);
    let trend = history.trend("cpu_flops", ("gflops", "dtype=f32,threads=1"), 10).unwrap();
    assert_eq!(trend.iter().map(|point| point.value).collect::<Vec<_>>(), [1.0, 2.0, 4.0]);
    let newest = history.trend("cpu_flops", ("gflops", "dtype=f32,threads=1"), 1).unwrap();
    assert_eq!(newest[0].run_id, "20260103-aaaa");
}

#[test]
fn the_list_is_newest_first_and_names_what_ran() {
    let (_folder, history) = history();
    let entries = history.list(2).unwrap();
    assert_eq!(
        entries.iter().map(|e| e.run_id.as_str()).collect::<Vec<_>>(),
        ["20260103-aaaa", "20260102-aaaa"]
    );
    assert_eq!(entries[0].benchmarks, ["cpu_flops"]);
    assert_eq!(entries[0].suites, ["micro"]);
    assert_eq!(entries[0].metric_count, 1);
    let names = history.metric_names("cpu_flops").unwrap();
    assert_eq!(names, [("gflops".to_owned(), "dtype=f32,threads=1".to_owned())]);
}

#[test]
fn a_history_of_a_newer_version_is_refused_and_left_as_it_is() {
    let (folder, history) = history();
    let path = folder.path().join("deep/er/history.sqlite");
    history.connection.pragma_update(None, "user_version", 99).unwrap();
    drop(history);
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(History::open(&path), Err(HistoryError::TooNew { found: 99, .. })));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_file_that_is_no_history_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.sqlite");
    std::fs::write(
        &path,
        "my shopping list, which is rather longer than SQLite's header of a hundred bytes. ".repeat(9),
    )
    .unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(History::open(&path), Err(HistoryError::Unusable { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn processes_that_open_a_new_history_at_once_do_not_get_in_each_others_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.sqlite");
    let keep = |number: usize| {
        for _ in 0..10 {
            let mut history = History::open(&path).unwrap();
            history.save(&run(&format!("run-{number}"), "2026-01-03T00:00:00Z", 1.0)).unwrap();
            assert!(!history.list(10).unwrap().is_empty());
        }
    };
    std::thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || keep(number));
        }
    });
    assert_eq!(History::open(&path).unwrap().list(10).unwrap().len(), 4);
}
