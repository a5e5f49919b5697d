//! What `warpt opt --emit fusion` shows is what `warpt run` runs.

use serde_json::Value;

use crate::warpt::Warpt;

/// An encoder layer, as PyTorch exports it.
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images/encoder_layer.mlir");

fn json(warpt: &Warpt, file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(warpt.path(file)).unwrap()).unwrap()
}

/// A number that is written as such or as text.
fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn kernels_that_run_are_the_clusters_of_the_plan() {
    let warpt = Warpt::new();
    let mut plans = Vec::new();
    for precision in ["model", "bf16"] {
        for tier in ["production", "observable"] {
            let options = ["--device", "cpu", "--tier", tier, "--precision", precision];
            let opt = ["opt", MODEL, "--emit", "fusion", "-o", "plan.json"];
            let run = ["run", MODEL, "--seed", "1", "--profile", "trace.json"];
            for command in [opt.as_slice(), run.as_slice()] {
                let done = warpt.run(&[command, options.as_slice()].concat());
                assert_eq!(done.code, 0, "{}", done.stderr);
            }
            let (plan, trace) = (json(&warpt, "plan.json"), json(&warpt, "trace.json"));
            let planned: Vec<[u64; 2]> = plan["clusters"]
                .as_array()
                .unwrap()
                .iter()
                .map(|cluster| [number(&cluster["flops"]), number(&cluster["bytes"])])
                .collect();
            let kernels = trace["traceEvents"].as_array().unwrap().iter();
            let ran: Vec<[u64; 2]> = kernels
                .filter(|event| event["cat"] == "kernel")
                .map(|event| [number(&event["args"]["flop"]), number(&event["args"]["bytes"])])
                .collect();
            assert_eq!(planned, ran, "{precision} {tier}");
            plans.push(planned);
        }
    }
    assert_eq!(plans[0], plans[1], "both tiers run the same plan");
    assert_ne!(plans[0], plans[2], "bf16 has conversions");
}

#[test]
fn a_plan_is_shown_for_every_device_and_precision_without_the_device() {
    let warpt = Warpt::new();
    for device in ["cuda", "hip"] {
        for precision in ["model", "tf32", "bf16", "f16"] {
            let options = ["--device", device, "--precision", precision];
            let done = warpt.run(&[&["opt", MODEL, "--emit", "fusion"], options.as_slice()].concat());
            assert_eq!(done.code, 0, "{}", done.stderr);
            let narrow = done.stdout.contains("bf16>") || done.stdout.contains("f16>");
            assert_eq!(narrow, ["bf16", "f16"].contains(&precision), "{device} {precision}: {}", done.stdout);
        }
    }
    let done = warpt.run(&["opt", MODEL, "--emit", "fusion", "--device", "cpu", "--precision", "tf32"]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(done.stderr.contains("it has model, bf16"), "{}", done.stderr);
}
