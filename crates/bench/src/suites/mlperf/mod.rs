//! The suite mlperf: models driven by MLPerf's LoadGen, which runs in a Python process of its own, and training steps.
//!
//! LoadGen decides when queries come and judges their latencies; the engine answers them in this process. Every test keeps
//! LoadGen's own logs. Figures are not MLPerf results, and say so.

mod accuracy;
mod bert;
mod llama;
mod loadgen;
mod log;
mod measure;
mod resnet;
mod server;
mod settings;
mod system;
mod train;

use super::Suite;

/// The suite.
pub static SUITE: Suite = Suite {
    name: "mlperf",
    description: "Inference driven by MLPerf's LoadGen: ResNet-50, BERT and Llama in four scenarios; training of ResNet-50; not \
                  MLPerf results",
    benchmarks: &[&resnet::Resnet50Infer, &bert::BertInfer, &llama::LlamaInfer, &train::Resnet50Train],
};
