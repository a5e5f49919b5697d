//! The golden run that a second pass is compared with.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use warpforge::Inputs;

use crate::Error;
use crate::description::{Format, Overrides, Plan};
use crate::masks::{self, Masks};
use crate::task::{self, Task};

/// The newest form of the manifest's part about the benchmark.
const SCHEMA_VERSION: u64 = 1;

/// The graph of the part of a batch that one rank has; only a run of several ranks has it.
pub(crate) const RANK_ARCHIVE: &str = "rank.pt2";

/// What somebody wants to run, to be held against what was recorded.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The benchmark.
    pub benchmark: &'a str,
    /// The preset, where one was named.
    pub preset: Option<&'a str>,
    /// What the command line says.
    pub overrides: &'a Overrides,
}

/// A golden run: its folder, plan and data.
#[derive(Debug, Clone)]
pub struct GoldenRun {
    /// Its folder.
    pub folder: PathBuf,
    /// The SHA-256 of its manifest.
    pub identity: String,
    /// What was done.
    pub plan: Plan,
    /// How many updates it has.
    pub steps: u64,
    /// Of these, how many warm up.
    pub warmup: u64,
    /// The updates from which on the learning rate is smaller.
    pub milestones: Vec<u64>,
    /// The examples of each micro-batch.
    pub order: Vec<Vec<usize>>,
    /// The steps that were looked at.
    pub observed: Vec<u64>,
    /// The masks that dropout drew, which are data of each run then.
    masks: Option<Masks>,
    /// Whether a detector chose boxes, which are data of each run then.
    selection: bool,
    features: BTreeMap<String, Features>,
    files: BTreeMap<String, DataFile>,
}

/// Where the data are.
#[derive(Debug, Clone, Default)]
pub(crate) struct DataFiles {
    /// The golden folder itself.
    pub(crate) golden: PathBuf,
    pub(crate) train: PathBuf,
    pub(crate) eval: PathBuf,
    pub(crate) vocabulary: PathBuf,
}

#[derive(Deserialize)]
struct Manifest {
    benchmark: Option<serde_json::Value>,
    #[serde(default)]
    files: BTreeMap<String, Listed>,
}

#[derive(Deserialize)]
struct Listed {
    sha256: String,
}

#[derive(Deserialize)]
struct Version {
    schema_version: u64,
}

#[derive(Deserialize)]
struct Block {
    name: String,
    preset: Option<String>,
    plan: Plan,
    steps: u64,
    warmup: u64,
    files: BTreeMap<String, DataFile>,
    features: BTreeMap<String, Features>,
    order: String,
    observed: Vec<u64>,
    masks: bool,
    #[serde(default)]
    mask_axes: Vec<usize>,
    #[serde(default)]
    selection: bool,
    #[serde(default)]
    milestones: Vec<u64>,
}

