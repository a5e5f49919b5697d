//! `resnet50_infer`: classes of images by ResNet-50.

mod layers;
mod program;
mod weights;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use warpforge::io::safetensors;
use warpforge::{CompileOptions, CompiledModel, Model, Precision, Tensor, Tier};

use self::layers::CLASSES;
use self::weights::Weights;
use super::measure;
use super::settings::{Scenario, Settings, called, spec, takes};
use super::system::{Answer, First, System};
use crate::benchmark::{Benchmark, BenchmarkError, RunContext, text};
use crate::record::{BenchmarkSpec, ParamValue, Params};
use crate::suites::packages;
use crate::suites::values::bad_value;

/// Pixels of a side.
const SIDE: usize = 224;
/// The reference interpreter computes a part of an image: all layers, in a fraction of the time.
const CHECKED_SIDE: usize = 64;
/// What is subtracted from the channels of an image, blue first, as the weights were trained.
const MEANS: [f32; 3] = [103.939, 116.779, 123.68];
/// Images in a hundred that must have the class of a batch of one: MLPerf's own bound.
const QUALITY: f64 = 99.0;

/// The benchmark.
#[derive(Debug)]
pub(super) struct Resnet50Infer;

impl Benchmark for Resnet50Infer {
    fn spec(&self) -> BenchmarkSpec {
        let description = "Classes of images of 224 by 224 pixels by ResNet-50, driven by MLPerf's LoadGen. Not an MLPerf result.";
        let own = [
            ("model", ParamValue::Text("ResNet-50".to_owned())),
            ("data", ParamValue::Text(String::new())),
            ("type", ParamValue::Text("bf16".to_owned())),
        ];
        spec("resnet50_infer", description, [32, 8], &own)
    }

    fn takes(&self) -> Vec<(&'static str, String)> {
        takes(&[
            (
                "model",
                format!(
                    "the folder of Keras' ResNet50 for TensorFlow.js; {} from an installed package; empty for weights from the \
                     seed",
                    packages::names(&packages::RESNET)
                ),
            ),
            (
                "data",
                "a safetensors file with `images`, f32 of [N, 224, 224, 3] as the model takes them, and `labels`, i64 of [N]; \
                 empty for generated images"
                    .to_owned(),
            ),
            ("type", "f32 or bf16: what convolutions multiply in".to_owned()),
        ])
    }

    fn prepare(&self, params: &Params) -> Result<(), BenchmarkError> {
        Settings::from("resnet50_infer", params)?;
        Own::from(params)?;
        super::loadgen::python().map(drop)
    }

    fn run(&self, context: &mut RunContext<'_>) -> Result<(), BenchmarkError> {
        let own = Own::from(context.params())?;
        let mut settings = Settings::from("resnet50_infer", context.params())?
            .with_tag("model", called(own.model.as_deref()))
            .with_tag("data", called(own.data.as_deref()))
            .with_tag("type", if own.precision == Precision::Bf16 { "bf16" } else { "f32" });
        let mut resnet = Resnet::new(&settings, &own)?;
        settings.samples = resnet.samples();
        measure::run(context, &settings, "resnet50", &mut resnet)
    }
}

/// Its own parameters.
struct Own {
    model: Option<PathBuf>,
    data: Option<PathBuf>,
    precision: Precision,
}

impl Own {
    fn from(params: &Params) -> Result<Self, BenchmarkError> {
        let precision = match text(params, "type") {
            "f32" => Precision::Model,
            "bf16" => Precision::Bf16,
            other => return Err(bad_value("type", &other, "give f32 or bf16")),
        };
        let data = Some(text(params, "data")).filter(|data| !data.is_empty()).map(PathBuf::from);
        if let Some(file) = data.as_ref().filter(|file| !file.is_file()) {
            return Err(bad_value("data", &file.display(), "there is no such file"));
        }
        let model = match text(params, "model") {
            "" => None,
            value => Some(packages::find("model", value, &packages::RESNET)?),
        };
        Ok(Self { model, data, precision })
    }
}

/// Images, and their classes where they are known.
struct Images {
    pixels: Vec<Vec<f32>>,
    labels: Option<Vec<i64>>,
}

