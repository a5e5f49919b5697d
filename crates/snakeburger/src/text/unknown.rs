//! Short forms of operations whose dialect is not known, such as `sdy.mesh @mesh = <["x"=2]>`.
//!
//! What such an operation means is not known, but which values it uses is: the rest of its text is kept, and the uses are
//! filled in again when it is printed. An operation may take several lines: it ends where the next one starts.

use warpforge_ir::attr::Dict;
use warpforge_ir::{OpId, OpKind, Type, ValueId};

use super::cursor::{Parse, is_name_byte};
use super::parser::Parser;
use super::recover::starts_operation;

impl Parser<'_> {
    /// The rest of an operation of an unknown dialect that was not written in the generic form, up to the next operation
    /// or to its location.
    pub(super) fn unknown_op(&mut self, name: &str, start: usize, results: usize) -> Parse<OpId> {
        let known = |dialect: &str| OpKind::ALL.iter().any(|kind| kind.dialect() == dialect);
        if name.split_once('.').is_none_or(|(dialect, _)| known(dialect)) {
            return Err(self.cur.error_at(start, format!("unknown operation `{name}`")));
        }
        let from = self.cur.pos();
        let end = self.end_of_unknown(name, start)?;
        let (assembly, operands) = self.assembly(end)?;
        let types = self.trailing_types(name, from..end, results)?;
        let span = self.span_from(start);
        let op = self.module.create_unregistered(name, operands, types, Dict::new(), span);
        self.module.set_assembly(op, assembly.trim_end());
        Ok(op)
    }

    /// The text up to a position with its aliases resolved, and the values it uses, each of which leaves its `%` behind.
    fn assembly(&mut self, end: usize) -> Parse<(String, Vec<ValueId>)> {
        let (mut assembly, mut operands) = (String::new(), Vec::new());
        while self.cur.pos() < end {
            let at = self.cur.pos();
            match self.cur.rest().first() {
                // Line breaks and comments become a blank.
                Some(b'\n') => {
                    self.cur.skip();
                    if !assembly.ends_with(' ') {
                        assembly.push(' ');
                    }
                    continue;
                }
                Some(b'/') if self.cur.rest().starts_with(b"//") => {
                    let line = self.cur.rest().iter().position(|byte| *byte == b'\n');
                    self.cur.set_pos(line.map_or(end, |length| at + length));
                    assembly.truncate(assembly.trim_end().len());
                    continue;
                }
                Some(b'"') => {
                    self.cur.string()?;
                    assembly.push_str(self.cur.text().get(at..self.cur.pos()).unwrap_or_default());
                    continue;
                }
                Some(b'%') => {
                    let used = self.value_use()?;
                    operands.push(self.resolve(used)?);
                    assembly.push('%');
                    continue;
                }
                Some(sign @ (b'#' | b'!')) => {
                    self.cur.set_pos(at + 1);
                    let name = self.cur.take_while(is_name_byte);
                    match (sign, self.aliases.get(name), self.type_aliases.get(name)) {
                        (b'#', Some(value), _) => assembly.push_str(&value.to_string()),
                        (b'!', _, Some(ty)) => assembly.push_str(&ty.to_string()),
                        _ => assembly.push_str(self.cur.text().get(at..self.cur.pos()).unwrap_or_default()),
                    }
                    continue;
                }
                _ => {}
            }
            let marks = |byte: &u8| matches!(byte, b'"' | b'%' | b'#' | b'!' | b'\n' | b'/');
            let plain = self.cur.rest().iter().skip(1).position(marks);
            let next = plain.map_or(end, |length| end.min(at + 1 + length));
            assembly.push_str(self.cur.text().get(at..next).unwrap_or_default());
            self.cur.set_pos(next);
        }
        Ok((assembly, operands))
    }

    /// Where the text of the operation ends: where the next operation starts, or with its location or the region around
    /// it.
    fn end_of_unknown(&mut self, name: &str, start: usize) -> Parse<usize> {
        let rest = self.cur.rest();
        let mut open: Vec<u8> = Vec::new();
        let mut at = 0;
        while let Some(&byte) = rest.get(at) {
            let starts = |word: &[u8]| rest[at..].starts_with(word);
            let after_name = at > 0 && rest.get(at - 1).is_some_and(|before| is_name_byte(*before));
            match byte {
                b'\n' if open.is_empty() && !continues(&rest[at + 1..]) => break,
                b'\n' if open.contains(&b'}') && starts_operation(&rest[at + 1..]) => {
                    let message =
                        format!("`{name}` is of an unknown dialect and has a region; write \"{name}\"(…)");
                    return Err(self.cur.error_at(start, message));
                }
                b'"' => {
                    let Some(length) = quoted_length(&rest[at..]) else {
                        return Err(self.cur.error_at(self.cur.pos() + at, "the string is not closed"));
                    };
                    at += length - 1;
                }
                b'^' => {
                    return Err(self
                        .cur
                        .error_at(start, "operations that jump to other blocks are not supported"));
                }
                b'(' => open.push(b')'),
                b'[' => open.push(b']'),
                b'{' => open.push(b'}'),
                b')' | b']' | b'}' => match open.pop() {
                    Some(wanted) if wanted == byte => {}
                    None => break,
                    Some(_) => return Err(self.cur.error_at(self.cur.pos() + at, "brackets do not match")),
                },
                b'/' if starts(b"//") => {
                    let line = rest[at..].iter().position(|byte| *byte == b'\n');
                    at += line.unwrap_or(rest.len() - at);
                    continue;
                }
                b'l' if open.is_empty() && starts(b"loc(") && !after_name => break,
                _ => {}
            }
            at += 1;
        }
        if open.is_empty() {
            let text = &rest[..at.min(rest.len())];
            return Ok(self.cur.pos() + without_comment(text).trim_ascii_end().len());
        }
        Err(self.cur.error_at(start, format!("the brackets of `{name}` are not closed")))
    }

    /// The types of the results, which end the line: a function's type, or theirs alone after `:`, `->` or `to`.
    fn trailing_types(
        &mut self,
        name: &str,
        line: std::ops::Range<usize>,
        results: usize,
    ) -> Parse<Vec<Type>> {
        if results == 0 {
            return Ok(Vec::new());
        }
        let text = self.cur.text().get(line.clone()).unwrap_or_default();
        let back = self.cur.pos();
        let words = [":", "->", " to", "\nto"];
        for (at, word) in words.iter().flat_map(|word| text.match_indices(word)) {
            let after = at + word.len();
            if !text[after..].starts_with(|c: char| c.is_ascii_whitespace()) {
                continue;
            }
            self.cur.set_pos(line.start + after);
            let types = if self.cur.looking_at("(") {
                self.function_type().map(|function| function.results)
            } else {
                self.type_list()
            };
            if let Ok(types) = types
                && types.len() == results
                && self.cur.text().get(self.cur.pos()..line.end).is_none_or(|rest| rest.trim().is_empty())
            {
                self.cur.set_pos(back);
                return Ok(types);
            }
        }
        let message =
            format!("`{name}` is of an unknown dialect, and its types are not seen; write \"{name}\"(…)");
        Err(self.cur.error_at(line.start, message))
    }
}

