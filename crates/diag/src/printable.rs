//! Text from files, made safe to show.

use std::borrow::Cow;

/// Text that cannot command a terminal: control characters other than the ends of lines and tabs, and characters that turn
/// the direction of writing, are shown as `\u{1b}`. Names in models come from strangers.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_command) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_command(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

fn is_command(character: char) -> bool {
    let turns =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || character.is_control() && !matches!(character, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_spelled_out() {
        assert_eq!(printable("a\u{1b}[2Jb\rc\u{9b}\u{202e}"), "a\\u{1b}[2Jb\\u{d}c\\u{9b}\\u{202e}");
        assert!(matches!(printable("two\nlines\tand ö"), Cow::Borrowed("two\nlines\tand ö")));
    }
}
