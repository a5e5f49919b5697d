//! The formats of checkpoints: a folder with `config.json` and `model.safetensors`, a GGUF file, and the file of llama2.c.

use std::collections::BTreeMap;
use std::path::Path;

use half::{bf16, f16};
use warpforge::io::gguf::{self, Gguf, Value};
use warpforge::io::{map_file, safetensors};
use warpforge::{ElementType, Tensor};

use super::checkpoint::{Checkpoint, Part};
use super::sizes::Sizes;

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";

/// Opens whatever is at the path.
pub(super) fn open(path: &Path) -> Result<Checkpoint, String> {
    if path.is_dir() {
        return folder(path);
    }
    let bytes = map_file(path).map_err(|error| error.to_string())?;
    if bytes.starts_with(b"GGUF") {
        return of_gguf(&gguf::decode(&bytes).map_err(|error| error.to_string())?);
    }
    llama2_c(&bytes)
}

fn folder(path: &Path) -> Result<Checkpoint, String> {
    let text = std::fs::read_to_string(path.join(CONFIG)).map_err(|error| format!("{CONFIG}: {error}"))?;
    let sizes = Sizes::parse(&text).map_err(|reason| format!("{CONFIG}: {reason}"))?;
    let found: BTreeMap<String, Tensor> =
        safetensors::read(&path.join(WEIGHTS)).map_err(|error| format!("{WEIGHTS}: {error}"))?;
    Checkpoint::assemble(sizes, false, |part| {
        let layer = |layer: usize, name: &str| format!("model.layers.{layer}.{name}.weight");
        let name = match part {
            Part::Embedding => "model.embed_tokens.weight".to_owned(),
            Part::Norm => "model.norm.weight".to_owned(),
            Part::Head => "lm_head.weight".to_owned(),
            Part::AttentionNorm(at) => layer(at, "input_layernorm"),
            Part::Query(at) => layer(at, "self_attn.q_proj"),
            Part::Key(at) => layer(at, "self_attn.k_proj"),
            Part::Value(at) => layer(at, "self_attn.v_proj"),
            Part::Output(at) => layer(at, "self_attn.o_proj"),
            Part::MlpNorm(at) => layer(at, "post_attention_layernorm"),
            Part::Gate(at) => layer(at, "mlp.gate_proj"),
            Part::Up(at) => layer(at, "mlp.up_proj"),
            Part::Down(at) => layer(at, "mlp.down_proj"),
        };
        found.get(&name).map(|tensor| floats(&name, tensor)).transpose()
    })
}

/// The values of a tensor of floats.
fn floats(name: &str, tensor: &Tensor) -> Result<Vec<f32>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("`{name}`: {error}");
    match tensor.element_type() {
        ElementType::F32 => Ok(tensor.as_slice::<f32>().map_err(|error| wrong(&error))?.to_vec()),
        ElementType::BF16 => {
            let values = tensor.as_slice::<bf16>().map_err(|error| wrong(&error))?;
            Ok(values.iter().map(|value| value.to_f32()).collect())
        }
        ElementType::F16 => {
            let values = tensor.as_slice::<f16>().map_err(|error| wrong(&error))?;
            Ok(values.iter().map(|value| value.to_f32()).collect())
        }
        other => Err(wrong(&format!("is of {other}; f32, f16 and bf16 are known"))),
    }
}

fn of_gguf(file: &Gguf) -> Result<Checkpoint, String> {
    let value = |name: &str| file.value(name).ok_or_else(|| format!("it does not say `{name}`"));
    match value("general.architecture")?.as_text() {
        Some("llama") => {}
        other => return Err(format!("its architecture is {other:?}; `llama` is known")),
    }
    let size = |name: &str| -> Result<usize, String> {
        let name = format!("llama.{name}");
        value(&name)?.as_size().ok_or_else(|| format!("`{name}` is no size"))
    };
    let number = |name: &str| file.value(name).and_then(Value::as_f64);
    let (hidden, heads) = (size("embedding_length")?, size("attention.head_count")?);
    let embedding = file.tensors().get("token_embd.weight").ok_or("there is no `token_embd.weight`")?;
    let sizes = Sizes {
        vocabulary: embedding.dims.first().copied().unwrap_or(0),
        hidden,
        layers: size("block_count")?,
        heads,
        kv_heads: size("attention.head_count_kv").unwrap_or(heads),
        channels: size("attention.key_length").unwrap_or(hidden / heads.max(1)),
        intermediate: size("feed_forward_length")?,
        context: size("context_length")?,
        epsilon: number("llama.attention.layer_norm_rms_epsilon").unwrap_or(1e-5),
        theta: number("llama.rope.freq_base").unwrap_or(10_000.0),
    }
    .checked()?;
    if size("rope.dimension_count").is_ok_and(|count| count != sizes.channels) {
        return Err(
            "only a part of each head is rotated; decoders that rotate all of it are known".to_owned()
        );
    }
    Checkpoint::assemble(sizes, true, |part| {
        let layer = |layer: usize, name: &str| format!("blk.{layer}.{name}.weight");
        let name = match part {
            Part::Embedding => "token_embd.weight".to_owned(),
            Part::Norm => "output_norm.weight".to_owned(),
            Part::Head => "output.weight".to_owned(),
            Part::AttentionNorm(at) => layer(at, "attn_norm"),
            Part::Query(at) => layer(at, "attn_q"),
            Part::Key(at) => layer(at, "attn_k"),
            Part::Value(at) => layer(at, "attn_v"),
            Part::Output(at) => layer(at, "attn_output"),
            Part::MlpNorm(at) => layer(at, "ffn_norm"),
            Part::Gate(at) => layer(at, "ffn_gate"),
            Part::Up(at) => layer(at, "ffn_up"),
            Part::Down(at) => layer(at, "ffn_down"),
        };
        let Some(stored) = file.tensors().get(&name) else { return Ok(None) };
        let tensor = stored.to_f32().map_err(|error| format!("`{name}`: {error}"))?;
        floats(&name, &tensor).map(Some)
    })
}

