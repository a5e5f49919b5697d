//! Reading a text file without holding its long hexadecimal constants as text.
//!
//! A constant of many elements is written as a string of hexadecimal digits, twice as long as its bytes, and files that
//! carry a model's weights are nothing else. Such a string is decoded while the file is read, and the text keeps only
//! its quotes: `dense<"0x…">` becomes `dense<"0x">` with the bytes beside it.

use std::collections::HashSet;
use std::io::Read;

use warpforge_diag::Cut;
use warpforge_ir::Blob;

use super::dense::digit_value;

/// Strings of at least so many digits are decoded at once.
const LONG: usize = 1 << 16;

/// The longest text without its long constants: positions in it are 32-bit numbers.
const MAX_TEXT: usize = u32::MAX as usize;

/// A text and the constants that were taken out of it.
#[derive(Debug, Default)]
pub(crate) struct Slim {
    pub(crate) text: Vec<u8>,
    pub(crate) constants: Vec<Constant>,
}

/// The digits of a hexadecimal string that were taken out of a text.
#[derive(Debug, Clone)]
pub(crate) struct Constant {
    /// Where in the remaining text it was: just after `"0x`.
    pub(crate) offset: usize,
    /// How many digits it had.
    pub(crate) digits: usize,
    /// What they stand for; of an odd number of digits, the last one is missing.
    pub(crate) bytes: Blob,
}

/// The constants of a text while it is parsed.
pub(super) struct Taken {
    constants: Vec<Constant>,
    used: HashSet<usize>,
}

impl Taken {
    /// Constants in the order of their offsets.
    pub(super) fn new(constants: Vec<Constant>) -> Self {
        Self { constants, used: HashSet::new() }
    }

    /// The constant that belongs at an offset, if it was taken out of the text.
    pub(super) fn at(&mut self, offset: usize) -> Option<&Constant> {
        let at = self.constants.binary_search_by_key(&offset, |constant| constant.offset).ok()?;
        self.used.insert(offset);
        self.constants.get(at)
    }

    /// Where a constant was that nobody asked for.
    pub(super) fn unused(&self) -> Option<usize> {
        self.constants.iter().map(|constant| constant.offset).find(|offset| !self.used.contains(offset))
    }
}

impl Slim {
    /// Reads all of a file, or up to the first part of it that is no text: a zero byte or bytes that are not UTF-8.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or its text is longer than [`MAX_TEXT`].
    pub(crate) fn read(mut file: impl Read) -> std::io::Result<Self> {
        let mut reader = Reader::default();
        let mut buffer = vec![0; 1 << 18];
        // Bytes at the front of the buffer that start a character whose end is still to come.
        let mut carried = 0;
        loop {
            let length = match file.read(&mut buffer[carried..]) {
                Ok(0) => return Ok(reader.finish()),
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = carried + length;
            reader.feed(&buffer[carried..end]);
            let valid = match std::str::from_utf8(&buffer[..end]) {
                Ok(_) => end,
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                Err(_) => return Ok(reader.finish()),
            };
            if memchr::memchr(0, &buffer[..end]).is_some() {
                return Ok(reader.finish());
            }
            if reader.slim.text.len() > MAX_TEXT {
                let message = "text of more than 4 GiB is not read";
                return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message));
            }
            buffer.copy_within(valid..end, 0);
            carried = end - valid;
        }
    }
}

/// What a source needs to know to give the columns of the file.
pub(crate) fn cuts_of(constants: &[Constant]) -> Vec<Cut> {
    constants.iter().map(|found| Cut { offset: found.offset, length: found.digits }).collect()
}

/// The constants of a part of the text, by their offsets in that part.
pub(crate) fn constants_in(constants: &[Constant], range: std::ops::Range<usize>) -> Vec<Constant> {
    let inside = constants.iter().filter(|found| range.contains(&found.offset));
    inside.map(|found| Constant { offset: found.offset - range.start, ..found.clone() }).collect()
}

/// Where in the text the reader is.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Plain,
    Comment,
    /// In a string, after its first quote.
    Text {
        escaped: bool,
    },
    /// In a string of hexadecimal digits that begins here in the text, still short enough to stay there.
    Short {
        start: usize,
    },
    /// In one whose digits are decoded.
    Long,
}

#[derive(Default)]
struct Reader {
    slim: Slim,
    state: State,
    /// Digits and bytes of the string that is being decoded; the high half of a byte whose other half is to come.
    digits: usize,
    bytes: Vec<u8>,
    half: Option<u8>,
}

