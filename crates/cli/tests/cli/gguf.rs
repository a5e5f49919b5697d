//! `warpt run --weights FILE.gguf`: a Llama of transformers with weights from files that llama.cpp's converter would write.

use std::collections::BTreeMap;

use warpforge::io::gguf::{StoredType, Value, Written, encode};
use warpforge::io::safetensors;
use warpforge::{Model, Tensor};

use crate::warpt::Warpt;

/// Two layers of width 32, four heads of eight channels, two of keys. `llama` in `make.py` writes it.
const LLAMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/llama.mlir");
const NAMES: [(&str, &str); 11] = [
    ("model.embed_tokens", "token_embd"),
    ("model.norm", "output_norm"),
    ("lm_head", "output"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    ("input_layernorm", "attn_norm"),
];

/// Weights of the model that are multiples of 1/64, by name.
fn weights() -> BTreeMap<String, Tensor> {
    let model = Model::load(LLAMA).unwrap();
    let slots = model.inputs();
    let mut random = 7u32;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 24) as f32 / 64.0 - 2.0
    };
    let mut tensor = |name: &str, dims: &[usize]| {
        let values: Vec<f32> = match name.contains("inv_freq") {
            true => vec![1.0, 0.1, 0.01, 0.001],
            false => (0..dims.iter().product()).map(|_| next()).collect(),
        };
        Tensor::from_slice(dims, &values).unwrap()
    };
    let weights = slots.iter().filter(|slot| slot.role.is_weight());
    weights.map(|slot| (slot.name.to_owned(), tensor(slot.name, &slot.ty.shape_usize().unwrap()))).collect()
}

/// llama.cpp's name of a parameter.
fn name_of(parameter: &str) -> Option<String> {
    let module = parameter.strip_suffix(".weight")?;
    let (layer, module) = match module.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.')) {
        Some((layer, module)) => (format!("blk.{layer}."), module),
        None => (String::new(), module),
    };
    let own = NAMES.iter().find(|(name, _)| *name == module).map_or("ffn_norm", |(_, own)| own);
    Some(format!("{layer}{own}.weight"))
}

/// The values of a parameter as the converter leaves them: the halves of heads row by row in turn.
fn converted(name: &str, tensor: &Tensor) -> Vec<f32> {
    let values = tensor.as_slice::<f32>().unwrap();
    if !name.contains("attn_q") && !name.contains("attn_k") {
        return values.to_vec();
    }
    /// Channels of a head, and the model's width.
    const CHANNELS: usize = 8;
    const WIDTH: usize = 32;
    let row = |at: usize| {
        let (head, channel) = (at / CHANNELS, at % CHANNELS);
        head * CHANNELS + channel % 2 * (CHANNELS / 2) + channel / 2
    };
    let rows = values.len() / WIDTH;
    (0..rows).flat_map(|at| values[row(at) * WIDTH..][..WIDTH].to_vec()).collect()
}

/// Blocks of 32 codes of 8 bits, whose scale is the step of the weights: 1/64 as f16.
fn eight_bits(values: &[f32]) -> Vec<u8> {
    let block = |block: &[f32]| {
        let codes = block.iter().map(|value| ((value * 64.0) as i8).cast_unsigned());
        0x2400u16.to_le_bytes().into_iter().chain(codes).collect::<Vec<u8>>()
    };
    values.chunks(32).flat_map(block).collect()
}

/// The bytes of a file with the matrices in a type.
fn file(weights: &BTreeMap<String, Tensor>, matrices: StoredType) -> Vec<u8> {
    let stored: Vec<(String, Vec<usize>, StoredType, Vec<u8>)> = weights
        .iter()
        .filter_map(|(parameter, tensor)| {
            let name = name_of(parameter)?;
            let values = converted(&name, tensor);
            let (stored, bytes) = match tensor.dims().len() {
                2 if matrices == StoredType::Q8_0 => (matrices, eight_bits(&values)),
                _ => (StoredType::F32, values.iter().flat_map(|value| value.to_le_bytes()).collect()),
            };
            Some((name, tensor.dims().to_vec(), stored, bytes))
        })
        .collect();
    let written: Vec<Written<'_>> = stored
        .iter()
        .map(|(name, dims, stored, bytes)| Written { name, dims, stored: *stored, bytes })
        .collect();
    let values = [
        ("general.architecture", Value::Text("llama".to_owned())),
        ("llama.attention.head_count", Value::Unsigned(4)),
        ("llama.attention.head_count_kv", Value::Unsigned(2)),
        ("llama.rope.freq_base", Value::Float(10_000.0)),
        ("llama.rope.dimension_count", Value::Unsigned(8)),
    ];
    encode(&values, &written).unwrap()
}

