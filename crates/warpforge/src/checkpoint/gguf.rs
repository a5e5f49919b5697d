//! The tensors of a GGUF file as the weights of a model.

use std::collections::{BTreeMap, BTreeSet};

use warpforge_ir::signature::Signature;
use warpforge_ir::{Dim, TensorType};
use warpforge_tensor::io::gguf::{Gguf, Stored, Value};
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

use super::GgufError;
use super::names::{Architecture, is_inverse_frequencies};

/// Why the weights could not be made.
pub(super) enum Failed {
    /// They are not those of the model.
    Fit(GgufError),
    /// A tensor could not be made.
    Tensor(warpforge_tensor::Error),
}

impl From<GgufError> for Failed {
    fn from(error: GgufError) -> Self {
        Self::Fit(error)
    }
}

impl From<warpforge_tensor::Error> for Failed {
    fn from(error: warpforge_tensor::Error) -> Self {
        Self::Tensor(error)
    }
}

/// Factors of frequencies: they are in the buffers of the model already.
const FREQUENCY_FACTORS: [&str; 3] =
    ["rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"];

/// Puts the tensors of a file to the weights that are given already. With `all`, nothing may be missing then.
pub(super) fn weights(
    file: &Gguf,
    signature: &Signature,
    given: &mut BTreeMap<String, Tensor>,
    all: bool,
) -> Result<(), Failed> {
    let text = file.value("general.architecture").and_then(Value::as_text);
    let architecture = text.and_then(Architecture::of);
    let (mut used, mut missing) = (BTreeSet::new(), Vec::new());
    for (_, argument) in signature.weights() {
        let Some(ty) = argument.ty.as_tensor() else { continue };
        let weight = argument.name.as_str();
        if let Some(name) = tensor_of(file, architecture, weight) {
            let read = Reading { file, architecture, name: &name, weight };
            given.insert(weight.to_owned(), read.tensor(&file.tensors()[&name], ty)?);
            used.insert(name);
        } else if !given.contains_key(weight) {
            match architecture.and_then(|known| frequencies(file, known, weight, ty)) {
                Some(tensor) => {
                    given.insert(weight.to_owned(), tensor?);
                }
                None => missing.push(described(architecture, weight, ty)),
            }
        }
    }
    let unused: Vec<String> = file.tensors().keys().filter(|name| !used.contains(*name)).cloned().collect();
    let unused: Vec<String> =
        unused.into_iter().filter(|name| !FREQUENCY_FACTORS.contains(&name.as_str())).collect();
    match architecture {
        None if !unused.is_empty() => {
            let found = match text {
                Some(text) => format!("its architecture is `{text}`"),
                None => "it does not say `general.architecture`".to_owned(),
            };
            Err(GgufError::Architecture { found, known: Architecture::known() }.into())
        }
        _ if all && !missing.is_empty() => Err(GgufError::Missing(missing).into()),
        _ if !unused.is_empty() => Err(GgufError::Unused(unused).into()),
        _ => Ok(()),
    }
}

/// The name of the tensor of a weight, where the file has one.
fn tensor_of(file: &Gguf, architecture: Option<Architecture>, weight: &str) -> Option<String> {
    let has = |name: &str| file.tensors().contains_key(name);
    if has(weight) {
        return Some(weight.to_owned());
    }
    let (name, other) = architecture?.tensor_of(weight)?;
    match other {
        _ if has(&name) => Some(name),
        Some(other) if has(other) => Some(other.to_owned()),
        _ => None,
    }
}

/// A weight that is missing, and what its tensor would be called.
fn described(architecture: Option<Architecture>, weight: &str, ty: &TensorType) -> String {
    match architecture.and_then(|known| known.tensor_of(weight)) {
        Some((name, _)) => format!("`{weight}`, here `{name}`: {ty}"),
        None => format!("`{weight}`: {ty}"),
    }
}

/// A tensor on its way to a weight.
struct Reading<'a> {
    file: &'a Gguf,
    architecture: Option<Architecture>,
    name: &'a str,
    weight: &'a str,
}

