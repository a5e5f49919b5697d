//! How vocabularies of bytes divide a text before merging, by the name that GGUF files give it.

/// A way to divide text: each pattern in turn divides what the one before it left, and what it does not match stays whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Splits {
    pub(super) patterns: &'static [&'static str],
    /// A part that is a token is that token, whatever the merges say.
    pub(super) whole_words_first: bool,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const CASED_LETTERS: &str = concat!(
    r"\s?[",
    r"A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}",
    r"\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}",
    r"\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}",
    r"\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}",
    r"\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}",
    r"\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}",
    r"\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}",
    r"\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}",
    r"\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}",
    r"\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}",
    r"\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}",
    r"\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}",
    r"\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}",
    r"\x{1E900}-\x{1E943}",
    r"]+"
);

const EAST_ASIAN: &str = "[\u{4e00}-\u{9fa5}\u{800}-\u{4e00}\u{ac00}-\u{d7ff}]+";
const LETTERS: &str = r"\s?\p{L}+";
const DIGIT: &str = r"\p{N}";

const fn plain(patterns: &'static [&'static str]) -> Splits {
    Splits { patterns, whole_words_first: false }
}

const fn whole_words_first(patterns: &'static [&'static str]) -> Splits {
    Splits { patterns, whole_words_first: true }
}

/// Every way, and the names that files have for it.
const WAYS: &[(&[&str], Splits)] = &[
    (&["default"], plain(&[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"])),
    (&["gpt-2", "phi-2", "roberta-bpe", "mpt", "olmo", "jais"], plain(&[GPT2])),
    (
        &["starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"],
        plain(&[DIGIT, GPT2]),
    ),
    (&["llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral"], whole_words_first(&[LLAMA3])),
    (&["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"], plain(&[LLAMA3])),
    (&["qwen2", "deepseek-r1-qwen", "stablelm2", "megrez"], plain(&[QWEN2])),
    (&["tekken"], whole_words_first(&[TEKKEN])),
    (&["gpt-4o", "llama4"], plain(&[GPT4O])),
    (&["falcon"], plain(&[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"])),
    (
        &["deepseek-llm"],
        plain(&[
            r"[\r\n]",
            CASED_LETTERS,
            "\\s?[!-/:-~\u{ff01}-\u{ff0f}\u{ff1a}-\u{ff5e}\u{2018}-\u{201f}\u{3000}-\u{3002}]+",
            r"\s+$",
            EAST_ASIAN,
            r"\p{N}+",
        ]),
    ),
    (&["deepseek-coder"], plain(&[r"[\r\n]", LETTERS, r"\s?\p{P}+", EAST_ASIAN, DIGIT])),
];

/// The way with a name.
pub(super) fn of(name: &str) -> Option<Splits> {
    WAYS.iter().find(|(names, _)| names.contains(&name)).map(|&(_, splits)| splits)
}

/// All names.
pub(super) fn names() -> String {
    WAYS.iter().flat_map(|(names, _)| names.iter().copied()).collect::<Vec<_>>().join(", ")
}

/// Whether a pattern of a tokenizer is known; then, whether it divides a text before every single space between a visible ASCII
/// character and an ASCII letter, and between such a letter and a punctuation mark other than an apostrophe. No known pattern
/// takes letters of two words together.
pub(in super::super) fn divides_words(pattern: &str) -> Option<bool> {
    let without_rest = pattern.strip_suffix(r"|\s+").unwrap_or(pattern);
    let is = |known: &&str| [pattern, without_rest].contains(known);
    let known = WAYS.iter().flat_map(|(_, splits)| splits.patterns).any(&is);
    let divides = [GPT2, LLAMA3, QWEN2, TEKKEN, GPT4O, CASED_LETTERS, LETTERS].iter().any(is);
    known.then_some(divides)
}
