//! The program driven from outside with what not every machine has: a GPU, a C++ compiler to pretend one with, a Python with
//! torch and jax, an MPI, UCC, the StableHLO project's files, device nodes, Prometheus' tool. Tests that lack something are ignored, and the first lines
//! say why.

mod calibrate;
mod conformance;
mod detection;
mod devices;
mod golden;
mod language_models;
mod mlperf;
mod mpi;
mod pretend;
mod prometheus;
mod python;
mod qlora;
#[allow(dead_code, reason = "shared with the tests that need nothing")]
#[path = "../cli/ranks.rs"]
mod ranks;
#[allow(dead_code, reason = "shared with the tests that need nothing")]
#[path = "../cli/served.rs"]
mod served;
mod train;
mod ucc;
mod values;
#[allow(dead_code, reason = "shared with the tests that need nothing")]
#[path = "../cli/warpt.rs"]
mod warpt;
mod xla;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let groups = [
        (conformance::missing(), conformance::trials()),
        (detection::missing(), detection::trials()),
        (devices::missing(), devices::trials()),
        (golden::missing(), golden::trials()),
        (mlperf::missing(), mlperf::trials()),
        mpi::open_mpi(),
        mpi::mpich(),
        (prometheus::missing(), prometheus::trials()),
        (qlora::missing(), qlora::trials()),
        (train::missing(), train::trials()),
        (ucc::missing(), ucc::trials()),
        (xla::missing(), xla::trials()),
        (pretend::missing(), calibrate::pretended()),
        (pretend::missing(), language_models::pretended()),
        (pretend::missing(), values::pretended()),
        (values::missing_gpu(), values::on_a_gpu()),
    ];
    let mut trials = Vec::new();
    for (missing, group) in groups {
        if let Some(reason) = &missing {
            let names: Vec<&str> = group.iter().map(Trial::name).collect();
            eprintln!("ignored, {reason}: {}", names.join(", "));
        }
        trials.extend(group.into_iter().map(|trial| trial.with_ignored_flag(missing.is_some())));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Whether runs of training have the length of their presets: `cargo xtask test --slow` asks for it.
fn slow() -> bool {
    std::env::var_os("WARPT_SLOW_TESTS").is_some()
}

/// A test of a function that panics where something is wrong.
fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok::<(), Failed>(())
    })
}