/// Whether the lines after the end of a line go on with its operation: the next one that is neither blank nor comment
/// starts no operation, closes no region and defines no alias.
fn continues(text: &[u8]) -> bool {
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii_start();
        if line.is_empty() || line.starts_with(b"//") {
            continue;
        }
        let alias = matches!(line[0], b'#' | b'!') && {
            let name = line[1..].iter().position(|byte| !is_name_byte(*byte)).map_or(line.len(), |at| at + 1);
            line[name..].trim_ascii_start().starts_with(b"=")
        };
        return !(alias || line[0] == b'}' || line.starts_with(b"{-#") || starts_operation(line));
    }
    false
}

/// The length of a string with its quotes; `None` where it is not closed.
fn quoted_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// A text without the comments that end it.
fn without_comment(text: &[u8]) -> &[u8] {
    let mut end = text.trim_ascii_end();
    loop {
        let line = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        match comment_in(&end[line..]) {
            Some(at) => end = end[..line + at].trim_ascii_end(),
            None => return end,
        }
    }
}

/// Where a comment starts in a line.
fn comment_in(line: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        match byte {
            b'"' => at += quoted_length(&line[at..])?,
            b'/' if line[at..].starts_with(b"//") => return Some(at),
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::{Options, parse};
    use warpforge_diag::Source;
    use warpforge_ir::print::{Form, print, print_as};

    #[test]
    fn short_forms_of_unknown_dialects_are_kept() {
        let text = r#"module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<8x8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    %2:2 = other.pair(%1, %0) {a = "% } \" 5"} : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<f32>, tensor<8x8xf32>)
    %3 = shape.shape_of %1 : tensor<8x8xf32> -> tensor<2xindex>
    %4 = tensor.cast %1 : tensor<8x8xf32> to tensor<?x8xf32>
    return %2#1 : tensor<8x8xf32>
  }
}
"#;
        let read = |text: &str| {
            parse(&Source::new("m", text), &Options::default()).unwrap_or_else(|found| panic!("{found}"))
        };
        assert_eq!(print(&read(text)), text);
        let generic = print_as(&read(text), Form::Generic);
        assert_eq!(print(&read(&generic)), text, "they stay as they are in the generic form");
    }

    #[test]
    fn an_operation_may_take_several_lines() {
        let text = r#"module {
  func.func @main(%arg0: tensor<2xi32>) -> tensor<2xi32> {
    %0 = arith.constant dense<[
      1, // the first
      2
    ]> : tensor<2xi32>
    %1 = arith.addi %arg0,
      %0
      : tensor<2xi32> // the sum

    %2 = other.op %1 {a = "x // y",
      b = [1,
           2]} :
      (tensor<2xi32>)
      -> tensor<2xi32> loc("here")
    return %2 : tensor<2xi32>
  }
}
"#;
        let printed = r#"module {
  func.func @main(%arg0: tensor<2xi32>) -> tensor<2xi32> {
    %0 = arith.constant dense<[ 1, 2 ]> : tensor<2xi32>
    %1 = arith.addi %arg0, %0 : tensor<2xi32>
    %2 = other.op %1 {a = "x // y", b = [1, 2]} : (tensor<2xi32>) -> tensor<2xi32>
    return %2 : tensor<2xi32>
  }
}
"#;
        let read = |text: &str| {
            parse(&Source::new("m", text), &Options::default()).unwrap_or_else(|found| panic!("{found}"))
        };
        assert_eq!(print(&read(text)), printed);
        assert_eq!(print(&read(printed)), printed);
    }

    #[test]
    fn what_cannot_be_kept_is_refused_by_name() {
        let refused = |line: &str| {
            let text = format!("func.func @f() {{\n  {line}\n  return\n}}");
            parse(&Source::new("m", text), &Options::default()).unwrap_err().to_string()
        };
        assert!(refused("cf.br ^bb1").contains("m:2:3: error: operations that jump"));
        assert!(refused("a.b {\n  x.y\n  }").contains("has a region"));
        assert!(refused("a.b (\n").contains("brackets do not match"));
        assert!(refused("%0 = a.b nothing").contains("its types are not seen"));
        assert!(refused("stablehlo.b").contains("unknown operation `stablehlo.b`"));
        assert!(refused("a.b %x").contains("`%x` is not defined"));
        assert!(refused("a.b (]").contains("brackets do not match"));
        assert!(refused("a.b \"").contains("error"));
    }
}
