//! MLIR locations: the name of what an operation came from, and the line of the source.

use std::fmt;

/// Locations inside locations are followed this deep; real ones are two or three deep.
const DEPTH: usize = 32;

/// What a location says. `loc("conv2d"("model.py":12:0))` has all of it, `loc(unknown)` nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Location {
    /// The name: of an FX node in an imported model.
    pub name: Option<String>,
    /// The source file and the line in it.
    pub source: Option<SourceLine>,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file as the location names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl Location {
    /// Reads a location as MLIR writes it, `loc(…)`. Of a fused one, or of a call, the first part that says something
    /// counts. `alias` gives the text behind `#name`. What is not a location says nothing.
    #[must_use]
    pub fn parse<'a>(text: &'a str, alias: &dyn Fn(&str) -> Option<&'a str>) -> Self {
        let mut reader = Reader { rest: text.trim(), alias };
        reader.whole(DEPTH).unwrap_or_default()
    }
}

impl fmt::Display for Location {
    /// The location as MLIR writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.source.as_ref().map(|source| format!("{}:{}:0", quoted(&source.file), source.line));
        match (&self.name, source) {
            (Some(name), Some(source)) => write!(f, "loc({}({source}))", quoted(name)),
            (Some(name), None) => write!(f, "loc({})", quoted(name)),
            (None, Some(source)) => write!(f, "loc({source})"),
            (None, None) => f.write_str("loc(unknown)"),
        }
    }
}

/// A string of MLIR: what is not printable ASCII is written as the codes of its bytes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => quoted += &format!("\\{byte:02X}"),
        }
    }
    quoted + "\""
}

struct Reader<'a, 'f> {
    rest: &'a str,
    alias: &'f dyn Fn(&str) -> Option<&'a str>,
}

impl<'a> Reader<'a, '_> {
    fn eat(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(text)?;
        Some(())
    }

    fn next_is(&self, text: &str) -> bool {
        self.rest.trim_start().starts_with(text)
    }

    /// `loc(…)`
    fn whole(&mut self, depth: usize) -> Option<Location> {
        self.eat("loc")?;
        self.eat("(")?;
        self.inner(depth.checked_sub(1)?)
    }

    /// What stands in the parentheses.
    fn inner(&mut self, depth: usize) -> Option<Location> {
        let deeper = depth.checked_sub(1)?;
        if self.next_is("\"") {
            return self.named_or_placed(deeper);
        }
        if self.eat("#").is_some() {
            let end = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
            let (name, rest) = self.rest.split_at(end);
            self.rest = rest;
            let target = (self.alias)(name);
            let parsed = target.and_then(|rest| Reader { rest, alias: self.alias }.whole(deeper));
            return Some(parsed.unwrap_or_default());
        }
        if self.eat("callsite").is_some() {
            self.eat("(")?;
            let callee = self.inner(deeper)?;
            self.eat("at")?;
            let caller = self.inner(deeper)?;
            self.eat(")")?;
            return Some(callee.or(caller));
        }
        if self.eat("fused").is_some() {
            return self.fused(deeper);
        }
        self.eat("unknown").map(|()| Location::default())
    }

    /// `"file":line:column`, `"name"` or `"name"(location)`.
    fn named_or_placed(&mut self, depth: usize) -> Option<Location> {
        let text = self.string()?;
        if self.eat(":").is_some() {
            let line = self.number()?;
            self.eat(":")?;
            self.number()?;
            // A range goes on to where it ends; only its start counts here.
            if self.eat("to").is_some() {
                self.number();
                self.eat(":")?;
                self.number()?;
            }
            return Some(Location { name: None, source: Some(SourceLine { file: text, line }) });
        }
        let mut location = Location { name: Some(text), source: None };
        if self.eat("(").is_some() {
            location = location.or(self.inner(depth)?);
            self.eat(")")?;
        }
        Some(location)
    }

    /// `fused<…>[location, …]`: the metadata says nothing about names or lines.
    fn fused(&mut self, depth: usize) -> Option<Location> {
        let at = self.rest.find('[')?;
        self.rest = &self.rest[at + 1..];
        let mut location = self.inner(depth)?;
        while self.eat(",").is_some() {
            location = location.or(self.inner(depth)?);
        }
        self.eat("]").map(|()| location)
    }

    fn number(&mut self) -> Option<u32> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits.parse().ok()
    }

    /// A string with MLIR's escapes: `\"`, `\\`, `\n`, `\t` and the two-digit codes of bytes.
    fn string(&mut self) -> Option<String> {
        self.eat("\"")?;
        let mut bytes = Vec::new();
        let text = self.rest.as_bytes();
        let mut at = 0;
        loop {
            match *text.get(at)? {
                b'"' => break,
                b'\\' => {
                    let (byte, length) = match *text.get(at + 1)? {
                        b'n' => (b'\n', 2),
                        b't' => (b'\t', 2),
                        plain @ (b'"' | b'\\') => (plain, 2),
                        _ => (u8::from_str_radix(self.rest.get(at + 1..at + 3)?, 16).ok()?, 3),
                    };
                    bytes.push(byte);
                    at += length;
                }
                byte => {
                    bytes.push(byte);
                    at += 1;
                }
            }
        }
        self.rest = &self.rest[at + 1..];
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Location {
    /// This location, with what it lacks from another.
    fn or(self, other: Self) -> Self {
        Self { name: self.name.or(other.name), source: self.source.or(other.source) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Location {
        Location::parse(text, &|name| match name {
            "loc1" => Some("loc(\"model.py\":7:3)"),
            "loop" => Some("loc(#loop)"),
            _ => None,
        })
    }

    fn location(name: Option<&str>, source: Option<(&str, u32)>) -> Location {
        let source = source.map(|(file, line)| SourceLine { file: file.to_owned(), line });
        Location { name: name.map(str::to_owned), source }
    }

    #[test]
    fn every_form_gives_its_name_and_line() {
        let placed = Some(("model.py", 7));
        for (text, expected) in [
            ("loc(unknown)", location(None, None)),
            ("loc(\"relu\")", location(Some("relu"), None)),
            ("loc(\"model.py\":7:3)", location(None, placed)),
            ("loc(\"model.py\":7:3 to 9:1)", location(None, placed)),
            ("loc(\"model.py\":7:3 to :9)", location(None, placed)),
            ("loc(\"relu\"(\"model.py\":7:3))", location(Some("relu"), placed)),
            ("loc(\"relu\"(#loc1))", location(Some("relu"), placed)),
            ("loc(#loc1)", location(None, placed)),
            ("loc(\"relu\"(#nowhere))", location(Some("relu"), None)),
            ("loc(callsite(\"relu\" at \"model.py\":7:3))", location(Some("relu"), placed)),
            ("loc(fused<\"why\">[unknown, \"relu\", \"model.py\":7:3])", location(Some("relu"), placed)),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for each in [
            location(None, None),
            location(Some("a \"quoted\" \\ näme\n"), Some(("dir\\file.py", 12))),
            location(Some("relu"), None),
            location(None, Some(("model.py", 1))),
        ] {
            assert_eq!(parse(&each.to_string()), each, "{each}");
        }
    }

    #[test]
    fn nonsense_says_nothing() {
        let deep = format!("loc({}unknown", "callsite(".repeat(100_000));
        for text in ["", "loc(", "loc(\"a", "loc(\"a\\", "loc(\"a\\é\")", "loc(#loop)", "loc(7)", &deep] {
            assert_eq!(parse(text), Location::default(), "{text:.40}");
        }
    }
}
