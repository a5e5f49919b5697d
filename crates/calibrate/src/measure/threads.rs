//! The host threads that everything is measured with, settled before the first measurement.

use std::num::NonZeroUsize;

use warpforge::{CompileOptions, Device, Model, Tensor};
use warpforge_probes::affinity;

use super::Settings;
use crate::error::{Error, Result};

/// The settings with the number of threads that kernels use where none is given. Loops and kernels then have the same number.
pub(super) fn settled(settings: &Settings) -> Result<Settings> {
    if settings.device != Device::Cpu {
        return Ok(settings.clone());
    }
    let threads = match settings.threads {
        Some(threads) => threads,
        None => usual()?,
    };
    let usable = affinity::allowed()?.len();
    if threads.get() > usable {
        return Err(Error::Settings(format!(
            "{threads} threads are more than the {usable} processors that this process may use, and limits are those of a thread on \
             each; give fewer with --threads"
        )));
    }
    Ok(Settings { threads: Some(threads), ..settings.clone() })
}

/// As many as kernels use where nobody says.
fn usual() -> Result<NonZeroUsize> {
    let y = "tensor<1xf32>";
    let text = format!(
        "func.func @main(%x: {y}) -> ({y}) {{\n  %y = stablehlo.add %x, %x : {y}\n  func.return %y : {y}\n}}\n"
    );
    let compiled = Model::from_text("threads.mlir", text)?.compile(&CompileOptions::default())?;
    let executable = compiled.prepare(&[Tensor::from_slice(&[1], &[0.0f32])?])?;
    Ok(NonZeroUsize::new(executable.threads()).unwrap_or(NonZeroUsize::MIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Scale;

    #[test]
    fn threads_are_as_many_as_kernels_use_and_no_more_than_processors() {
        let settings = Settings::new(Device::Cpu, Scale::Smoke);
        let usable = affinity::allowed().unwrap().len();
        let threads = settled(&settings).unwrap().thread_count();
        assert!((1..=usable).contains(&threads), "{threads}");
        let one = Settings { threads: Some(NonZeroUsize::MIN), ..settings.clone() };
        assert_eq!(settled(&one).unwrap().thread_count(), 1);
        let many = Settings { threads: NonZeroUsize::new(usable + 1), ..settings };
        let error = settled(&many).unwrap_err().to_string();
        assert!(error.contains("give fewer with --threads"), "{error}");
    }
}
