//! Expressions as sympy's `srepr` writes them.

use super::Size;

/// Deeper than any expression of sizes; keeps a hostile one from using up the stack.
const MAX_DEPTH: usize = 100;

/// Reads a whole expression.
pub(super) fn parse(text: &str) -> Result<Size, String> {
    let mut parser = Parser { rest: text, depth: 0 };
    let size = parser.expression()?;
    parser.skip_spaces();
    if parser.rest.is_empty() { Ok(size) } else { Err(format!("`{}` is left over", parser.near())) }
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn expression(&mut self) -> Result<Size, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("it is nested too deeply".to_owned());
        }
        let name = self.word()?;
        self.expect('(')?;
        let size = match name {
            "Symbol" => self.symbol()?,
            "Integer" => Size::Int(self.integer()?),
            _ => self.call(name)?,
        };
        self.expect(')')?;
        self.depth -= 1;
        Ok(size)
    }

    fn call(&mut self, name: &str) -> Result<Size, String> {
        let mut arguments = vec![self.expression()?];
        while self.eat(',') {
            arguments.push(self.expression()?);
        }
        match (name, arguments.as_slice()) {
            ("Add", all) => Ok(all.iter().fold(Size::Int(0), |sum, size| sum.add(size))),
            ("Mul", all) => Ok(Size::product(all)),
            ("Max", [first, rest @ ..]) => {
                Ok(rest.iter().fold(first.clone(), |size, other| size.larger(other)))
            }
            ("Min", [first, rest @ ..]) => {
                Ok(rest.iter().fold(first.clone(), |size, other| size.smaller(other)))
            }
            ("Pow" | "PowByNatural", [base, Size::Int(power @ 0..=16)]) => {
                Ok((0..*power).fold(Size::Int(1), |size, _| size.mul(base)))
            }
            ("FloorDiv" | "CleanDiv", [a, b]) => {
                a.floor_div(b).ok_or_else(|| "a division by zero".to_owned())
            }
            ("Mod" | "PythonMod", [a, b]) => a.modulo(b).ok_or_else(|| "a division by zero".to_owned()),
            _ => Err(format!("the function `{name}` of {} arguments is not known", arguments.len())),
        }
    }

    /// `'s0', positive=True, integer=True`.
    fn symbol(&mut self) -> Result<Size, String> {
        self.expect('\'')?;
        let (name, rest) = self.rest.split_once('\'').ok_or("a symbol's name does not end")?;
        self.rest = rest;
        while self.eat(',') {
            self.word()?;
            self.expect('=')?;
            self.word()?;
        }
        Ok(Size::symbol(name))
    }

    fn integer(&mut self) -> Result<i64, String> {
        self.skip_spaces();
        let end = self.rest.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits.parse().map_err(|_| format!("`{digits}` is no 64-bit integer"))
    }

    fn word(&mut self) -> Result<&'a str, String> {
        self.skip_spaces();
        let end = self.rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(format!("a name must be at `{}`", self.near()));
        }
        self.rest = rest;
        Ok(word)
    }

    fn eat(&mut self, symbol: char) -> bool {
        self.skip_spaces();
        let Some(rest) = self.rest.strip_prefix(symbol) else { return false };
        self.rest = rest;
        true
    }

    fn expect(&mut self, symbol: char) -> Result<(), String> {
        if self.eat(symbol) { Ok(()) } else { Err(format!("`{symbol}` must be at `{}`", self.near())) }
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn near(&self) -> String {
        self.rest.chars().take(20).collect()
    }
}
