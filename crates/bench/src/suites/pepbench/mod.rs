//! The suite pepbench: what applications do with models, from text to answer, on the engine and on real or generated weights.
//!
//! Every benchmark checks its answers against the reference interpreter or against plain search; a wrong answer is FAIL and
//! has no rate.

pub(super) mod architecture;
pub(super) mod corpus;
mod embed;
pub(super) mod emit;
pub(super) mod encoder;
mod encoder_text;
mod end_to_end;
pub(super) mod llm;
mod neighbours;
mod pipeline;
mod settings;
mod tokenize;
mod truth;
mod vocabulary;
mod words;

use super::Suite;

/// The suite.
pub static SUITE: Suite = Suite {
    name: "pepbench",
    description: "Models at work: tokenization, sentence embeddings, both with a nearest-neighbour search end to end, language models, and a data pipeline",
    benchmarks: &[
        &end_to_end::EndToEndInfer,
        &embed::Embed,
        &tokenize::Tokenize,
        &llm::LlmPrefill,
        &llm::LlmDecode,
        &pipeline::DataPipeline,
    ],
};