/// The logits of a run, and what it printed.
fn logits(warpt: &Warpt, weights: &[&str]) -> Vec<f32> {
    let mut run = vec!["run", LLAMA, "--input", "input_ids=ids.npy", "--outputs", "out.safetensors"];
    weights.iter().for_each(|file| run.extend(["--weights", file]));
    let done = warpt.run(&run);
    assert_eq!(done.code, 0, "{}", done.stderr);
    safetensors::read(&warpt.path("out.safetensors")).unwrap()["logits"].as_slice::<f32>().unwrap().to_vec()
}

fn home(weights: &BTreeMap<String, Tensor>) -> Warpt {
    let warpt = Warpt::new();
    let ids = Tensor::from_slice(&[1, 8], &[3i64, 14, 15, 9, 2, 6, 53, 5]).unwrap();
    warpforge::io::npy::write(&warpt.path("ids.npy"), &ids).unwrap();
    let all = weights.iter().map(|(name, tensor)| (name.as_str(), tensor));
    safetensors::write(&warpt.path("w.safetensors"), all).unwrap();
    warpt
}

#[test]
fn a_decoder_computes_the_same_from_gguf_and_from_safetensors() {
    let mut weights = weights();
    let warpt = home(&weights);
    let expected = logits(&warpt, &["w.safetensors"]);
    assert!(expected.iter().any(|value| value.abs() > 0.1), "{expected:?}");
    for (name, stored) in [("w.gguf", StoredType::F32), ("q.gguf", StoredType::Q8_0)] {
        std::fs::write(warpt.path(name), file(&weights, stored)).unwrap();
        assert_eq!(logits(&warpt, &[name]), expected, "{name}");
    }
    // The last file that has a weight gives it.
    let ones = Tensor::from_slice(&[32], &[1.0f32; 32]).unwrap();
    weights.insert("model.norm.weight".to_owned(), ones);
    std::fs::write(warpt.path("other.gguf"), file(&weights, StoredType::F32)).unwrap();
    assert_ne!(logits(&warpt, &["w.safetensors", "other.gguf"]), expected);
    assert_eq!(logits(&warpt, &["other.gguf", "w.safetensors"]), expected);
}

#[test]
fn files_of_other_models_are_refused_by_name() {
    let mut weights = weights();
    let warpt = home(&weights);
    let refused = |weights: &BTreeMap<String, Tensor>, expected: &[&str]| {
        std::fs::write(warpt.path("o.gguf"), file(weights, StoredType::F32)).unwrap();
        let done = warpt.run(&["run", LLAMA, "--input", "input_ids=ids.npy", "--weights", "o.gguf"]);
        assert_eq!(done.code, 2, "{}", done.stdout);
        for text in expected {
            assert!(done.stderr.contains(text), "no `{text}` in {}", done.stderr);
        }
    };
    let norm = weights.remove("model.norm.weight").unwrap();
    refused(
        &weights,
        &["o.gguf: 1 weights of the model are missing", "`model.norm.weight`, here `output_norm.weight`"],
    );
    weights.insert("model.norm.weight".to_owned(), Tensor::from_slice(&[31], &[0.0f32; 31]).unwrap());
    refused(
        &weights,
        &["o.gguf: tensor `output_norm.weight` is 31, and `model.norm.weight` is tensor<32xf32>"],
    );
    weights.insert("model.norm.weight".to_owned(), norm.clone());
    weights.insert("model.layers.2.input_layernorm.weight".to_owned(), norm);
    refused(&weights, &["1 tensors are not of this model", "blk.2.attn_norm.weight"]);
    let done = warpt.run(&["run", "o.gguf"]);
    assert!(done.code == 2 && done.stderr.contains("--weights GGUF too"), "{}", done.stderr);
}
