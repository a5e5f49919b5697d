//! F1 and exact match of two answers, by SQuAD's official normalisation.

use std::collections::HashMap;

/// An answer in lower case, without ASCII punctuation, articles and repeated spaces.
#[must_use]
pub fn normalized(text: &str) -> String {
    let plain: String = text.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let words = without_articles(&plain);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `a`, `an` and `the` between the borders of words become spaces.
fn without_articles(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, after) = rest.split_at(end);
        found.push_str(if matches!(word, "a" | "an" | "the") { " " } else { word });
        rest = after;
    }
    found
}

/// 1 where two answers are the same, 0 elsewhere.
#[must_use]
pub fn exact_match(answer: &str, gold: &str) -> f64 {
    f64::from(u8::from(normalized(answer) == normalized(gold)))
}

/// The harmonic mean of precision and recall of the words of two answers.
#[must_use]
pub fn f1(answer: &str, gold: &str) -> f64 {
    let (answer, gold) = (normalized(answer), normalized(gold));
    let (found, wanted): (Vec<&str>, Vec<&str>) = (answer.split(' ').collect(), gold.split(' ').collect());
    let found: Vec<&str> = found.into_iter().filter(|word| !word.is_empty()).collect();
    let wanted: Vec<&str> = wanted.into_iter().filter(|word| !word.is_empty()).collect();
    let mut left: HashMap<&str, usize> = HashMap::new();
    for word in &wanted {
        *left.entry(word).or_default() += 1;
    }
    let mut common = 0usize;
    for word in &found {
        if let Some(count) = left.get_mut(word).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    if common == 0 {
        return 0.0;
    }
    let (precision, recall) = (common as f64 / found.len() as f64, common as f64 / wanted.len() as f64);
    2.0 * precision * recall / (precision + recall)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_normalized_as_the_official_script_does() {
        for (text, expected) in [
            ("The  Limmat!", "limmat"),
            ("a-b", "ab"),
            ("an apple, the pear", "apple pear"),
            ("theatre of a nation", "theatre of nation"),
            ("Zürich\u{2013}the", "zürich\u{2013}"),
            ("", ""),
        ] {
            assert_eq!(normalized(text), expected, "{text}");
        }
    }

    #[test]
    fn words_in_common_count_once() {
        assert_eq!(exact_match("the Limmat", "Limmat."), 1.0);
        assert_eq!(f1("Limmat", "Aare"), 0.0);
        assert_eq!(f1("x x y", "x y z z"), 2.0 * (2.0 / 3.0) * 0.5 / (2.0 / 3.0 + 0.5));
        assert_eq!((f1("", ""), exact_match("the", "")), (0.0, 1.0));
    }
}
