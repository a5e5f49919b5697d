//! `warpt run --compare`: op-by-op comparison with the reference.

use serde_json::{Value, json};

use crate::warpt::Warpt;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

#[test]
fn the_reference_beside_itself_is_the_same() {
    let warpt = Warpt::new();
    let (model, inputs) =
        (format!("{DATA}/encoder.pt2"), format!("{DATA}/encoder.golden/inputs.safetensors"));
    let done = warpt.run(&["run", &model, "--inputs", &inputs, "--json", "--compare"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let record: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(record["tier"], "correctness");
    let compared = &record["compared"];
    assert!(compared["operations"].as_u64() > Some(20), "{compared}");
    assert_eq!(compared["operations"], compared["identical"]);
    assert_eq!((&compared["out_of_tolerance"], &compared["furthest"]), (&json!(0), &Value::Null));
    assert_eq!(compared["not_compared"], json!([]));
    let done = warpt.run(&["run", &model, "--inputs", &inputs, "--compare", "--tier", "production"]);
    assert_eq!((done.code, done.stdout.as_str()), (3, ""));
    assert!(done.stderr.contains("cannot observe values"), "{}", done.stderr);
}
