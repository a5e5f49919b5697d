//! Language models of the Llama architecture: prefill of a prompt, and token-by-token decoding with a cache that stays in place.

pub(in crate::suites) mod checkpoint;
mod decode;
pub(in crate::suites) mod decoder;
mod formats;
pub(in crate::suites) mod gate;
mod prefill;
pub(in crate::suites) mod program;
pub(in crate::suites) mod reference;
mod settings;
pub(in crate::suites) mod sizes;

pub(super) use decode::LlmDecode;
pub(super) use prefill::LlmPrefill;
