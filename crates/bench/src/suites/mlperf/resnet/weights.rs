//! The weights of ResNet-50, from a package of TensorFlow.js or a seed, with batch normalization folded in.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use warpforge::Tensor;

use super::layers::{CLASSES, Conv, FEATURES, convs};
use crate::benchmark::BenchmarkError;

const MODEL: &str = "model.json";
/// Keras' default of its batch normalization.
const EPSILON: f32 = 1e-3;

/// The part of `model.json` that names the weights.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    weights_manifest: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    paths: Vec<String>,
    weights: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    shape: Vec<usize>,
    dtype: String,
}

/// Parameters of the program by name: `NAME.kernel` and `NAME.bias`.
pub(super) type Weights = BTreeMap<String, Tensor>;

/// The weights in a folder of TensorFlow.js.
///
/// # Errors
/// A file that is missing, cut short or of another model.
pub(super) fn open(folder: &Path) -> Result<Weights, BenchmarkError> {
    read(folder).map_err(|reason| BenchmarkError::BadInput(format!("{}: {reason}", folder.display())))
}

fn read(folder: &Path) -> Result<Weights, String> {
    let file = |name: &str| std::fs::read(folder.join(name)).map_err(|error| format!("{name}: {error}"));
    let manifest: Manifest =
        serde_json::from_slice(&file(MODEL)?).map_err(|error| format!("{MODEL}: {error}"))?;
    let mut found: BTreeMap<String, Vec<f32>> = BTreeMap::new();
    for Group { paths, weights } in manifest.weights_manifest {
        let mut bytes = Vec::new();
        for path in &paths {
            // A name is one of a file beside the model's.
            if Path::new(path).components().count() != 1 {
                return Err(format!("{MODEL}: `{path}` is no name of a file"));
            }
            bytes.extend(file(path)?);
        }
        let mut rest = bytes.as_slice();
        for Entry { name, shape, dtype } in weights {
            if dtype != "float32" {
                return Err(format!("`{name}` is of {dtype}; float32 is known"));
            }
            let count = shape.iter().try_fold(4usize, |count, &dim| count.checked_mul(dim));
            let count = count.filter(|&count| count <= rest.len());
            let (values, after) = rest.split_at(count.ok_or(format!("`{name}`: its file is cut short"))?);
            rest = after;
            let word = |word: &[u8]| f32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            found.insert(name, values.chunks_exact(4).map(word).collect());
        }
    }
    let take = |name: String, count: usize| match found.get(&name) {
        Some(values) if values.len() == count => Ok(values.as_slice()),
        Some(values) => Err(format!("`{name}` has {} values, not {count}", values.len())),
        None => Err(format!("there is no `{name}`")),
    };
    let mut weights = Weights::new();
    for conv in convs() {
        let Conv { name, norm, outputs, .. } = &conv;
        let part = |layer: &str, part: &str| take(format!("{layer}/{part}"), *outputs);
        let kernel = take(format!("{name}/kernel"), conv.dims().iter().product())?;
        let [gamma, beta] = [part(norm, "gamma")?, part(norm, "beta")?];
        let [mean, variance] = [part(norm, "moving_mean")?, part(norm, "moving_variance")?];
        let scales: Vec<f32> =
            gamma.iter().zip(variance).map(|(gamma, variance)| gamma / (variance + EPSILON).sqrt()).collect();
        // The outputs are the last axis.
        let folded: Vec<f32> = kernel
            .chunks(*outputs)
            .flat_map(|row| row.iter().zip(&scales).map(|(value, scale)| value * scale))
            .collect();
        let bias: Vec<f32> = part(name, "bias")?
            .iter()
            .zip(mean)
            .zip(scales.iter().zip(beta))
            .map(|((bias, mean), (scale, beta))| (bias - mean) * scale + beta)
            .collect();
        add(&mut weights, &conv, &folded, &bias)?;
    }
    let kernel = take("fc1000/kernel".to_owned(), FEATURES * CLASSES)?;
    insert(&mut weights, "fc1000.kernel", &[FEATURES, CLASSES], kernel)?;
    insert(&mut weights, "fc1000.bias", &[CLASSES], take("fc1000/bias".to_owned(), CLASSES)?)?;
    Ok(weights)
}

fn add(weights: &mut Weights, conv: &Conv, kernel: &[f32], bias: &[f32]) -> Result<(), String> {
    insert(weights, &format!("{}.kernel", conv.name), &conv.dims(), kernel)?;
    insert(weights, &format!("{}.bias", conv.name), &[conv.outputs], bias)
}

fn insert(weights: &mut Weights, name: &str, dims: &[usize], values: &[f32]) -> Result<(), String> {
    let tensor = Tensor::from_slice(dims, values).map_err(|error| error.to_string())?;
    weights.insert(name.to_owned(), tensor);
    Ok(())
}

/// Weights from a seed, of magnitudes that keep activations of one magnitude.
///
/// # Errors
/// When there is no memory for them.
pub(super) fn seeded(seed: u64) -> Result<Weights, BenchmarkError> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut uniform = |count: usize, deviation: f64| -> Vec<f32> {
        let width = (deviation * 12f64.sqrt()) as f32;
        std::iter::repeat_with(|| (random.f32() - 0.5) * width).take(count).collect()
    };
    let mut weights = Weights::new();
    let mut fill = || -> Result<(), String> {
        for conv in convs() {
            let terms = conv.kernel * conv.kernel * conv.inputs;
            // The last of a block is added to its input, and would make it grow.
            let part = if conv.name.ends_with("2c") { 0.3 } else { 1.0 };
            let kernel = uniform(terms * conv.outputs, part * (2.0 / terms as f64).sqrt());
            add(&mut weights, &conv, &kernel, &uniform(conv.outputs, 0.1))?;
        }
        let kernel = uniform(FEATURES * CLASSES, (FEATURES as f64).powf(-0.5));
        insert(&mut weights, "fc1000.kernel", &[FEATURES, CLASSES], &kernel)?;
        insert(&mut weights, "fc1000.bias", &[CLASSES], &uniform(CLASSES, 0.1))
    };
    fill().map_err(BenchmarkError::Failed)?;
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_cut_short_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let failure = |text: &str| {
            std::fs::write(folder.path().join(MODEL), text).unwrap();
            open(folder.path()).unwrap_err().to_string()
        };
        assert!(open(folder.path()).unwrap_err().to_string().contains(MODEL));
        std::fs::write(folder.path().join("one.bin"), [0; 12]).unwrap();
        let manifest = |path: &str, shape: &str, dtype: &str| {
            format!(
                r#"{{"weightsManifest": [{{"paths": ["{path}"], "weights": [{{"name": "conv1/kernel", "shape": {shape}, "dtype": "{dtype}"}}]}}]}}"#
            )
        };
        for (text, message) in [
            ("{}".to_owned(), "weightsManifest"),
            (manifest("two.bin", "[3]", "float32"), "two.bin"),
            (manifest("../one.bin", "[3]", "float32"), "no name of a file"),
            (manifest("one.bin", "[4]", "float32"), "cut short"),
            (manifest("one.bin", "[18446744073709551615]", "float32"), "cut short"),
            (manifest("one.bin", "[3]", "uint8"), "is of uint8"),
            (manifest("one.bin", "[3]", "float32"), "has 3 values, not 9408"),
        ] {
            let error = failure(&text);
            assert!(error.contains(message), "{error}");
        }
    }
}
