//! Pass 1: PyTorch trains, in a Python of the user's. Nothing of the numbers is computed here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::description::{Format, Plan, Source};
use crate::{Error, generate, instruct};

/// The Python that PyTorch is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    /// The interpreter.
    pub interpreter: PathBuf,
    /// What names it, for messages: an option or a variable.
    pub named_by: &'static str,
}

/// Finds out whether the package is there before anything is written.
const CHECK: &str = "import importlib.util, sys
missing = [name for name in sys.argv[1:] if importlib.util.find_spec(name) is None]
print(' '.join(missing))";

impl Python {
    /// Refuses a Python that cannot record.
    fn check(&self, modules: &[&str]) -> Result<(), Error> {
        let Self { interpreter, named_by } = self;
        let shown = interpreter.display();
        let output = Command::new(interpreter).args(["-c", CHECK]).args(modules).output();
        let output = output.map_err(|error| {
            Error::Python(format!(
                "cannot start {shown}, which {named_by} names: {error}; name another with --python"
            ))
        })?;
        let missing = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Error::Python(format!("{shown} is no Python: {said}")));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let packages = missing.replace("warpforge", "the package in `python/`").replace("PIL", "pillow");
        Err(Error::Python(format!(
            "{shown} lacks {missing}; install {packages} there, or name another Python with --python or WARPFORGE_PYTHON"
        )))
    }
}

/// Has PyTorch run the first pass of a plan, and leaves a golden folder. Python's progress goes to standard error.
///
/// # Errors
///
/// When the Python cannot be used, or the run fails there.
pub fn record(plan: &Plan, out: &Path, python: &Python, device: &str) -> Result<(), Error> {
    let modules: &[&str] = match plan.data.format {
        Format::Instruct => {
            &["torch", "transformers", "tokenizers", "peft", "bitsandbytes", "safetensors", "warpforge"]
        }
        Format::Squad => &["torch", "transformers", "safetensors", "warpforge"],
        Format::Coco => &["torch", "torchvision", "pycocotools", "PIL", "safetensors", "warpforge"],
        Format::Tensors => &["torch", "safetensors", "warpforge"],
    };
    python.check(modules)?;
    let work = tempfile::tempdir().map_err(Error::io(&std::env::temp_dir()))?;
    let mut plan = plan.clone();
    // Pictures are made where there is an encoder for them: by PyTorch's pass.
    if let Some(sizes) = plan.data.generated.filter(|_| plan.data.format != Format::Coco) {
        let names = match plan.data.format {
            Format::Instruct => instruct::generate(work.path(), sizes, plan.training.seed)?,
            _ => generate::write(work.path(), sizes, plan.training.seed)?,
        };
        let [train, eval, vocabulary] = names.map(|name| Some(Source::Path(work.path().join(name))));
        (plan.data.train, plan.data.eval, plan.data.vocabulary) = (train, eval, vocabulary);
        plan.data.copy = true;
    }
    let file = work.path().join("plan.json");
    let text = serde_json::to_string_pretty(&plan).map_err(|error| Error::io(&file)(error.into()))?;
    std::fs::write(&file, text).map_err(Error::io(&file))?;
    let arguments: [OsString; 7] = [
        "-m".into(),
        "warpforge.record".into(),
        file.into(),
        "--out".into(),
        out.into(),
        "--device".into(),
        device.into(),
    ];
    // Warnings of libraries are about them, not about the run.
    let status = Command::new(&python.interpreter)
        .args(["-W", "ignore"])
        .args(arguments)
        .status()
        .map_err(Error::io(&python.interpreter))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(130) => Err(Error::Python("PyTorch's pass was interrupted".to_owned())),
        Some(2) => Err(Error::Python("PyTorch's pass was refused (its message is above)".to_owned())),
        _ => Err(Error::Python(format!("PyTorch's pass failed ({status}; its message is above)"))),
    }
}
