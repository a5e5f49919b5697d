//! A position in the text and the small steps that all parsing is made of.

use warpforge_diag::{Diagnostic, Span};

/// The result of a parsing step: a value, or why there is none.
pub(crate) type Parse<T> = Result<T, Box<Diagnostic>>;

/// How deep regions, types and attributes may nest. Real modules stay below twenty; the bound keeps the stack safe.
pub(crate) const MAX_DEPTH: usize = 64;

/// A position in the text.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    pos: usize,
    pub(super) depth: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, pos: 0, depth: 0 }
    }

    pub(super) fn pos(&self) -> usize {
        self.pos
    }

    pub(super) fn set_pos(&mut self, pos: usize) {
        self.pos = pos.min(self.text.len());
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.pos..]
    }

    /// Skips blanks and comments.
    pub(super) fn skip(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            while bytes.get(self.pos).is_some_and(u8::is_ascii_whitespace) {
                self.pos += 1;
            }
            if !bytes[self.pos..].starts_with(b"//") {
                return;
            }
            let line = bytes[self.pos..].iter().position(|b| *b == b'\n');
            self.pos = line.map_or(bytes.len(), |end| self.pos + end);
        }
    }

    /// The next byte that is neither blank nor comment.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.skip();
        self.rest().first().copied()
    }

    pub(crate) fn at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Whether the next token is this one; a word must end where it ends.
    pub(crate) fn looking_at(&mut self, token: &str) -> bool {
        self.skip();
        let rest = self.rest();
        if !rest.starts_with(token.as_bytes()) {
            return false;
        }
        let word = token.as_bytes().last().is_some_and(|b| is_word_byte(*b));
        !(word && rest.get(token.len()).is_some_and(|b| is_word_byte(*b)))
    }

    /// Takes a token if it is next.
    pub(crate) fn eat(&mut self, token: &str) -> bool {
        let found = self.looking_at(token);
        if found {
            self.pos += token.len();
        }
        found
    }

    pub(crate) fn expect(&mut self, token: &str) -> Parse<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }

    /// A bare word: a letter or underscore, then letters, digits, `_`, `$`, `.`.
    pub(crate) fn word(&mut self) -> Option<&'a str> {
        self.skip();
        let rest = self.rest();
        if !rest.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_') {
            return None;
        }
        Some(self.take_while(is_word_byte))
    }

    pub(super) fn take_while(&mut self, keep: impl Fn(u8) -> bool) -> &'a str {
        let start = self.pos;
        let length = self.rest().iter().position(|b| !keep(*b)).unwrap_or(self.rest().len());
        self.pos += length;
        // The kept bytes are ASCII by the predicates in use, so both ends are character boundaries.
        self.text.get(start..self.pos).unwrap_or("")
    }

    /// A string in quotes, its escapes resolved.
    pub(crate) fn string(&mut self) -> Parse<String> {
        self.skip();
        let start = self.pos;
        if self.rest().first() != Some(&b'"') {
            return Err(self.expected("a string"));
        }
        self.pos += 1;
        let mut bytes = Vec::new();
        loop {
            let rest = self.rest();
            let plain = rest.iter().position(|b| matches!(b, b'"' | b'\\' | b'\n')).unwrap_or(rest.len());
            bytes.extend_from_slice(&rest[..plain]);
            self.pos += plain;
            match rest.get(plain) {
                Some(b'"') => {
                    self.pos += 1;
                    break;
                }
                Some(b'\\') => {
                    let escape = &rest[plain + 1..];
                    let (byte, length) = match escape {
                        [b'n', ..] => (b'\n', 1),
                        [b't', ..] => (b'\t', 1),
                        [quoted @ (b'"' | b'\\'), ..] => (*quoted, 1),
                        [high, low, ..] => match (hex_digit(*high), hex_digit(*low)) {
                            (Some(high), Some(low)) => (high << 4 | low, 2),
                            _ => return Err(self.error_at(self.pos, "unknown escape in a string")),
                        },
                        _ => return Err(self.error_at(start, "the string is not closed")),
                    };
                    bytes.push(byte);
                    self.pos += 1 + length;
                }
                _ => return Err(self.error_at(start, "the string is not closed")),
            }
        }
        // Strings of MLIR are bytes; those that are no UTF-8 keep what can be kept.
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|bad| bad.into_bytes().iter().map(|b| *b as char).collect()))
    }

    /// A whole number without a sign.
    pub(crate) fn digits(&mut self) -> Parse<u64> {
        self.skip();
        let start = self.pos;
        let text = self.take_while(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(value) => Ok(value),
            Err(_) if text.is_empty() => Err(self.expected("a number")),
            Err(_) => Err(self.error_at(start, "the number is too large")),
        }
    }

    /// A 64-bit integer with an optional sign.
    pub(super) fn i64(&mut self) -> Parse<i64> {
        let start = self.pos;
        let negative = self.eat("-");
        let magnitude = i128::from(self.digits()?);
        let value = if negative { -magnitude } else { magnitude };
        i64::try_from(value).map_err(|_| self.error_at(start, "the number is too large"))
    }

    /// `[1, 2]`.
    pub(super) fn i64_list(&mut self) -> Parse<Vec<i64>> {
        self.list("[", "]", Cursor::i64)
    }

    /// Items in brackets, separated by commas.
    pub(super) fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        self.expect(open)?;
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
                return Ok(items);
            }
            self.expect(",")?;
        }
    }

    /// The text from here to the end of a balanced `open … close`, both included.
    pub(crate) fn balanced(&mut self, open: u8, close: u8) -> Parse<&'a str> {
        self.skip();
        let start = self.pos;
        let bytes = self.text.as_bytes();
        let mut nesting: Vec<u8> = Vec::new();
        let mut at = start;
        if bytes.get(at) != Some(&open) {
            return Err(self.expected(&format!("`{}`", open as char)));
        }
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    at += 1;
                    while bytes.get(at).is_some_and(|b| *b != b'"') {
                        at += if bytes[at] == b'\\' { 2 } else { 1 };
                    }
                }
                b'-' if bytes.get(at + 1) == Some(&b'>') => at += 1,
                b'<' => nesting.push(b'>'),
                b'(' => nesting.push(b')'),
                b'[' => nesting.push(b']'),
                b'{' => nesting.push(b'}'),
                b'>' | b')' | b']' | b'}' => {
                    if nesting.pop() != Some(byte) {
                        return Err(self.error_at(at, "brackets do not match"));
                    }
                    if nesting.is_empty() {
                        self.pos = at + 1;
                        debug_assert_eq!(byte, close);
                        return match self.text.get(start..self.pos) {
                            Some(text) => Ok(text),
                            None => Err(self.error_at(start, "brackets do not match")),
                        };
                    }
                }
                _ => {}
            }
            at += 1;
        }
        Err(self.error_at(start, format!("`{}` is not closed", open as char)))
    }

    pub(super) fn error_here(&mut self, message: impl Into<String>) -> Box<Diagnostic> {
        self.skip();
        self.error_at(self.pos, message)
    }

    pub(super) fn error_at(&self, pos: usize, message: impl Into<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic::error(Span::new(pos, pos), message))
    }

    /// An error that says what should be here and what is.
    pub(crate) fn expected(&mut self, what: &str) -> Box<Diagnostic> {
        self.skip();
        let rest = self.rest();
        let length = match rest.first() {
            None => return self.error_at(self.pos, format!("expected {what} but the text ends")),
            Some(b) if is_word_byte(*b) => rest.iter().position(|b| !is_word_byte(*b)).unwrap_or(rest.len()),
            Some(_) => 1,
        };
        let shown = String::from_utf8_lossy(&rest[..length.min(40)]).into_owned();
        let message = format!("expected {what} but found `{shown}`");
        Box::new(Diagnostic::error(Span::new(self.pos, self.pos + length), message))
    }
}

