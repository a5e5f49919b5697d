//! `resnet50_train` with PyTorch, on a small model.

use libtest_mimic::Trial;
use serde_json::Value;

use crate::trial;
use crate::warpt::{Finished, Warpt, finished};

/// Why there is nothing to test with.
pub(crate) fn missing() -> Option<String> {
    crate::python::missing("torchvision").or_else(|| crate::python::missing("warpforge"))
}

pub(crate) fn trials() -> Vec<Trial> {
    let slow: [(&str, fn()); 1] =
        [("losses_of_training_steps_are_pytorchs", losses_of_training_steps_are_pytorchs)];
    slow.into_iter().filter(|_| crate::slow()).map(|(name, test)| trial(name, test)).collect()
}

/// Steps of a small ResNet on small images.
fn run(warpt: &Warpt, more: &[&str]) -> (Finished, Value) {
    let arguments = "benchmark run --benchmark resnet50_train --param model=resnet18 --param side=64 --param batch=4 \
                     --param graphs=graphs --duration 0.2 --rounds 1 --json";
    let arguments: Vec<&str> = arguments.split_whitespace().chain(more.iter().copied()).collect();
    let mut command = warpt.command(&arguments);
    let done = finished(command.env("WARPFORGE_PYTHON", crate::python::interpreter()).output().unwrap());
    let record: Value =
        serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stderr));
    (done, record["benchmarks"][0].clone())
}

fn losses_of_training_steps_are_pytorchs() {
    let warpt = Warpt::new();
    let (done, result) = run(&warpt, &["--beside", "torch"]);
    assert_eq!(done.code, 0, "{} {}", done.stderr, result["error_message"]);
    let metric = &result["metrics"][0];
    assert_eq!(metric["name"], "samples_per_second");
    assert!(metric["value"].as_f64().unwrap() > 0.0, "{metric}");
    let peer = &result["beside"][0];
    assert_eq!(
        (&peer["verdict"], &peer["ratios"][0]["name"]),
        (&"PASS".into(), &"samples_per_second".into())
    );

    // The graph is kept. Against other losses it fails, and has no rate.
    let mut graphs = std::fs::read_dir(warpt.path("graphs")).unwrap();
    let file = graphs.next().unwrap().unwrap().path().join("steps.json");
    let mut steps: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let losses: Vec<f64> = serde_json::from_value(steps["losses"].clone()).unwrap();
    assert!(losses.len() == 3 && losses[0] > 5.0, "{losses:?}");
    assert_eq!(steps["noise"].as_array().map(Vec::len), Some(3), "{steps}");
    steps["losses"] = losses.iter().map(|loss| loss * 1.01).collect();
    std::fs::write(&file, steps.to_string()).unwrap();
    let (done, result) = run(&warpt, &[]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(
        result["error_message"].as_str().unwrap().contains("wrong answer: the loss of step 1"),
        "{result}"
    );
    assert_eq!(result["metrics"].as_array().unwrap().len(), 0);
}
