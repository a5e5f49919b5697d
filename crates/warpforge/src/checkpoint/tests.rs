//! Decoders whose weights come from GGUF files that the tests write.

use tempfile::TempDir;
use warpforge_tensor::io::gguf::{StoredType, Value, Written, encode};
use warpforge_tensor::io::safetensors;

use super::*;

/// A decoder of one layer with two heads of four channels, one of keys: its weights, and nothing that reads them.
const LLAMA: [(&str, &str); 7] = [
    ("model.embed_tokens.weight", "6x8xf32"),
    ("model.layers.0.self_attn.q_proj.weight", "8x8xf32"),
    ("model.layers.0.self_attn.k_proj.weight", "4x8xbf16"),
    ("model.layers.0.self_attn.q_proj.bias", "8xf32"),
    ("model.norm.weight", "8xf32"),
    ("lm_head.weight", "6x8xf32"),
    ("model.rotary_emb.inv_freq", "2xf32"),
];

fn model(weights: &[(&str, &str)]) -> Model {
    let arguments: Vec<String> = (0..)
        .zip(weights)
        .map(|(at, (name, ty)): (usize, _)| {
            let role = if name.ends_with("inv_freq") { "buffer" } else { "parameter" };
            format!("%w{at}: tensor<{ty}> {{warpforge.name = \"{name}\", warpforge.role = \"{role}\"}}")
        })
        .collect();
    let text = format!(
        "func.func @main({}, %x: tensor<1xf32>) -> tensor<1xf32> {{ return %x : tensor<1xf32> }}",
        arguments.join(", ")
    );
    Model::from_text("decoder.mlir", text).unwrap()
}

/// Consecutive numbers from a first one on.
fn numbers(first: f32, count: usize) -> Vec<f32> {
    (0..count).map(|at| first + at as f32).collect()
}

fn file(architecture: &str, tensors: &[(&str, &[usize], Vec<f32>)]) -> (TempDir, std::path::PathBuf) {
    let values = [
        ("general.architecture", Value::Text(architecture.to_owned())),
        ("llama.attention.head_count", Value::Unsigned(2)),
        ("llama.attention.head_count_kv", Value::Unsigned(1)),
        ("llama.rope.freq_base", Value::Float(100.0)),
        ("llama.rope.dimension_count", Value::Unsigned(4)),
    ];
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, _, values)| values.iter().flat_map(|value| value.to_le_bytes()).collect())
        .collect();
    let written: Vec<Written<'_>> = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, dims, _), bytes)| Written { name, dims, stored: StoredType::F32, bytes })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, encode(&values, &written).unwrap()).unwrap();
    (folder, path)
}

/// The tensors of [`LLAMA`] as llama.cpp has them.
fn llama() -> Vec<(&'static str, &'static [usize], Vec<f32>)> {
    vec![
        ("token_embd.weight", &[6, 8], numbers(1.0, 48)),
        ("blk.0.attn_q.weight", &[8, 8], numbers(0.0, 64)),
        ("blk.0.attn_k.weight", &[4, 8], numbers(0.0, 32)),
        ("blk.0.attn_q.bias", &[8], numbers(0.0, 8)),
        ("output_norm.weight", &[8], numbers(2.0, 8)),
    ]
}

fn bound(model: &Model, name: &str) -> Vec<f64> {
    let (_, tensor) = model.weights().find(|(own, _)| *own == name).unwrap();
    tensor.iter().map(warpforge_tensor::Scalar::to_f64).collect()
}