impl Reader {
    fn feed(&mut self, mut input: &[u8]) {
        while !input.is_empty() {
            let taken = match self.state {
                State::Plain => self.plain(input),
                State::Comment => self.until(input, memchr::memchr(b'\n', input), State::Plain),
                State::Text { escaped } => self.string(input, escaped),
                State::Short { start } => self.short(input, start),
                State::Long => self.long(input),
            };
            input = &input[taken..];
        }
    }

    /// Keeps the text up to and including the byte that ends a state.
    fn until(&mut self, input: &[u8], end: Option<usize>, next: State) -> usize {
        let taken = end.map_or(input.len(), |at| at + 1);
        self.slim.text.extend_from_slice(&input[..taken]);
        if end.is_some() {
            self.state = next;
        }
        taken
    }

    fn plain(&mut self, input: &[u8]) -> usize {
        let taken = self.until(input, memchr::memchr2(b'"', b'/', input), State::Text { escaped: false });
        if self.state != State::Plain && self.slim.text.last() == Some(&b'/') {
            let comment = self.slim.text.ends_with(b"//");
            self.state = if comment { State::Comment } else { State::Plain };
        }
        taken
    }

    fn string(&mut self, input: &[u8], escaped: bool) -> usize {
        let byte = input[0];
        self.slim.text.push(byte);
        self.state = match byte {
            b'"' if !escaped => State::Plain,
            b'x' if self.slim.text.ends_with(b"dense<\"0x") => State::Short { start: self.slim.text.len() },
            _ => State::Text { escaped: byte == b'\\' && !escaped },
        };
        1
    }

    fn short(&mut self, input: &[u8], start: usize) -> usize {
        let room = LONG - (self.slim.text.len() - start);
        let digits = count_digits(&input[..input.len().min(room)]);
        self.slim.text.extend_from_slice(&input[..digits]);
        if digits == room {
            let text = self.slim.text.split_off(start);
            self.state = State::Long;
            self.decode(&text);
        } else if digits < input.len() {
            self.state = State::Text { escaped: false };
        }
        digits
    }

    fn long(&mut self, input: &[u8]) -> usize {
        let digits = count_digits(input);
        self.decode(&input[..digits]);
        if digits < input.len() {
            self.keep_constant();
            self.state = State::Text { escaped: false };
        }
        digits
    }

    fn decode(&mut self, digits: &[u8]) {
        self.digits += digits.len();
        let (first, rest) = digits.split_at(usize::from(self.half.is_some() && !digits.is_empty()));
        if let (Some(high), [low]) = (self.half, first) {
            self.bytes.push(high << 4 | digit_value(*low));
            self.half = None;
        }
        let pairs = rest.chunks_exact(2);
        if let [odd] = pairs.remainder() {
            self.half = Some(digit_value(*odd));
        }
        self.bytes.extend(pairs.map(|pair| plain_value(pair[0]) << 4 | plain_value(pair[1])));
    }

    fn keep_constant(&mut self) {
        let bytes = Blob::from(std::mem::take(&mut self.bytes));
        let digits = std::mem::take(&mut self.digits);
        self.half = None;
        self.slim.constants.push(Constant { offset: self.slim.text.len(), digits, bytes });
    }

    fn finish(mut self) -> Slim {
        if self.state == State::Long {
            self.keep_constant();
        }
        self.slim
    }
}

/// How many digits the input starts with: whole blocks first, which the compiler looks at many bytes at a time.
fn count_digits(input: &[u8]) -> usize {
    let is_digit = |byte: u8| (byte.wrapping_sub(b'0') < 10) | ((byte | 0x20).wrapping_sub(b'a') < 6);
    let all = |block: &&[u8]| block.iter().fold(true, |all, &byte| all & is_digit(byte));
    let whole = BLOCK * input.chunks_exact(BLOCK).take_while(all).count();
    let rest = &input[whole..];
    whole + rest.iter().position(|&byte| !is_digit(byte)).unwrap_or(rest.len())
}

/// How many bytes are looked at together.
const BLOCK: usize = 256;

/// The value of a byte that is known to be a digit, without a table, so that many are computed at a time.
fn plain_value(digit: u8) -> u8 {
    (digit & 0x0F) + 9 * (digit >> 6)
}

#[cfg(test)]
mod tests {
    use super::super::{Options, parse, parse_slim};
    use super::*;
    use warpforge_diag::Source;

    fn module_with(literal: &str, elements: usize) -> String {
        format!(
            "func.func @main() -> tensor<{elements}xi8> {{\n  %0 = stablehlo.constant dense<{literal}> : tensor<{elements}xi8>\n  return %0 : tensor<{elements}xi8>\n}}\n"
        )
    }

