//! Reading the model files that commands are given.

use std::io::Write as _;
use std::path::Path;

use anyhow::anyhow;
use warpforge::io::output::Output;
use warpforge::io::safetensors;
use warpforge::{Contents, Module, shown};
use warpforge_diag::Source;
use warpforge_report::number;
use warpforge_snakeburger::{Loaded, text};
use warpforge_snakegrinder::{self as snakegrinder, ImportOptions, Imported};
use warpforge_tensor::Tensor;

use crate::exit::Failure;
use crate::output;

/// What a model file holds.
pub(super) enum Model {
    /// The import of a PyTorch archive. Its weights are arguments.
    Archive(Box<Imported>),
    /// Modules, each with its source, or what is wrong with it.
    Modules(Vec<Loaded>),
}

/// An archive cannot be used.
pub(super) fn refused(path: &Path, error: &snakegrinder::Error) -> Failure {
    Failure::bad_input(match error {
        // The operating system's reason comes with the path.
        snakegrinder::Error::File(warpforge_tensor::Error::Io { .. }) => anyhow!("{error}"),
        _ => anyhow!("{}: {error}", shown(path)),
    })
}

/// Reads a file. An archive is imported.
pub(super) fn read(path: &Path, keep_locations: bool) -> Result<Model, Failure> {
    let unusable = |error: &dyn std::fmt::Display| Failure::bad_input(anyhow!("{}: {error}", shown(path)));
    match Contents::read(path, &text::Options { keep_locations }).map_err(|error| unusable(&error))? {
        Contents::Archive => {
            let archive = snakegrinder::open(path).map_err(|error| refused(path, &error))?;
            let imported =
                archive.import(&ImportOptions::default()).map_err(|error| refused(path, &error))?;
            Ok(Model::Archive(Box::new(imported)))
        }
        Contents::Modules { modules, .. } if modules.is_empty() => Err(unusable(&"the file has no module")),
        Contents::Modules { modules, .. } => Ok(Model::Modules(modules)),
    }
}

/// The modules of a file. An archive is one module, and its weights are arguments.
pub(super) fn modules(path: &Path, keep_locations: bool) -> Result<Vec<Loaded>, Failure> {
    Ok(match read(path, keep_locations)? {
        Model::Archive(imported) => {
            vec![Loaded { source: Source::binary(shown(path)), module: Ok(imported.module) }]
        }
        Model::Modules(modules) => modules,
    })
}

/// A file of weights that takes its name when the module that needs it has its own: both files or neither.
pub(super) struct WeightsFile<'a> {
    path: &'a Path,
    file: Output,
}

impl WeightsFile<'_> {
    pub(super) fn finish(self) -> Result<(), Failure> {
        output::written(self.path, self.file.finish())
    }
}

/// The module of an archive with its weights as constants, or as arguments beside a file of them.
pub(super) fn with_weights<'a>(
    imported: Imported,
    file: Option<&'a Path>,
    model: &Path,
) -> Result<(Module, Option<WeightsFile<'a>>), Failure> {
    let Some(path) = file else {
        let whole = imported.into_self_contained();
        return whole
            .map(|module| (module, None))
            .map_err(|error| Failure::bad_input(anyhow!("{}: {error}", shown(model))));
    };
    let unwritten = |error: warpforge_tensor::Error| {
        Failure::not_possible(anyhow!("cannot write {}: {error}", path.display()))
    };
    let stored =
        imported.weights.iter().map(|(name, tensor)| Ok((name.as_str(), safetensors::storable(tensor)?)));
    let stored: Vec<(&str, Tensor)> = stored.collect::<Result<_, _>>().map_err(unwritten)?;
    let mut file = output::written(path, Output::create(path))?;
    safetensors::write_to(&mut file, path, stored.iter().map(|(name, tensor)| (*name, tensor)))
        .map_err(|error| Failure::not_possible(anyhow!("cannot write {error}")))?;
    // What cannot be written is found before the module is.
    output::written(path, file.flush())?;
    Ok((imported.module, Some(WeightsFile { path, file })))
}

/// How many weights an import has and where they went, for people.
pub(super) fn weights_text((count, bytes): (usize, usize), file: Option<&Path>) -> String {
    let place = file.map_or_else(|| "in the module".to_owned(), |path| format!("in {}", path.display()));
    format!("{count} weights ({}) {place}", number::bytes(bytes as u64))
}

/// How many weights an import has, and their bytes.
pub(super) fn weights_of(imported: &Imported) -> (usize, usize) {
    (imported.weights.len(), imported.weights.values().map(|tensor| tensor.bytes().len()).sum())
}