fn refused(
    weights: &[(&str, &str)],
    architecture: &str,
    tensors: &[(&str, &[usize], Vec<f32>)],
) -> GgufError {
    let (_folder, path) = file(architecture, tensors);
    match model(weights).bind_weight_files(&[&path]).unwrap_err() {
        Error::Checkpoint { path: told, reason } if told == path.display().to_string() => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn tensors_become_the_weights_of_the_decoder() {
    let (_folder, path) = file("llama", &llama());
    let mut model = model(&LLAMA);
    model.bind_weight_files(&[&path]).unwrap();
    // llama.cpp pairs rows 0 and 2 of a head of four, transformers has them two apart.
    assert_eq!(
        bound(&model, "model.layers.0.self_attn.q_proj.bias"),
        [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]
    );
    let queries = bound(&model, "model.layers.0.self_attn.q_proj.weight");
    assert_eq!(
        queries.chunks(8).map(|row| row[0]).collect::<Vec<_>>(),
        [0.0, 16.0, 8.0, 24.0, 32.0, 48.0, 40.0, 56.0]
    );
    let keys = bound(&model, "model.layers.0.self_attn.k_proj.weight");
    assert_eq!(keys.chunks(8).map(|row| row[0]).collect::<Vec<_>>(), [0.0, 16.0, 8.0, 24.0]);
    assert_eq!(bound(&model, "model.norm.weight")[..2], [2.0, 3.0]);
    // The head is the embedding, where there is none; the base is 100.
    assert_eq!(bound(&model, "lm_head.weight"), bound(&model, "model.embed_tokens.weight"));
    assert_eq!(bound(&model, "model.rotary_emb.inv_freq"), [1.0, f64::from(0.1f32)]);
}

#[test]
fn other_architectures_keep_their_rows_and_gemma_adds_one_to_norms() {
    let weights = |name: &str| -> Model {
        let (_folder, path) = file(name, &llama());
        let mut model = model(&LLAMA[..6]);
        model.bind_weight_files(&[&path]).unwrap();
        model
    };
    let queries = "model.layers.0.self_attn.q_proj.bias";
    for (name, norm) in [("qwen2", 2.0), ("gemma", 1.0)] {
        let model = weights(name);
        assert_eq!(bound(&model, queries)[..4], [0.0, 1.0, 2.0, 3.0], "{name}");
        assert_eq!(bound(&model, "model.norm.weight")[0], norm, "{name}");
    }
}

#[test]
fn a_later_file_gives_what_both_have_and_buffers_may_come_from_the_other() {
    let (folder, path) = file("llama", &llama());
    let other = folder.path().join("w.safetensors");
    let tensors = [
        ("model.rotary_emb.inv_freq", Tensor::from_slice(&[2], &[7.0f32, 8.0]).unwrap()),
        ("model.norm.weight", Tensor::from_slice(&[8], &[9.0f32; 8]).unwrap()),
    ];
    safetensors::write(&other, tensors.iter().map(|(name, tensor)| (*name, tensor))).unwrap();
    for (files, norm) in [([&other, &path], 2.0), ([&path, &other], 9.0)] {
        let mut model = model(&LLAMA);
        model.bind_weight_files(&files).unwrap();
        assert_eq!(bound(&model, "model.norm.weight")[0], norm);
        assert_eq!(bound(&model, "model.rotary_emb.inv_freq"), [7.0, 8.0]);
    }
}

#[test]
fn tensors_with_the_names_of_the_model_are_taken_as_they_are() {
    let named: [(&str, &[usize], Vec<f32>); 2] =
        [("a", &[2], vec![1.0, 2.0]), ("b.norm.weight", &[2], vec![3.0, 4.0])];
    let (_folder, path) = file("gemma", &named);
    let mut own = model(&[("a", "2xf32"), ("b.norm.weight", "2xf16")]);
    own.bind_weight_files(&[&path]).unwrap();
    assert_eq!((bound(&own, "a"), bound(&own, "b.norm.weight")), (vec![1.0, 2.0], vec![3.0, 4.0]));
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let error = refused(&LLAMA, "mamba", &llama());
    assert!(matches!(&error, GgufError::Architecture { found, .. } if found.contains("mamba")), "{error}");
    let mut wide = llama();
    wide[0] = ("token_embd.weight", &[8, 6], numbers(0.0, 48));
    let text = refused(&LLAMA, "llama", &wide).to_string();
    assert_eq!(text, "tensor `token_embd.weight` is 8x6, and `model.embed_tokens.weight` is tensor<6x8xf32>");
    let text = refused(&LLAMA, "llama", &llama()[..2]).to_string();
    for missing in [
        "3 weights of the model are missing",
        "`model.layers.0.self_attn.k_proj.weight`, here `blk.0.attn_k.weight`: tensor<4x8xbf16>",
        "`model.norm.weight`, here `output_norm.weight`",
    ] {
        assert!(text.contains(missing), "{text}");
    }
    let error = refused(&LLAMA[..4], "llama", &llama());
    assert_eq!(error, GgufError::Unused(vec!["output_norm.weight".to_owned()]));
    let codes = [("model.norm.weight", "8xi8")];
    let error = refused(&codes, "llama", &llama()[4..]);
    assert!(matches!(error, GgufError::Element { element: ElementType::I8, .. }), "{error}");
    let odd: [(&str, &[usize], Vec<f32>); 1] = [("blk.0.attn_q.bias", &[6], numbers(0.0, 6))];
    let error = refused(&[("layers.0.self_attn.q_proj.bias", "6xf32")], "llama", &odd);
    assert!(matches!(error, GgufError::Heads { rows: 6, .. }), "{error}");
}