    fn digits(bytes: usize) -> String {
        (0..bytes).map(|byte| format!("{:02X}", byte % 251)).collect()
    }

    /// Reads a text in pieces of every awkward length.
    fn slim(text: &str, piece: usize) -> Slim {
        let mut reader = Reader::default();
        text.as_bytes().chunks(piece).for_each(|piece| reader.feed(piece));
        reader.finish()
    }

    #[test]
    fn a_long_constant_leaves_the_text_and_comes_back() {
        let text = module_with(&format!("\"0x{}\"", digits(LONG)), LONG);
        for piece in [7, 4096, LONG + 1, text.len()] {
            let slim = slim(&text, piece);
            assert!(slim.text.len() < 300, "{piece}");
            let source = Source::new("m", String::from_utf8(slim.text.clone()).unwrap())
                .with_cuts(cuts_of(&slim.constants));
            let read = parse_slim(&source, slim.constants, &Options::default()).unwrap();
            let whole = parse(&Source::new("m", text.as_str()), &Options::default()).unwrap();
            assert_eq!(warpforge_ir::print::print(&read), warpforge_ir::print::print(&whole));
        }
    }

    #[test]
    fn reading_stops_where_no_text_is() {
        let read = |bytes: &[u8]| Slim::read(bytes).unwrap().text;
        // A character that two reads share.
        let text = format!("{}é", "a".repeat((1 << 18) - 1));
        assert_eq!(read(text.as_bytes()), text.as_bytes());
        let mut bytes = vec![b'a'; 1 << 20];
        bytes[5] = 0;
        assert_eq!(read(&bytes).len(), 1 << 18, "a zero byte");
        bytes[5] = 0xff;
        assert_eq!(read(&bytes).len(), 1 << 18, "not UTF-8");
    }

    #[test]
    fn digits_are_counted_and_valued_as_they_are_one_by_one() {
        for byte in 0..=u8::MAX {
            let mut text = vec![b'a'; 3 * BLOCK];
            text[BLOCK + 7] = byte;
            let expected = if byte.is_ascii_hexdigit() { text.len() } else { BLOCK + 7 };
            assert_eq!(count_digits(&text), expected, "{byte}");
            if byte.is_ascii_hexdigit() {
                assert_eq!(plain_value(byte), digit_value(byte));
            }
        }
    }

    #[test]
    fn what_else_looks_like_one_stays_text() {
        for text in [
            module_with(&format!("\"0x{}\"", digits(8)), 8),
            format!("// dense<\"0x{}\n{}", digits(LONG), module_with("1", 4)),
            format!("module attributes {{a.b = \"0x{}\"}} {{}}", digits(LONG)),
            r#"module attributes {a.b = "a quote \" and dense<\"0x"} {}"#.to_owned(),
        ] {
            let slim = slim(&text, 1000);
            assert!(slim.constants.is_empty());
            assert_eq!(slim.text, text.as_bytes());
        }
    }

    #[test]
    fn mistakes_have_the_columns_of_the_file() {
        let refusal = |literal: &str| {
            let slim = slim(&module_with(literal, LONG), 999);
            let text = String::from_utf8(slim.text.clone()).unwrap();
            let source = Source::new("m", text).with_cuts(cuts_of(&slim.constants));
            parse_slim(&source, slim.constants, &Options::default()).unwrap_err().to_string()
        };
        let long = digits(LONG);
        let found = refusal(&format!("\"0x{long}g\""));
        assert!(found.contains("no hexadecimal digit"), "{found}");
        assert!(found.starts_with("m:2:"), "{found}");
        let found = refusal(&format!("\"0x{long}F\""));
        assert!(found.contains("odd"), "{found}");
        let found = refusal(&format!("\"0x{long}\" 5"));
        let column = "  %0 = stablehlo.constant dense<\"0x\" 5".len() + 2 * LONG;
        assert!(found.starts_with(&format!("m:2:{column}: error: expected `>`")), "{found}");
        assert!(slim(&format!("dense<\"0x{long}"), 999).constants.len() == 1, "cut off");
    }

    #[test]
    fn a_constant_inside_something_unknown_is_refused() {
        let text = format!("module attributes {{a.b = #a.b<dense<\"0x{}\">>}} {{}}", digits(LONG));
        let slim = slim(&text, 4096);
        let source = Source::new("m", String::from_utf8(slim.text.clone()).unwrap());
        let found = parse_slim(&source, slim.constants, &Options::default()).unwrap_err().to_string();
        assert!(found.contains("inside something unknown"), "{found}");
    }
}
