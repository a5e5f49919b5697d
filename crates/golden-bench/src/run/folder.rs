//! The folder of a second pass: what is written as it goes, and going on after it was stopped.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use warpforge::Inputs;
use warpforge_golden::folder::FolderWriter;
use warpforge_tensor::io::{output, safetensors};

use crate::Error;

/// What only an unfinished run has: which one it is.
const MARK: &str = "run.json";
/// The state of the last checkpoint.
const STATE: &str = "resume.state";
/// The numbers of each step, as they come.
pub(super) const PROGRESS: &str = "progress.jsonl";

/// Which run it is. One that is another cannot go on with its folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// The SHA-256 of the golden run's manifest.
    pub(super) golden: String,
    pub(super) device: String,
    pub(super) tier: String,
    pub(super) precision: String,
    pub(super) inject: Option<String>,
    #[serde(default)]
    pub(super) selection: Option<String>,
    #[serde(default = "one")]
    pub(super) ranks: usize,
}

fn one() -> usize {
    1
}

/// The numbers of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepNumbers {
    /// The step, from 0.
    pub step: u64,
    /// The loss before its update.
    pub loss: f64,
    /// The learning rate.
    pub lr: f64,
    /// The norm of all gradients, where they are clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grad_norm: Option<f64>,
    /// How long it took.
    pub seconds: f64,
    /// What the loss is the sum of, where the model says.
    #[serde(flatten)]
    pub parts: BTreeMap<String, f64>,
}

/// The folder while the run goes on.
pub(super) struct RunFolder {
    pub(super) path: PathBuf,
    pub(super) writer: FolderWriter,
    progress: File,
}

impl RunFolder {
    /// Starts a folder, or goes on with one: the state of its last checkpoint, and the numbers of the steps before it.
    pub(super) fn open(
        path: &Path,
        identity: &Identity,
    ) -> Result<(Self, Option<Inputs>, Vec<StepNumbers>), Error> {
        let finished = path.join("manifest.json").is_file();
        let mark = path.join(MARK);
        let stopped = !finished && mark.is_file();
        let writer = FolderWriter::resume(path, MARK)?;
        let (state, numbers) = match stopped {
            true => earlier(path, identity)?,
            false => (None, Vec::new()),
        };
        if !stopped || state.is_none() {
            let text =
                serde_json::to_string_pretty(identity).map_err(|error| Error::io(&mark)(error.into()))?;
            remove(&path.join(STATE))?;
            output::write(&mark, text.as_bytes()).map_err(Error::io(&mark))?;
        }
        // Steps behind the checkpoint are made again.
        let file = path.join(PROGRESS);
        let lines: String =
            numbers.iter().filter_map(|step| Some(serde_json::to_string(step).ok()? + "\n")).collect();
        output::write(&file, lines.as_bytes()).map_err(Error::io(&file))?;
        let progress = OpenOptions::new().append(true).open(&file).map_err(Error::io(&file))?;
        Ok((Self { path: path.to_owned(), writer, progress }, state, numbers))
    }

    /// Writes the numbers of a step.
    pub(super) fn step(&mut self, numbers: &StepNumbers) -> Result<(), Error> {
        let path = self.path.join(PROGRESS);
        let line = serde_json::to_string(numbers).map_err(|error| Error::io(&path)(error.into()))? + "\n";
        self.progress.write_all(line.as_bytes()).map_err(Error::io(&path))
    }

    /// The file of the state.
    pub(super) fn state(&self) -> PathBuf {
        self.path.join(STATE)
    }

    /// Lists the files of a step that an earlier part of the run wrote.
    pub(super) fn adopt(&mut self, step: &str) -> Result<(), Error> {
        let mut pending = vec![PathBuf::from(step)];
        while let Some(inside) = pending.pop() {
            let here = self.path.join(&inside);
            let entries = std::fs::read_dir(&here).map_err(Error::io(&here))?;
            for entry in entries {
                let name = inside.join(entry.map_err(Error::io(&here))?.file_name());
                match self.path.join(&name).is_dir() {
                    true => pending.push(name),
                    false => self.writer.add(&name.to_string_lossy(), true)?,
                }
            }
        }
        Ok(())
    }

    /// Ends the run: with its manifest the folder is a whole one.
    pub(super) fn finish(self, manifest: warpforge_golden::folder::Manifest) -> Result<(), Error> {
        self.writer.finish(manifest)?;
        remove(&self.path.join(MARK))?;
        remove(&self.path.join(STATE))
    }
}

/// What an earlier part of the run left.
fn earlier(path: &Path, identity: &Identity) -> Result<(Option<Inputs>, Vec<StepNumbers>), Error> {
    let wrong = |reason: String| Error::Resume { path: path.display().to_string(), reason };
    let mark = path.join(MARK);
    let text = std::fs::read_to_string(&mark).map_err(Error::io(&mark))?;
    let other: Identity = serde_json::from_str(&text).map_err(|error| {
        wrong(format!("its {MARK} cannot be read: {error}; remove the folder to start again"))
    })?;
    if other != *identity {
        return Err(wrong(
            "it is the unfinished run of another golden folder, device, tier, precision or number of ranks; choose another folder, or remove it".to_owned(),
        ));
    }
    let state = path.join(STATE);
    if !state.is_file() {
        return Ok((None, Vec::new()));
    }
    let tensors = safetensors::read(&state).map_err(|error| {
        wrong(format!("{STATE} cannot be read: {error}; remove the folder to start again"))
    })?;
    let done = tensors.get("optimizer.step").map_or(0, |count| count.get(0).to_i128() as usize);
    let file = path.join(PROGRESS);
    let text = std::fs::read_to_string(&file).map_err(Error::io(&file))?;
    let numbers: Vec<StepNumbers> =
        text.lines().map_while(|line| serde_json::from_str(line).ok()).take(done).collect();
    if numbers.len() != done {
        let have = numbers.len();
        return Err(wrong(format!(
            "its checkpoint is of step {done}, and {PROGRESS} has {have}; remove the folder to start again"
        )));
    }
    Ok((Some(tensors.into()), numbers))
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path)(error)),
        _ => Ok(()),
    }
}

/// The lists of numbers as a golden folder has them.
pub(super) fn curves(steps: &[StepNumbers]) -> BTreeMap<String, Vec<f64>> {
    let mut lists = BTreeMap::from([
        ("loss".to_owned(), steps.iter().map(|step| step.loss).collect()),
        ("lr".to_owned(), steps.iter().map(|step| step.lr).collect()),
    ]);
    for name in steps.iter().flat_map(|step| step.parts.keys()) {
        let value = |step: &StepNumbers| step.parts.get(name).copied().unwrap_or(f64::NAN);
        lists.entry(name.clone()).or_insert_with(|| steps.iter().map(value).collect());
    }
    let norms: Option<Vec<f64>> = steps.iter().map(|step| step.grad_norm).collect();
    if let Some(norms) = norms.filter(|norms| !norms.is_empty()) {
        lists.insert("grad_norm".to_owned(), norms);
    }
    lists
}