pub(super) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

/// Bytes of the names of values, blocks and aliases.
pub(super) fn is_name_byte(byte: u8) -> bool {
    is_word_byte(byte) || byte == b'-'
}

pub(super) fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_where_they_end() {
        let mut cursor = Cursor::new("  dims = [1, -2] // note\n dim");
        assert!(!cursor.eat("dim"));
        assert!(cursor.eat("dims") && cursor.eat("="));
        assert_eq!(cursor.i64_list().unwrap(), [1, -2]);
        assert!(cursor.eat("dim") && cursor.at_end());
    }

    #[test]
    fn strings_resolve_escapes() {
        assert_eq!(Cursor::new(r#""a\22\0A\\b""#).string().unwrap(), "a\"\n\\b");
        assert!(Cursor::new("\"open").string().is_err());
        assert!(Cursor::new("\"open\\").string().is_err());
    }

    #[test]
    fn brackets_balance_around_strings_and_arrows() {
        let mut cursor = Cursor::new(r#"<a -> b, "x>y", [1, {c}]> rest"#);
        assert_eq!(cursor.balanced(b'<', b'>').unwrap(), r#"<a -> b, "x>y", [1, {c}]>"#);
        assert!(Cursor::new("<(>)").balanced(b'<', b'>').is_err());
        assert!(Cursor::new("<\"\\").balanced(b'<', b'>').is_err());
    }

    #[test]
    fn errors_say_what_was_found() {
        let error = Cursor::new("  bogus(").expect("dims").unwrap_err();
        assert_eq!(error.message, "expected `dims` but found `bogus`");
        assert_eq!(error.span, Span::new(2, 7));
    }
}
