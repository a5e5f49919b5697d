//! Errors with their reasons.

use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use warpforge_backend_gpu::Gpus;
use warpforge_runtime::{Backend, Device, Tier};

use crate::NEEDS_GPU;
use crate::case::Case;

pub(crate) fn trials(gpus: &Arc<Gpus>) -> Vec<Trial> {
    let (memory, device) = (Arc::clone(gpus), Arc::clone(gpus));
    vec![
        Trial::test("errors/more_memory_than_there_is", move || too_much(&memory)).with_kind(NEEDS_GPU),
        Trial::test("errors/no_such_device", move || no_such_device(&device)).with_kind(NEEDS_GPU),
    ]
}

/// Four terabytes.
fn too_much(gpus: &Gpus) -> Result<(), Failed> {
    let case = Case::new(
        "too_much",
        "func.func @main(%x: tensor<1099511627776xf32>) -> tensor<1099511627776xf32> {
    %0 = stablehlo.negate %x : tensor<1099511627776xf32>
    return %0 : tensor<1099511627776xf32>\n}",
        0.0,
    );
    let Err(error) = case.compile(gpus, Tier::Production) else { return Err("it was compiled".into()) };
    let text = error.message().unwrap_or_default().to_owned();
    if text.contains("4398046511104 bytes are needed") && text.contains("are free") {
        return Ok(());
    }
    Err(format!("the error says `{text}`").into())
}

fn no_such_device(gpus: &Gpus) -> Result<(), Failed> {
    match gpus.why_not(Device::Cuda(99)) {
        Some(reason) if reason.contains("there is no device 99") => Ok(()),
        other => Err(format!("the reason is {other:?}").into()),
    }
}
