//! Instructions that are made up, and a tokenizer for them: the same for the same seed on every machine.

use std::path::Path;

use serde_json::json;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Tokenizer};

use crate::Error;
use crate::description::Generated;

const WORDS: [&str; 12] = [
    "stone", "river", "cloud", "bread", "paper", "glass", "night", "apple", "chair", "tower", "field",
    "plant",
];
/// Padding, begin and end.
const SPECIAL: [&str; 3] = ["<pad>", "<s>", "</s>"];

/// Writes the files to train on and to evaluate with and the tokenizer, and gives their names.
pub(crate) fn generate(folder: &Path, sizes: Generated, seed: u32) -> Result<[&'static str; 3], Error> {
    let mut random = fastrand::Rng::with_seed(u64::from(seed));
    let names = ["train.jsonl", "dev.jsonl", "tokenizer.json"];
    let mut lines = |count: usize| (0..count).map(|_| line(&mut random) + "\n").collect::<String>();
    let texts = [lines(sizes.paragraphs), lines(sizes.evaluation), tokenizer(folder)?];
    for (name, text) in names.into_iter().zip(texts) {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(Error::io(&path))?;
    }
    Ok(names)
}

fn line(random: &mut fastrand::Rng) -> String {
    let word = WORDS[random.usize(..WORDS.len())];
    let (one, two) = (random.u32(1..50), random.u32(1..50));
    let (instruction, input, output) = match random.u32(..4) {
        0 => (format!("Add {one} and {two}."), String::new(), (one + two).to_string()),
        1 => ("Say it in capitals.".to_owned(), word.to_owned(), word.to_ascii_uppercase()),
        2 => ("Spell it backwards.".to_owned(), word.to_owned(), word.chars().rev().collect()),
        _ => (format!("Which is more, {one} or {two}?"), String::new(), one.max(two).to_string()),
    };
    json!({"instruction": instruction, "input": input, "output": output}).to_string()
}

/// A tokenizer of bytes.
fn tokenizer(folder: &Path) -> Result<String, Error> {
    let wrong = |error: tokenizers::Error| Error::data(folder, format!("no tokenizer can be made: {error}"));
    let mut letters: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    letters.sort_unstable();
    let tokens = SPECIAL.map(str::to_owned).into_iter().chain(letters.into_iter().map(String::from));
    let vocabulary: Vocab = tokens.zip(0..).collect();
    let model = BPE::builder().vocab_and_merges(vocabulary, Vec::new()).build().map_err(wrong)?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    tokenizer.add_special_tokens(&SPECIAL.map(|token| AddedToken::from(token, true)));
    tokenizer.to_string(false).map_err(wrong)
}
