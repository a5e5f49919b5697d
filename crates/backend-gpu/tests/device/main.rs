//! Programs on a real GPU, compared with the reference, one test per program and tier. Without a GPU they are
//! ignored, and the first line is the reason; the reference runs them everywhere.
//!
//! `compute-sanitizer` runs this program: [docs/gpu.md](../../../../docs/gpu.md).

mod attention_gradient;
mod case;
mod collectives;
mod dnn;
mod epilogues;
mod errors;
mod gemm;
mod linear_system;
mod loops;
mod probe;
#[path = "../../src/tests/programs.rs"]
mod programs;
mod ranks;
#[path = "../../../codegen/tests/kernels/softmax.rs"]
mod softmax;
mod state;
mod unfused;

use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use warpforge_backend_gpu::{Gpus, Vendor};
use warpforge_runtime::{Backend, Device, Tier};

use case::Case;

fn main() {
    let arguments = Arguments::from_args();
    let gpus = Arc::new(Gpus::new(Vendor::Cuda));
    let missing = gpus.why_not(Device::Cuda(0));
    if let Some(reason) = &missing {
        eprintln!("ignored, all that need a GPU: {reason}");
    }
    let without_nccl = gpus.device_collectives(Device::Cuda(0)).err();
    if let Some(reason) = without_nccl.as_ref().filter(|_| missing.is_none()) {
        eprintln!("ignored, all between ranks: {reason}");
    }
    let all = [
        loops::cases(),
        gemm::cases(),
        epilogues::cases(),
        dnn::cases(),
        attention_gradient::cases(),
        unfused::cases(),
        collectives::cases(),
    ];
    let cases = all.concat();
    let mut trials: Vec<Trial> = cases.iter().flat_map(|case| trials(case, &gpus)).collect();
    trials.extend(errors::trials(&gpus));
    trials.push(collectives::too_few(&gpus));
    trials.extend(probe::trials());
    trials.extend(linear_system::trials());
    trials.extend(state::trials(&gpus));
    trials.extend(ranks::trials(&gpus));
    let trials = trials.into_iter().map(|trial| {
        let ignored = match trial.kind() {
            NEEDS_GPU => missing.is_some(),
            NEEDS_NCCL => without_nccl.is_some(),
            _ => false,
        };
        trial.with_ignored_flag(ignored)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

/// The kind of tests that need a GPU.
const NEEDS_GPU: &str = "gpu";

/// The kind of tests that need a GPU and NCCL.
const NEEDS_NCCL: &str = "nccl";

fn trials(case: &Case, gpus: &Arc<Gpus>) -> Vec<Trial> {
    let reference = case.clone();
    let mut trials =
        vec![Trial::test(format!("{}/reference", case.name), move || reference.expected().map(drop))];
    for tier in Tier::ALL {
        let (case, gpus) = (case.clone(), Arc::clone(gpus));
        let name = format!("{}/{tier}", case.name);
        trials.push(Trial::test(name, move || case.agrees(&gpus, tier)).with_kind(NEEDS_GPU));
    }
    trials
}