/// The file of llama2.c: seven sizes, then f32 values. What follows them is not looked at.
fn llama2_c(bytes: &[u8]) -> Result<Checkpoint, String> {
    const HEADER: usize = 7;
    let unknown =
        || "it is neither a GGUF file nor one of llama2.c, and no folder with a checkpoint".to_owned();
    let word = |at: usize| -> Option<[u8; 4]> { bytes.get(4 * at..4 * at + 4)?.try_into().ok() };
    let header: Vec<i32> = (0..HEADER)
        .map(|at| word(at).map(i32::from_le_bytes).ok_or_else(unknown))
        .collect::<Result<_, String>>()?;
    let size = |at: usize| header[at].unsigned_abs() as usize;
    let (hidden, heads) = (size(0), size(3));
    let sizes = Sizes {
        vocabulary: size(5),
        hidden,
        layers: size(2),
        heads,
        kv_heads: size(4),
        channels: hidden / heads.max(1),
        intermediate: size(1),
        context: size(6),
        epsilon: 1e-5,
        theta: 10_000.0,
    };
    let sizes = sizes.checked().map_err(|_| unknown())?;
    // A vocabulary that is negative says that the last matrix is one of its own.
    let tied = header[5] > 0;
    let (inner, layers) = (sizes.intermediate, sizes.layers);
    let (queries, keys, table) = (sizes.queries(), sizes.keys(), sizes.vocabulary * hidden);
    let rotations = sizes.context * sizes.channels;
    let groups = [
        table,
        layers * hidden,
        layers * queries * hidden,
        layers * keys * hidden,
        layers * keys * hidden,
        layers * hidden * queries,
        layers * hidden,
        layers * inner * hidden,
        layers * hidden * inner,
        layers * inner * hidden,
        hidden,
        rotations,
        if tied { 0 } else { table },
    ];
    let needed = groups.iter().fold(HEADER as u128, |sum, &count| sum + count as u128) * 4;
    if needed > bytes.len() as u128 {
        return Err(format!("the file has {} bytes of {needed}: it is cut short, or no model", bytes.len()));
    }
    let values = |group: usize, part: usize, parts: usize| -> Result<Option<Vec<f32>>, String> {
        let each = groups[group] / parts;
        let first = HEADER + groups[..group].iter().sum::<usize>() + part * each;
        let part = bytes.get(4 * first..4 * (first + each));
        let part = part.ok_or_else(unknown)?;
        let words = part.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        Ok(Some(words.collect()))
    };
    Checkpoint::assemble(sizes, true, |part| match part {
        Part::Embedding => values(0, 0, 1),
        Part::AttentionNorm(at) => values(1, at, layers),
        Part::Query(at) => values(2, at, layers),
        Part::Key(at) => values(3, at, layers),
        Part::Value(at) => values(4, at, layers),
        Part::Output(at) => values(5, at, layers),
        Part::MlpNorm(at) => values(6, at, layers),
        Part::Gate(at) => values(7, at, layers),
        Part::Down(at) => values(8, at, layers),
        Part::Up(at) => values(9, at, layers),
        Part::Norm => values(10, 0, 1),
        Part::Head if tied => Ok(None),
        Part::Head => values(12, 0, 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: [i32; 7], values: usize) -> Vec<u8> {
        let values = (0..values).flat_map(|at| (at as f32).to_le_bytes());
        header.into_iter().flat_map(i32::to_le_bytes).chain(values).collect()
    }

    #[test]
    fn a_file_of_llama2_c_is_read_and_a_cut_one_is_refused() {
        // Width 4, inner 6, one layer, one head of four channels, five words, three positions.
        let header = [4, 6, 1, 1, 1, 5, 3];
        let count = 20 + 4 + 16 * 4 + 4 + 24 * 3 + 4 + 12;
        let read = llama2_c(&file(header, count)).unwrap();
        assert!(read.tied);
        assert_eq!(read.weight("embedding")[..2], [0.0, 1.0]);
        assert_eq!(read.weight("layer.0.norm.attention"), [20.0, 21.0, 22.0, 23.0]);
        // The rows of the first head: 0 and 2, then 1 and 3.
        assert_eq!(read.weight("layer.0.qkv")[4..6], [32.0, 33.0]);
        assert_eq!(read.weight("layer.0.down")[0], (20 + 4 + 64 + 4 + 24) as f32);
        assert_eq!(read.weight("norm")[0], (20 + 4 + 64 + 4 + 72) as f32);
        let cut = llama2_c(&file(header, 80)).err().unwrap();
        assert!(cut.contains("cut short"), "{cut}");
        assert!(llama2_c(b"some text that is no model at all").err().unwrap().contains("neither"));
        assert!(llama2_c(b"").is_err());
    }

    #[test]
    fn what_is_missing_in_a_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = open(folder.path()).err().unwrap();
        assert!(error.contains("config.json"), "{error}");
        assert!(open(&folder.path().join("none")).is_err());
    }
}