impl Reading<'_> {
    /// The tensor in the type and the order of the weight.
    fn tensor(&self, stored: &Stored, ty: &TensorType) -> Result<Tensor, Failed> {
        let fits = |(dim, &size): (&Dim, &usize)| dim.compatible(Dim::Static(size as u64));
        if ty.rank() != stored.dims.len() || !ty.dims().iter().zip(&stored.dims).all(fits) {
            let found: Vec<String> = stored.dims.iter().map(ToString::to_string).collect();
            let (tensor, weight) = (self.name.to_owned(), self.weight.to_owned());
            let error = GgufError::Shape { tensor, found: found.join("x"), weight, wanted: ty.to_string() };
            return Err(error.into());
        }
        let element = ty.element().plain();
        let floats = element.and_then(|element| stored.to_float(element));
        let Some(tensor) = floats else {
            let (tensor, weight) = (self.name.to_owned(), self.weight.to_owned());
            let element = element.unwrap_or(ElementType::Bool);
            return Err(GgufError::Element { tensor, weight, element }.into());
        };
        let tensor = tensor?;
        // Under the model's own name it is as the model has it.
        let Some(architecture) = self.architecture.filter(|_| self.name != self.weight) else {
            return Ok(tensor);
        };
        if architecture.adds_one_to_norms && self.name.ends_with("norm.weight") {
            return Ok(without_one(&tensor)?);
        }
        let heads = [(".attn_q.", "head_count"), (".attn_k.", "head_count_kv")]
            .into_iter()
            .find(|(part, _)| architecture.interleaves_heads && self.name.contains(part));
        match heads {
            Some((_, count)) => self.with_halves_of_heads(architecture, &tensor, count),
            None => Ok(tensor),
        }
    }

    /// Puts the first half of the rows of each head before the second: the file has them in turn.
    fn with_halves_of_heads(
        &self,
        architecture: Architecture,
        tensor: &Tensor,
        count: &str,
    ) -> Result<Tensor, Failed> {
        let value = |name: &str| {
            let name = format!("{}.attention.{name}", architecture.name());
            self.file.value(&name).and_then(Value::as_size)
        };
        let rows = tensor.dims().first().copied().unwrap_or(1);
        let heads = value(count).or_else(|| value("head_count"));
        let Some(heads) = heads.filter(|&heads| heads > 0 && rows.is_multiple_of(2 * heads)) else {
            let value = format!("{}.attention.{count}", architecture.name());
            return Err(GgufError::Heads { tensor: self.name.to_owned(), rows, value }.into());
        };
        let (half, depth) = (rows / heads / 2, tensor.len() / rows.max(1));
        let shape = Shape::new([heads, 2, half, depth])?;
        let step = depth.cast_signed();
        let steps = [2 * half.cast_signed() * step, step, 2 * step, 1];
        Ok(tensor.strided(shape, 0, &steps)?.reshaped(tensor.shape().clone())?)
    }
}

fn without_one(tensor: &Tensor) -> Result<Tensor, warpforge_tensor::Error> {
    let values = tensor.iter().map(|value| Scalar::Float(value.to_f64() - 1.0));
    Tensor::from_scalars(tensor.element_type(), tensor.shape().clone(), values)
}

/// The factors of rotary embeddings, `base^(-2i/d)`, of a model that does not change them.
fn frequencies(
    file: &Gguf,
    architecture: Architecture,
    weight: &str,
    ty: &TensorType,
) -> Option<Result<Tensor, warpforge_tensor::Error>> {
    /// The base where the file does not say one.
    const BASE: f64 = 10_000.0;
    let value = |name: &str| file.value(&format!("{}.rope.{name}", architecture.name()));
    let plain = value("scaling.type").and_then(Value::as_text).is_none_or(|scaling| scaling == "none")
        && !FREQUENCY_FACTORS.iter().any(|name| file.tensors().contains_key(*name));
    let &[count] = ty.shape_usize()?.as_slice() else { return None };
    let all = value("dimension_count").and_then(Value::as_size).is_none_or(|rotated| rotated == 2 * count);
    if !is_inverse_frequencies(weight) || !plain || !all || ty.element().plain() != Some(ElementType::F32) {
        return None;
    }
    let base = value("freq_base").and_then(Value::as_f64).unwrap_or(BASE);
    // In the steps of transformers: the power is rounded to f32 before it is inverted.
    let one = |at: usize| 1.0 / base.powf(f64::from((2 * at) as f32 / (2 * count) as f32)) as f32;
    let values: Vec<f32> = (0..count).map(one).collect();
    Some(Tensor::from_slice(&[count], &values))
}
