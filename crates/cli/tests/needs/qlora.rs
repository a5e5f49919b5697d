//! Both passes of QLoRA: bitsandbytes and peft train, this engine trains, and the two are compared.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use libtest_mimic::Trial;
use serde_json::Value;

use crate::python::{interpreter, record};
use crate::trial;
use crate::warpt::Warpt;

/// Why there is nothing to test with.
pub(crate) fn missing() -> Option<String> {
    crate::python::missing("bitsandbytes, peft, torch, transformers, warpforge")
}

pub(crate) fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 2] = [
        ("llama_qlora_agrees_with_bitsandbytes_and_peft", llama_qlora_agrees_with_bitsandbytes_and_peft),
        ("instructions_that_do_not_fit_are_refused", instructions_that_do_not_fit_are_refused),
    ];
    tests.into_iter().map(|(name, test)| trial(name, test)).collect()
}

/// The preset's 50 steps take minutes.
fn steps() -> usize {
    if crate::slow() { 50 } else { 12 }
}

/// The golden run of the tiny preset.
fn tiny() -> &'static Path {
    static HOME: OnceLock<(Warpt, PathBuf)> = OnceLock::new();
    let (_, path) = HOME.get_or_init(|| {
        let warpt = Warpt::new();
        let steps = steps().to_string();
        let arguments = ["llama-qlora", "--preset", "tiny", "--steps", &steps, "--out", "golden"];
        let done = record(&warpt, &arguments);
        assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
        let path = warpt.path("golden");
        (warpt, path)
    });
    path
}

/// Loads an adapter into its base model with peft.
const LOAD: &str = "
import sys, torch, peft, transformers
from safetensors.torch import load_file
golden, ours = sys.argv[1:]
config = peft.LoraConfig.from_pretrained(ours)
assert (config.r, config.lora_alpha, sorted(config.target_modules)) == (64, 16, ['k_proj', 'o_proj', 'q_proj', 'v_proj'])
base = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=259, hidden_size=64, intermediate_size=384,
    num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=192))
model = peft.PeftModel.from_pretrained(base, ours)
loaded = peft.get_peft_model_state_dict(model)
wanted = load_file(golden + '/adapter_model.safetensors')
assert loaded.keys() == wanted.keys(), (loaded.keys() ^ wanted.keys())
print(max((loaded[name] - wanted[name]).abs().max().item() for name in wanted))
";

fn llama_qlora_agrees_with_bitsandbytes_and_peft() {
    let warpt = Warpt::new();
    let golden = tiny().to_str().unwrap();
    let done = warpt.run(&[
        "golden",
        "run",
        "llama-qlora",
        "--compare-golden",
        golden,
        "--out",
        "candidate",
        "--json",
    ]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let run: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(run["steps"].as_array().unwrap().len(), steps());
    let perplexity = |which: &str| run[which]["perplexity"].as_f64().unwrap();
    let apart = (perplexity("metrics") / perplexity("golden_metrics") - 1.0).abs();
    assert!(apart < 2e-3, "perplexities {} and {}", run["metrics"], run["golden_metrics"]);
    let base = &run["codes"]["base"];
    assert_eq!(base["differing"], 0, "{base}");
    assert!(base["compared"].as_u64().unwrap() > 50_000, "{base}");
    // A moment next to a border rounds to the other side of it where sums have another order.
    let moments = &run["codes"]["moments"];
    let (compared, differing) =
        (moments["compared"].as_u64().unwrap(), moments["differing"].as_u64().unwrap());
    assert!(compared > 80_000 && differing * 100 <= compared, "{moments}");
    let report = warpt.run(&[
        "validate",
        "--golden",
        golden,
        "--candidate",
        "candidate",
        "--fail-on-mismatch",
        "--json",
    ]);
    assert_eq!(report.code, 0, "{}", report.stdout);
    let ours = warpt.path("candidate/adapter");
    let theirs = tiny().join("adapter");
    let loaded = Command::new(interpreter())
        .args(["-W", "ignore", "-c", LOAD])
        .args([&theirs, &ours])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&loaded.stdout);
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    let apart: f64 = said.trim().parse().unwrap();
    assert!(apart < 1e-3, "the adapters are {apart} apart");
}

/// A tokenizer of words, all of which are unknown.
const TOKENIZER: &str = r#"{"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model":
    {"type": "WordLevel", "vocab": {"<pad>": 0, "<s>": 1, "</s>": 2, "?": 3}, "unk_token": "?"}}"#;

fn instructions_that_do_not_fit_are_refused() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("tokenizer.json"), TOKENIZER).unwrap();
    let good = "{\"instruction\": \"Add.\", \"output\": \"3\"}\n";
    let long = format!("{{\"instruction\": \"{}\", \"output\": \"3\"}}\n", "word ".repeat(200));
    for (name, text, says) in [
        ("long.jsonl", format!("{good}{long}"), "long.jsonl:2: the example has "),
        ("cut.jsonl", format!("{good}{}", &good[..good.len() / 2]), "cut.jsonl:2: no example"),
    ] {
        std::fs::write(warpt.path(name), text).unwrap();
        let description = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../golden-bench/descriptions/llama-qlora.toml"
        ))
        .unwrap();
        let own = description.replace(
            "data.max_length = 192\n",
            "data.max_length = 192\ndata.vocabulary = \"tokenizer.json\"\n",
        );
        std::fs::write(warpt.path("own.toml"), own).unwrap();
        let done = record(&warpt, &["own.toml", "--preset", "tiny", "--data", name, "--out", "refused"]);
        assert!(done.code != 0 && done.stderr.contains(says), "{}", done.stderr);
    }
    let refused = record(
        &warpt,
        &["llama-qlora", "--preset", "tiny", "--data", "alpaca_data.jsonl", "--out", "refused"],
    );
    assert!(refused.code == 2 && refused.stderr.contains("CC BY-NC 4.0"), "{}", refused.stderr);
}
