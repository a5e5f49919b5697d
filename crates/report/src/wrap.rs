//! Text broken into lines. A number is never broken.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Lines of at most so many columns. Breaks are between words; in a word that is longer than a line, after punctuation
/// or else between letters. A number keeps its line, however long.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    if text.width() <= columns {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in words(text) {
        let line = lines.last_mut().expect("there is a line from the start");
        if line.is_empty() {
            *line = word.to_owned();
        } else if line.width() + 1 + word.width() <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
        let mut last = lines.pop().expect("there is a line from the start");
        while last.width() > columns
            && let Some(at) = break_within(&last, columns)
        {
            let rest = last.split_off(at);
            lines.push(last);
            last = rest;
        }
        lines.push(last);
    }
    lines
}

/// The narrowest that text can be wrapped to, if words up to `longest` columns stay whole.
pub(crate) fn narrowest(text: &str, longest: usize) -> usize {
    let least = |word: &str| match word.width() {
        width if width <= longest => width,
        _ => unbroken(word).max(longest),
    };
    words(text).map(least).max().unwrap_or(0)
}

/// Words between spaces; a percent sign belongs to the number before it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_matches(' ');
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.match_indices(' ').map(|(at, _)| at).find(|at| !rest[at + 1..].starts_with('%'));
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.trim_start_matches(' ');
        Some(word)
    })
}

/// Where to break a word so that its beginning has at most so many columns; where it has no such place, the first
/// there is.
fn break_within(word: &str, columns: usize) -> Option<usize> {
    let (mut after_punctuation, mut anywhere, mut width) = (None, None, 0);
    let mut characters = word.char_indices().peekable();
    while let Some((_, character)) = characters.next() {
        width += character.width().unwrap_or(0);
        let Some(&(next_at, next)) = characters.peek() else { break };
        if width > columns && (after_punctuation.is_some() || anywhere.is_some()) {
            break;
        }
        if belong_together(character, next) {
            continue;
        }
        if character.is_ascii_punctuation() {
            after_punctuation = Some(next_at);
        }
        anywhere = Some(next_at);
    }
    after_punctuation.or(anywhere)
}

/// The width of the longest part of a word that has no place to break.
fn unbroken(word: &str) -> usize {
    let (mut longest, mut width, mut before) = (0, 0, None);
    for character in word.chars() {
        if before.is_some_and(|before| !belong_together(before, character)) {
            width = 0;
        }
        width += character.width().unwrap_or(0);
        longest = longest.max(width);
        before = Some(character);
    }
    longest
}

/// Whether two characters may be of one number, with its sign, exponent or unit.
fn belong_together(before: char, after: char) -> bool {
    let of_number = |c: char| c.is_ascii_alphanumeric() || ".,+-±%^".contains(c);
    let is_exponent = matches!(before, 'e' | 'E') && matches!(after, '+' | '-');
    is_exponent
        || (before.is_ascii_digit() && of_number(after))
        || (after.is_ascii_digit() && of_number(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_are_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("104.2 GFLOP/s", 8), ["104.2", "GFLOP/s"]);
        assert_eq!(wrap("12.5 ±0.2 %", 6), ["12.5", "±0.2 %"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("日本 語", 4), ["日本", "語"]);
    }

    #[test]
    fn long_words_break_after_punctuation_and_numbers_never() {
        assert_eq!(wrap("self_attn.q_proj.weight", 10), ["self_attn.", "q_proj.", "weight"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("12345678.25", 4), ["12345678.25"]);
        assert_eq!(wrap("a/12345678", 4), ["a/", "12345678"]);
        assert_eq!(wrap("[0, 123456]", 4), ["[0,", "123456", "]"]);
        assert_eq!(wrap("-1.25e-10", 4), ["-1.25e-10"]);
    }

    #[test]
    fn the_narrowest_keeps_numbers_whole() {
        assert_eq!(narrowest("ab cde", 20), 3);
        assert_eq!(narrowest("abcdefghij", 4), 4);
        assert_eq!(narrowest("x 12345678", 4), 8);
        for text in ["self_attn.q_proj.weight", "x 1234567.5 yz", "f32[1,128,30522]"] {
            let columns = narrowest(text, 5);
            assert!(wrap(text, columns).iter().all(|line| line.width() <= columns), "{text} in {columns}");
        }
    }
}
