//! `cargo xtask peers`: warpt beside the tools that people would use instead, in one run on one machine.

mod bio;
mod contests;
mod cpu;
mod fusion;
mod gpu;
mod limits;
mod linpack;
mod llm;
mod micro;
mod paced;
mod page;
mod quant;
mod sides;
mod table;
pub(crate) mod tools;
mod warpt;
mod zoo;

use clap::Subcommand;

/// What to compare.
#[derive(Debug, Subcommand)]
pub(crate) enum Peers {
    /// The micro suite beside a C compiler's loops, fio and iperf3
    Micro(micro::MicroArgs),
    /// The biobench suite beside minimap2, kmc, jellyfish, bcftools, megahit, diamond, parasail, edlib and spoa
    Bio(bio::BioArgs),
    /// The linpack suite beside MKL, OpenBLAS and HPL, on a GPU beside PyTorch
    Linpack(linpack::LinpackArgs),
    /// Prefill and decoding of language models beside llama.cpp, on the same weights; tokenization beside `tokenizers`
    Llm(llm::LlmArgs),
    /// Models on the CPU beside PyTorch, ONNX Runtime, OpenVINO and XLA
    Cpu(cpu::CpuArgs),
    /// Linear layers with quantized weights on the CPU beside torchao, OpenVINO, ONNX Runtime and llama.cpp
    Quant(quant::QuantArgs),
    /// Models on a GPU beside PyTorch: as it is, compiled, and compiled into CUDA graphs
    Gpu(gpu::GpuArgs),
    /// Peaks and bandwidths of a calibration beside likwid-bench, STREAM and a loop in C
    Limits(limits::LimitsArgs),
    /// What fusion is worth, beside PyTorch eager against torch.compile
    Fusion(fusion::FusionArgs),
    /// A catalogue of public models on the CPU beside PyTorch, ONNX Runtime and OpenVINO: which are slow, and why
    Zoo(zoo::ZooArgs),
}

/// Runs the comparison.
pub(crate) fn run(peers: &Peers) -> anyhow::Result<()> {
    match peers {
        Peers::Micro(args) => micro::run(args),
        Peers::Bio(args) => bio::run(args),
        Peers::Linpack(args) => linpack::run(args),
        Peers::Llm(args) => llm::run(args),
        Peers::Cpu(args) => cpu::run(args),
        Peers::Quant(args) => quant::run(args),
        Peers::Gpu(args) => gpu::run(args),
        Peers::Limits(args) => limits::run(args),
        Peers::Fusion(args) => fusion::run(args),
        Peers::Zoo(args) => zoo::run(args),
    }
}