impl Images {
    /// Smooth patches of colour and noise from a seed.
    fn generated(count: usize, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x0069_6d67);
        let mut image = || {
            let waves: Vec<[f32; 4]> = (0..9)
                .map(|_| [random.f32() * 0.2, random.f32() * 0.2, random.f32() * 6.3, random.f32() * 60.0])
                .collect();
            let mut pixels = Vec::with_capacity(SIDE * SIDE * 3);
            for at in 0..SIDE * SIDE {
                let (y, x) = ((at / SIDE) as f32, (at % SIDE) as f32);
                for (channel, mean) in MEANS.iter().enumerate() {
                    let waves = waves[3 * channel..3 * channel + 3].iter();
                    let sum: f32 = waves.map(|[fy, fx, at, size]| size * (fy * y + fx * x + at).sin()).sum();
                    pixels.push((128.0 + sum + 20.0 * (random.f32() - 0.5)).clamp(0.0, 255.0) - mean);
                }
            }
            pixels
        };
        Self { pixels: (0..count).map(|_| image()).collect(), labels: None }
    }

    /// The first images of a file.
    fn open(path: &Path, most: usize) -> Result<Self, BenchmarkError> {
        let wrong = |reason: &dyn std::fmt::Display| bad_value("data", &path.display(), &reason.to_string());
        let tensors = safetensors::read(path).map_err(|error| wrong(&error))?;
        let get = |name: &str| tensors.get(name).ok_or_else(|| wrong(&format!("there is no `{name}`")));
        let (images, labels) = (get("images")?, get("labels")?);
        let dims = images.dims();
        if dims.len() != 4 || dims[1..] != [SIDE, SIDE, 3] || dims[0] == 0 || labels.dims() != &dims[..1] {
            let reason =
                format!("images are {dims:?} and labels {:?}, not [N, 224, 224, 3] and [N]", labels.dims());
            return Err(wrong(&reason));
        }
        let pixels = images.as_slice::<f32>().map_err(|error| wrong(&error))?;
        let labels = labels.as_slice::<i64>().map_err(|error| wrong(&error))?;
        Ok(Self {
            pixels: pixels.chunks(SIDE * SIDE * 3).take(most).map(<[f32]>::to_vec).collect(),
            labels: Some(labels.iter().copied().take(most).collect()),
        })
    }
}

/// The model and its images.
struct Resnet {
    weights: Weights,
    options: CompileOptions,
    images: Images,
    batch: usize,
    programs: BTreeMap<usize, CompiledModel>,
}

impl Resnet {
    fn new(settings: &Settings, own: &Own) -> Result<Self, BenchmarkError> {
        let weights = match &own.model {
            Some(folder) => weights::open(folder)?,
            None => weights::seeded(settings.seed)?,
        };
        let images = match &own.data {
            Some(file) => Images::open(file, settings.samples)?,
            None => Images::generated(settings.samples, settings.seed),
        };
        let options = CompileOptions { precision: own.precision, ..settings.options() };
        let batch = settings.most_at_once();
        let mut resnet = Self { weights, options, images, batch, programs: BTreeMap::new() };
        let sizes = match settings.scenario {
            Scenario::Server => vec![1, batch],
            _ => vec![batch],
        };
        for size in sizes {
            let program = resnet.compiled(size, SIDE, &resnet.options)?;
            resnet.programs.insert(size, program);
        }
        Ok(resnet)
    }

    fn compiled(
        &self,
        batch: usize,
        side: usize,
        options: &CompileOptions,
    ) -> Result<CompiledModel, BenchmarkError> {
        let mut model = Model::from_text("resnet50.mlir", program::module(batch, side)).map_err(failed)?;
        model.bind_weights(&self.weights).map_err(failed)?;
        model.compile(options).map_err(|error| match error.is_not_offered() {
            true => BenchmarkError::NotPossible(error.to_string()),
            false => failed(error),
        })
    }

    /// The logits of a batch of images.
    fn logits(program: &CompiledModel, pixels: &[f32], side: usize) -> Result<Tensor, BenchmarkError> {
        let dims = [pixels.len() / (side * side * 3), side, side, 3];
        let images = Tensor::from_slice(&dims, pixels).map_err(failed)?;
        let outputs = program.run([("images", images)]).map_err(failed)?;
        outputs.get("logits").cloned().ok_or_else(|| failed("the program gave no logits"))
    }

    /// The classes of some samples.
    fn classes(&self, samples: &[usize]) -> Result<Vec<i32>, BenchmarkError> {
        let fits = self.programs.range(samples.len()..).next();
        let (&size, program) = fits.ok_or_else(|| failed("more samples than a batch"))?;
        let rows = (0..size).map(|at| samples[at.min(samples.len() - 1)]);
        let pixels: Vec<f32> = rows.flat_map(|sample| self.images.pixels[sample].iter().copied()).collect();
        let logits = Self::logits(program, &pixels, SIDE)?;
        let logits = logits.as_slice::<f32>().map_err(failed)?;
        Ok(logits.chunks(CLASSES).take(samples.len()).map(|row| largest(row) as i32).collect())
    }

    /// How far logits may be from the reference's, relative to the largest: 53 convolutions in a row.
    fn tolerance(&self) -> f32 {
        if self.options.precision == Precision::Bf16 { 5e-2 } else { 1e-3 }
    }
}

