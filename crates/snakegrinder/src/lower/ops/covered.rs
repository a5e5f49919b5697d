//! Every entry of the tables has a case with PyTorch's own result, or a reason why it cannot have one.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Op, all};

/// Entries without a case, and why.
const WITHOUT: &[(&str, &str)] = &[
    (
        "torch.sym_sqrt",
        "archives of torch 2.15 call it torch._sym_sqrt, which has the same lowering and a case",
    ),
    (
        "torchvision.nms.default",
        "PyTorch's result has as many elements as boxes are kept, ours as many as there are boxes: python/tests has cases",
    ),
];

/// The operations that the files below a folder have cases for.
fn cases(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the cases are in the tree") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            cases(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "jsonl") {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            for line in text.lines() {
                let case: serde_json::Value = serde_json::from_str(line).expect("a graph");
                found.insert(case["op"].as_str().expect("it names its operation").to_owned());
            }
        }
    }
}

#[test]
fn every_lowering_has_a_case() {
    let mut tested = BTreeSet::new();
    cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aten/cases"), &mut tested);
    let higher_order = super::higher_order::TABLE.iter().map(|op| op.name);
    let listed: BTreeSet<&str> = all().flat_map(Op::names).chain(higher_order).collect();
    let excused: BTreeSet<&str> = WITHOUT.iter().map(|(name, _)| *name).collect();
    let missing: Vec<&&str> =
        listed.iter().filter(|name| !tested.contains(**name) && !excused.contains(**name)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}: see docs/adding-a-lowering.md");
    let stale: Vec<&&str> =
        excused.iter().filter(|name| tested.contains(**name) || !listed.contains(**name)).collect();
    assert!(stale.is_empty(), "an excuse that is not needed: {stale:?}");
    let unknown: Vec<&String> = tested.iter().filter(|name| !listed.contains(name.as_str())).collect();
    assert!(unknown.is_empty(), "cases of operations that no table has: {unknown:?}");
}
