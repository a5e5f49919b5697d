//! The StableHLO project's own files, where they are beside the repository.

use libtest_mimic::Trial;
use serde_json::Value;

use crate::trial;
use crate::warpt::Warpt;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance");

/// Why there is nothing to test with.
pub(crate) fn missing() -> Option<String> {
    (!std::path::Path::new(FOLDER).is_dir()).then(|| format!("there are no conformance files in {FOLDER}"))
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("the_published_cases_pass", the_published_cases_pass)]
}

fn the_published_cases_pass() {
    let report = Warpt::new().json(&["conformance", FOLDER, "--json"]);
    assert_eq!((&report["failed"], &report["skipped"]), (&Value::from(0), &Value::from(0)));
    assert!(report["passed"].as_u64() >= Some(1692));
}
