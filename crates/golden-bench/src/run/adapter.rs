//! What a run with adapters has beside the usual: the adapter as `peft` reads it, and codes that are held against those of
//! `bitsandbytes`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::json;
use warpforge::{Model, ModelState, Tensor};
use warpforge_tensor::ElementType;
use warpforge_tensor::io::{output, safetensors};
use warpforge_tensor::quantize::Nf4;

use super::folder::RunFolder;
use crate::description::Adapter;
use crate::{Error, GoldenRun};

/// The weights that were quantized, by the names of their layers.
const BASE: &str = "base.safetensors";
/// The optimizer's state.
const OPTIMIZER: &str = "optimizer.safetensors";
/// What PyTorch calls the adapted model in the module that is trained.
const WRAPPER: &str = "adapted.";
/// The adapter's name in the module, which its file leaves out.
const NAME: &str = ".default";

/// The tensors of a file of the golden run.
fn tensors_of(path: &Path) -> Result<BTreeMap<String, Tensor>, Error> {
    safetensors::read(path).map_err(|error| Error::golden(path, error.to_string()))
}

/// How many codes are those of `bitsandbytes`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Codes {
    /// All that were compared.
    pub compared: usize,
    /// Those that are others.
    pub differing: usize,
    /// The largest distance of two codes.
    pub largest: u8,
}

impl Codes {
    fn compare(&mut self, own: &[u8], golden: &[u8]) {
        self.compared += golden.len();
        self.differing += golden.len().abs_diff(own.len());
        for (own, golden) in own.iter().zip(golden) {
            self.differing += usize::from(own != golden);
            self.largest = self.largest.max(own.abs_diff(*golden));
        }
    }
}

/// Quantizes the base by our own quantizer, and compares it with the packed tensors of the graph: codes, codes of scales, and the
/// bytes of what scales them. `None` where the golden run kept no weights.
pub(super) fn quantized(golden: &GoldenRun, model: &Model) -> Result<Option<Codes>, Error> {
    let path = golden.folder.join(BASE);
    if golden.plan.adapter.is_none() || !path.is_file() {
        return Ok(None);
    }
    let packed: BTreeMap<&str, &Tensor> = model.weights().collect();
    let mut codes = Codes::default();
    for (layer, weight) in tensors_of(&path)? {
        let own = Nf4::quantize(weight.as_slice()?);
        let mut compare = |part: &str, own: &[u8]| -> Result<(), Error> {
            let name = format!("{layer}.{part}");
            let tensor = packed.get(name.as_str());
            let tensor =
                tensor.ok_or_else(|| Error::golden(&golden.folder, format!("the graph has no `{name}`")))?;
            codes.compare(own, tensor.bytes());
            Ok(())
        };
        let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        compare("packed", &own.packed)?;
        compare("scale_codes", &own.scale_codes)?;
        compare("scale_absmax", &bytes(&own.scale_absmax))?;
        compare("scale_offset", &bytes(&[own.scale_offset]))?;
    }
    Ok(Some(codes))
}

/// Compares the codes of the optimizer's moments after the last step.
pub(super) fn moments(golden: &GoldenRun, state: &ModelState) -> Result<Option<Codes>, Error> {
    let path = golden.folder.join(OPTIMIZER);
    if golden.plan.adapter.is_none() || !path.is_file() {
        return Ok(None);
    }
    let mut codes = Codes::default();
    for (name, tensor) in tensors_of(&path)? {
        if tensor.element_type() == ElementType::U8 {
            codes.compare(state.read(&name)?.as_slice()?, tensor.as_slice()?);
        }
    }
    Ok(Some(codes))
}

/// Writes the adapter as `peft` saves one.
pub(super) fn write(
    adapter: &Adapter,
    weights: &BTreeMap<String, Tensor>,
    folder: &mut RunFolder,
) -> Result<(), Error> {
    let place = folder.path.join("adapter");
    std::fs::create_dir_all(&place).map_err(Error::io(&place))?;
    let named: Vec<(String, &Tensor)> = weights
        .iter()
        .map(|(name, tensor)| (name.strip_prefix(WRAPPER).unwrap_or(name).replace(NAME, ""), tensor))
        .collect();
    safetensors::write(
        &place.join("adapter_model.safetensors"),
        named.iter().map(|(name, tensor)| (name.as_str(), *tensor)),
    )?;
    config(adapter, &place.join("adapter_config.json"))?;
    for file in ["adapter_model.safetensors", "adapter_config.json"] {
        folder.writer.add(&format!("adapter/{file}"), false)?;
    }
    Ok(())
}

fn config(adapter: &Adapter, path: &Path) -> Result<(), Error> {
    let config = json!({
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": adapter.rank,
        "lora_alpha": adapter.alpha,
        "lora_dropout": 0.0,
        "target_modules": adapter.targets,
        "bias": "none",
        "fan_in_fan_out": false,
        "inference_mode": true,
        "base_model_name_or_path": null,
    });
    let text = serde_json::to_string_pretty(&config).map_err(|error| Error::io(path)(error.into()))? + "\n";
    output::write(path, text.as_bytes()).map_err(Error::io(path))
}
