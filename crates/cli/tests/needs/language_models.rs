//! Benchmarks of models on a GPU.

use libtest_mimic::Trial;
use serde_json::Value;

use crate::pretend;
use crate::trial;
use crate::warpt::Warpt;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/tests/data/tiny_llama");

/// The tests on a pretended GPU.
pub(crate) fn pretended() -> Vec<Trial> {
    vec![trial(
        "a_language_model_on_a_pretended_gpu_gives_the_tokens_of_transformers",
        a_language_model_on_a_pretended_gpu_gives_the_tokens_of_transformers,
    )]
}

/// What is measured on the pretended GPU, with its parameters.
fn measured(benchmark: &str, parameters: &[String]) -> Value {
    let warpt = Warpt::new();
    let common = ["--param", "device=cuda", "--rounds", "1", "--duration", "0.1", "--no-history", "--json"];
    let mut arguments = vec!["benchmark", "run", "--benchmark", benchmark];
    arguments.extend(common);
    for parameter in parameters {
        arguments.extend(["--param", parameter]);
    }
    let done = pretend::run(&warpt, &arguments, &[]);
    assert_eq!(done.code, 0, "{benchmark}: {} {}", done.stderr, done.stdout);
    let record: Value = serde_json::from_str(&done.stdout).unwrap();
    record["benchmarks"][0]["metrics"].clone()
}

fn a_language_model_on_a_pretended_gpu_gives_the_tokens_of_transformers() {
    let parameter = |name: &str, value: &str| format!("{name}={value}");
    let truth = format!("{MODEL}/truth.json");
    let of_model = [parameter("model", MODEL), parameter("type", "f32")];
    let decode = [&of_model[..], &[parameter("truth", &truth), parameter("tokens", "25")]].concat();
    let prefill = [&of_model[..], &[parameter("tokens", "8")]].concat();
    for (benchmark, parameters) in [("llm_decode", decode), ("llm_prefill", prefill)] {
        let metrics = measured(benchmark, &parameters);
        let rates: Vec<&Value> = metrics
            .as_array()
            .unwrap()
            .iter()
            .filter(|metric| metric["name"] == "tokens_per_second")
            .collect();
        assert!(!rates.is_empty(), "{metrics}");
        for rate in rates {
            assert_eq!(rate["tags"]["device"], "cuda:0", "{rate}");
            assert!(rate["value"].as_f64() > Some(0.0), "{rate}");
        }
    }
}
