//! The benchmarks that come with the program.

const BUILTIN: [(&str, &str); 3] = [
    ("bert-squad", include_str!("../../descriptions/bert-squad.toml")),
    ("coco-detection", include_str!("../../descriptions/coco-detection.toml")),
    ("llama-qlora", include_str!("../../descriptions/llama-qlora.toml")),
];

/// The names of the built-in benchmarks.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// The description of a built-in benchmark.
#[must_use]
pub fn builtin(name: &str) -> Option<&'static str> {
    BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
