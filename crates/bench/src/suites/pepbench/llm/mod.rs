//! Language models of the Llama architecture: prefill of a prompt, and token-by-token decoding with a cache that stays in place.

mod checkpoint;
mod decode;
mod decoder;
mod formats;
mod gate;
mod packages;
mod prefill;
mod program;
mod reference;
mod settings;
mod sizes;

pub(super) use decode::LlmDecode;
pub(super) use prefill::LlmPrefill;
