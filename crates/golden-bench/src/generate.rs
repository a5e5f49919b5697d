//! Questions that are made up: files of SQuAD's form and a vocabulary, the same for the same seed on every machine.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::Error;
use crate::description::Generated;

const RIVERS: [&str; 16] = [
    "Avon", "Dart", "Exe", "Fal", "Lynher", "Tamar", "Tavy", "Taw", "Teign", "Wye", "Severn", "Trent",
    "Tees", "Tyne", "Wear", "Aire",
];
const TOWNS: [&str; 10] =
    ["Alden", "Brack", "Corby", "Dalton", "Easton", "Firth", "Galway", "Harrow", "Ilton", "Jarrow"];
const COLOURS: [&str; 8] = ["red", "green", "blue", "white", "black", "grey", "brown", "amber"];

/// Every so many-th paragraph is longer than a window, so that windows overlap.
const LONG: usize = 5;

/// Writes the files to train on and to evaluate with and the vocabulary, and gives their names.
pub(crate) fn write(folder: &Path, sizes: Generated, seed: u32) -> Result<[&'static str; 3], Error> {
    let mut random = fastrand::Rng::with_seed(u64::from(seed));
    let train = articles("train", sizes.paragraphs, &mut random);
    let eval = articles("dev", sizes.evaluation, &mut random);
    let vocabulary = vocabulary();
    let names = ["train.json", "dev.json", "vocab.txt"];
    for (name, text) in names.into_iter().zip([train.to_string(), eval.to_string(), vocabulary]) {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(Error::io(&path))?;
    }
    Ok(names)
}

fn articles(part: &str, paragraphs: usize, random: &mut fastrand::Rng) -> Value {
    let articles: Vec<Value> = (0..paragraphs)
        .map(|index| {
            let (context, questions) = paragraph(index, random);
            let questions: Vec<Value> = questions
                .iter()
                .enumerate()
                .map(|(at, (question, answer))| {
                    // The texts are ASCII, so bytes and characters count the same.
                    let start = context.find(answer.as_str()).unwrap_or_default();
                    json!({
                        "id": format!("{part}-{index}-{at}"),
                        "question": question,
                        "answers": [{"answer_start": start, "text": answer}],
                    })
                })
                .collect();
            json!({"title": format!("{part} {index}"), "paragraphs": [{"context": context, "qas": questions}]})
        })
        .collect();
    json!({"version": "1.1", "data": articles})
}

/// A paragraph about two rivers, with questions and their answers.
fn paragraph(index: usize, random: &mut fastrand::Rng) -> (String, Vec<(String, String)>) {
    let mut rivers = RIVERS;
    random.shuffle(&mut rivers);
    let [first, second, third, ..] = rivers;
    let town = TOWNS[random.usize(..TOWNS.len())];
    let colour = COLOURS[random.usize(..COLOURS.len())];
    let (long, short) = (random.u32(50..99), random.u32(10..49));
    let mut context = format!(
        "The river {first} is {long} miles long and meets the sea at {town}. The {second} is {short} miles long, and its water is {colour}."
    );
    if index % LONG == LONG - 1 {
        let _ = write!(
            context,
            " The {third} is the longest of all rivers here, and nobody has ever seen the place where it begins; \
            some say that it has none, and that its water comes from the sea and goes back to it, as the tide does."
        );
    }
    let questions = vec![
        (format!("How long is the river {first}?"), format!("{long} miles")),
        (format!("Where does the {first} meet the sea?"), town.to_owned()),
        (format!("What colour is the water of the {second}?"), colour.to_owned()),
    ];
    (context, questions)
}

/// Letters, digits and marks, by themselves and within words, and the words that are not names.
fn vocabulary() -> String {
    let characters: Vec<char> = ('a'..='z').chain('0'..='9').chain(".,;?-'".chars()).collect();
    let mut lines: Vec<String> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned).into();
    lines.extend(characters.iter().map(char::to_string));
    lines.extend(characters.iter().filter(|c| c.is_alphanumeric()).map(|c| format!("##{c}")));
    let (context, questions) = paragraph(LONG - 1, &mut fastrand::Rng::with_seed(0));
    let texts = std::iter::once(context).chain(questions.into_iter().map(|(question, _)| question));
    let names: BTreeSet<String> = RIVERS.iter().chain(&TOWNS).map(|name| name.to_ascii_lowercase()).collect();
    let words: BTreeSet<String> = texts
        .flat_map(|text| {
            text.to_ascii_lowercase()
                .split(|c: char| !c.is_ascii_alphabetic())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter(|word| word.len() > 1 && !names.contains(word))
        .collect();
    lines.extend(words);
    lines.join("\n") + "\n"
}