impl System for Resnet {
    fn samples(&self) -> usize {
        self.images.pixels.len()
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn answer(&mut self, samples: &[usize], _first: First<'_>) -> Result<Vec<Answer>, BenchmarkError> {
        let classes = self.classes(samples)?;
        Ok(classes
            .into_iter()
            .map(|class| Answer { data: class.to_le_bytes().to_vec(), tokens: 0 })
            .collect())
    }

    /// The corner of an image by the engine and by the reference interpreter.
    fn judge(&mut self) -> Result<(), BenchmarkError> {
        let row = |y: usize| &self.images.pixels[0][y * SIDE * 3..(y * SIDE + CHECKED_SIDE) * 3];
        let corner: Vec<f32> = (0..CHECKED_SIDE).flat_map(row).copied().collect();
        let reference = CompileOptions { tier: Some(Tier::Correctness), ..CompileOptions::default() };
        let [found, right] = [&self.options, &reference]
            .map(|options| Self::logits(&self.compiled(1, CHECKED_SIDE, options)?, &corner, CHECKED_SIDE));
        let (found, right) = (found?, right?);
        held(found.as_slice().map_err(failed)?, right.as_slice().map_err(failed)?, self.tolerance())
    }

    /// How many in a hundred images have their label. Without labels: how many have the class that they have alone in f32, or
    /// one whose logit there is as good as the largest.
    fn accuracy(&mut self, answers: &[Vec<u8>]) -> Result<f64, BenchmarkError> {
        let class =
            |data: &Vec<u8>| usize::try_from(i32::from_le_bytes(data.as_slice().try_into().ok()?)).ok();
        let found: Vec<usize> = answers
            .iter()
            .map(|data| class(data).filter(|&class| class < CLASSES))
            .collect::<Option<_>>()
            .ok_or_else(|| failed("wrong answer: one is no class"))?;
        let percent = |right: usize| 100.0 * right as f64 / found.len().max(1) as f64;
        if let Some(labels) = &self.images.labels {
            let right = found.iter().zip(labels).filter(|(found, label)| **found as i64 == **label);
            return Ok(percent(right.count()));
        }
        let options = CompileOptions { precision: Precision::Model, ..self.options.clone() };
        let program = self.compiled(1, SIDE, &options)?;
        let mut right = 0;
        for (&class, pixels) in found.iter().zip(&self.images.pixels) {
            let logits = Self::logits(&program, pixels, SIDE)?;
            let logits = logits.as_slice::<f32>().map_err(failed)?;
            let most = logits.iter().map(|value| value.abs()).fold(0.0, f32::max);
            right += usize::from(logits[largest(logits)] - logits[class] <= self.tolerance() * most);
        }
        match percent(right) {
            right if right >= QUALITY => Ok(right),
            right => {
                Err(failed(format!("wrong answer: {right:.1} % of the classes are right, not {QUALITY} %")))
            }
        }
    }
}

/// Holds logits to the reference's.
fn held(found: &[f32], right: &[f32], tolerance: f32) -> Result<(), BenchmarkError> {
    let most = right.iter().map(|value| value.abs()).fold(0.0, f32::max);
    let apart = |(found, right): (&f32, &f32)| match (found - right).abs() {
        distance if distance.is_nan() => f32::INFINITY,
        distance => distance,
    };
    let worst = found.iter().zip(right).map(apart).fold(0.0, f32::max);
    if worst <= tolerance * most && found.len() == right.len() {
        return Ok(());
    }
    Err(failed(format!(
        "wrong answer: a logit is {worst:.1e} from the reference's, at most {:.1e} is right",
        tolerance * most
    )))
}

fn largest(row: &[f32]) -> usize {
    crate::suites::pepbench::llm::decoder::greedy(row)
}

fn failed(error: impl std::fmt::Display) -> BenchmarkError {
    BenchmarkError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_must_be_the_references() {
        held(&[1.0, -2.0], &[1.001, -2.0], 1e-3).unwrap();
        for wrong in [&[1.0, -2.0][..], &[1.1, f32::NAN], &[1.1]] {
            let error = held(wrong, &[1.1, -2.0], 1e-3).unwrap_err().to_string();
            assert!(error.starts_with("wrong answer"), "{error}");
        }
    }

    #[test]
    fn a_file_of_images_is_read_and_another_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("images.safetensors");
        let write = |dims: &[usize], labels: &[i64]| {
            let images = Tensor::from_slice(dims, &vec![0.5f32; dims.iter().product()]).unwrap();
            let labels = Tensor::from_slice(&[labels.len()], labels).unwrap();
            safetensors::write(&path, [("images", &images), ("labels", &labels)]).unwrap();
        };
        write(&[2, SIDE, SIDE, 3], &[7, 8]);
        let read = Images::open(&path, 5).unwrap();
        assert_eq!((read.pixels.len(), read.labels), (2, Some(vec![7, 8])));
        write(&[2, SIDE, SIDE, 3], &[7]);
        assert!(Images::open(&path, 5).err().unwrap().to_string().contains("labels [1]"));
        write(&[2, 8, 8, 3], &[7, 8]);
        assert!(Images::open(&path, 5).err().unwrap().to_string().contains("not [N, 224, 224, 3]"));
        std::fs::write(&path, "no tensors").unwrap();
        assert!(Images::open(&path, 5).err().unwrap().to_string().contains("data="));
    }

    #[test]
    fn images_of_a_seed_are_the_same() {
        let images = Images::generated(2, 3);
        assert_eq!(images.pixels, Images::generated(2, 3).pixels);
        assert_ne!(images.pixels[0], images.pixels[1]);
        assert!(images.pixels.iter().flatten().all(|value| value.abs() <= 256.0));
    }
}