#[derive(Debug, Clone, Deserialize)]
struct DataFile {
    path: PathBuf,
    sha256: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Features {
    count: usize,
    sha256: String,
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn sha256(path: &Path) -> Result<String, Error> {
    Ok(hexadecimal(&Sha256::digest(&*warpforge_tensor::io::map_file(path)?)))
}

impl GoldenRun {
    /// Opens the folder of a golden run, and refuses one that is not what is wanted.
    ///
    /// # Errors
    ///
    /// When the folder has no golden run, or one of another benchmark, model, seed, size or version.
    pub fn open(folder: &Path, wanted: &Wanted<'_>) -> Result<Self, Error> {
        let path = folder.join("manifest.json");
        let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
        let wrong = |reason: String| Error::golden(folder, reason);
        let manifest: Manifest = serde_json::from_slice(&bytes)
            .map_err(|error| wrong(format!("its manifest cannot be read: {error}")))?;
        let block = manifest.benchmark.ok_or_else(|| {
            wrong("it is no golden run of a benchmark; `warpt golden record` makes one".to_owned())
        })?;
        let Version { schema_version } = Version::deserialize(&block)
            .map_err(|error| wrong(format!("its manifest cannot be read: {error}")))?;
        if schema_version != SCHEMA_VERSION {
            return Err(wrong(format!(
                "it was recorded in form {schema_version}, known here is {SCHEMA_VERSION}; record it again"
            )));
        }
        let block = Block::deserialize(block)
            .map_err(|error| wrong(format!("its manifest cannot be read: {error}")))?;
        differences(&block, wanted).map_err(wrong)?;
        let listed = |name: &str| -> Result<(), Error> {
            let found = sha256(&folder.join(name))?;
            match manifest.files.get(name) {
                Some(entry) if entry.sha256 == found => Ok(()),
                _ => Err(Error::golden(folder, format!("`{name}` is not the file that its manifest lists"))),
            }
        };
        listed("order.json")?;
        if block.plan.training.ranks > 1 {
            listed(RANK_ARCHIVE)?;
        }
        let text = std::fs::read(folder.join("order.json")).map_err(Error::io(&path))?;
        let order: Vec<Vec<usize>> = serde_json::from_slice(&text)
            .map_err(|error| Error::golden(folder, format!("order.json cannot be read: {error}")))?;
        if block.order != hexadecimal(&Sha256::digest(python_json(&order).as_bytes())) {
            return Err(Error::golden(
                folder,
                "order.json has another order than the run had; record it again",
            ));
        }
        let runs = block.steps * block.plan.training.accumulate;
        let size = block.plan.training.batch_size;
        if order.len() as u64 != runs || order.iter().any(|batch| batch.len() != size) {
            return Err(Error::golden(folder, format!("order.json has no {runs} batches of {size}")));
        }
        let ranks = block.plan.training.ranks;
        Ok(Self {
            masks: block.masks.then(|| Masks::new(folder, block.mask_axes, ranks)),
            folder: folder.to_owned(),
            identity: hexadecimal(&Sha256::digest(&bytes)),
            plan: block.plan,
            steps: block.steps,
            warmup: block.warmup,
            milestones: block.milestones,
            order,
            observed: block.observed,
            selection: block.selection,
            features: block.features,
            files: block.files,
        })
    }

    /// Reads the data by our own pipeline, and refuses it where a feature is not the one that the golden run had.
    pub(crate) fn task(&self) -> Result<Box<dyn Task>, Error> {
        let mut files = DataFiles { golden: self.folder.clone(), ..DataFiles::default() };
        let with_text = matches!(self.plan.data.format, Format::Squad | Format::Instruct);
        let vocabulary = with_text.then_some("vocabulary");
        for part in ["train", "eval"].into_iter().chain(vocabulary) {
            let Some(file) = self.files.get(part) else {
                return Err(Error::golden(&self.folder, format!("its manifest names no file of {part}")));
            };
            // Data that were made for the run are in its folder.
            let path = self.folder.join(&file.path);
            let found = sha256(&path)?;
            if found != file.sha256 {
                let recorded = &file.sha256;
                return Err(Error::data(
                    &path,
                    format!(
                        "it is not the file that the golden run had: its SHA-256 is {found}, that of the run {recorded}; is it cut off?"
                    ),
                ));
            }
            *match part {
                "train" => &mut files.train,
                "eval" => &mut files.eval,
                _ => &mut files.vocabulary,
            } = path;
        }
        let task = task::load(&self.plan, &files)?;
        for part in ["train", "eval"] {
            self.check_features(task.as_ref(), part)?;
        }
        let most = self.order.iter().flatten().max().copied().unwrap_or(0);
        if most >= task.examples("train") {
            let count = task.examples("train");
            return Err(Error::golden(
                &self.folder,
                format!("order.json has example {most}, and there are {count}"),
            ));
        }
        Ok(task)
    }

    /// The inputs of a forward pass: a batch in the recorded order, and what was drawn or chosen for it: masks of
    /// dropout, boxes of a detector.
    pub(crate) fn batch(&self, task: &dyn Task, run: u64) -> Result<Inputs, Error> {
        self.part(task, run, 0, 1)
    }

    /// One of so many equal parts of a batch.
    pub(crate) fn part(&self, task: &dyn Task, run: u64, part: usize, parts: usize) -> Result<Inputs, Error> {
        let indices = usize::try_from(run).ok().and_then(|run| self.order.get(run));
        let indices = indices.map(Vec::as_slice).unwrap_or_default();
        let range = indices.len() * part / parts..indices.len() * (part + 1) / parts;
        let mut inputs = task.batch(indices.get(range).unwrap_or_default())?;
        let mut recorded = Vec::new();
        if let Some(masks) = &self.masks {
            recorded.push(masks.part(run, part, parts)?);
        }
        if self.selection {
            recorded.push(masks::read(&self.folder.join(format!("selection/run_{run:06}.safetensors")))?);
        }
        recorded.into_iter().flatten().for_each(|(name, tensor)| inputs.insert(name, tensor));
        Ok(inputs)
    }

    fn check_features(&self, task: &dyn Task, part: &str) -> Result<(), Error> {
        let wrong = |reason: String| Error::golden(&self.folder, reason);
        let (all, each) = task::digest(task, part);
        let recorded = self
            .features
            .get(part)
            .ok_or_else(|| wrong(format!("its manifest has no features of {part}")))?;
        if recorded.sha256 == all {
            return Ok(());
        }
        let path = self.folder.join("features.json");
        let text = std::fs::read(&path).map_err(Error::io(&path))?;
        let lists: BTreeMap<String, Vec<u32>> = serde_json::from_slice(&text)
            .map_err(|error| wrong(format!("features.json cannot be read: {error}")))?;
        let golden = lists.get(part).map(Vec::as_slice).unwrap_or_default();
        let first = golden.iter().zip(&each).position(|(golden, own)| golden != own);
        let (count, own) = (recorded.count, each.len());
        Err(wrong(match first {
            Some(index) => format!(
                "feature {index} of {part} is not the one of the golden run; it has {count}, this one {own}"
            ),
            None => format!("the golden run has {count} features of {part}, this one {own}"),
        }))
    }
}

/// What differs between the recorded run and the wanted one.
fn differences(block: &Block, wanted: &Wanted<'_>) -> Result<(), String> {
    let again = "record it again, or leave the option out";
    if block.name != wanted.benchmark {
        return Err(format!("it is a run of `{}`, not of `{}`", block.name, wanted.benchmark));
    }
    let recorded = block.preset.as_deref();
    if wanted.preset.is_some() && wanted.preset != recorded {
        let (recorded, preset) = (recorded.unwrap_or("none"), wanted.preset.unwrap_or("none"));
        return Err(format!("it has the preset {recorded}, not {preset}; {again}"));
    }
    // How many ranks there are is how it is run, not what.
    let Overrides { model, data, epochs, batch_size, steps, seed, ranks: _ } = wanted.overrides;
    let training = &block.plan.training;
    let pairs: [(&str, Option<u64>, u64); 4] = [
        ("--epochs", *epochs, training.epochs),
        ("--batch-size", batch_size.map(|size| size as u64), training.batch_size as u64),
        ("--steps", *steps, block.steps),
        ("--seed", seed.map(u64::from), u64::from(training.seed)),
    ];
    for (option, given, recorded) in pairs {
        if let Some(given) = given.filter(|given| *given != recorded) {
            return Err(format!("it was recorded with {option} {recorded}, not {given}; {again}"));
        }
    }
    if let Some(model) = model
        && block.plan.model.weights != Some(crate::description::Source::Path(model.clone()))
    {
        return Err(format!("it was not recorded with --model {}; {again}", model.display()));
    }
    if let Some(data) = data
        && block.plan.data.train != Some(crate::description::Source::Path(data.clone()))
    {
        return Err(format!("it was not recorded with --data {}; {again}", data.display()));
    }
    Ok(())
}

/// Lists of numbers as Python's `json.dumps` writes them.
fn python_json(lists: &[Vec<usize>]) -> String {
    let join = |parts: Vec<String>| format!("[{}]", parts.join(", "));
    join(lists.iter().map(|list| join(list.iter().map(usize::to_string).collect())).collect())
}
