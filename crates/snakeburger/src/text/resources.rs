//! The section of a file that holds the data of `dense_resource` constants.

use super::cursor::Parse;
use super::parser::Parser;

impl Parser<'_> {
    /// Reads the section before anything else, as constants refer to what comes after them.
    pub(super) fn find_resources(&mut self) -> Parse<()> {
        let text = self.cur.text();
        let Some(at) = last_section(text.as_bytes()) else { return Ok(()) };
        let before = text[..at].trim_end();
        // The section stands between operations: what looks like it inside a string does not.
        if !(before.is_empty() || before.ends_with(['}', ')', '>', '"', '\n'])) {
            return Ok(());
        }
        self.cur.set_pos(at);
        self.cur.expect("{-#")?;
        while !self.cur.eat("#-}") {
            let section = self.cur.word().ok_or_else(|| self.cur.expected("the name of a section"))?;
            self.cur.expect(":")?;
            if section == "dialect_resources" {
                self.dialect_resources()?;
            } else {
                self.cur.balanced(b'{', b'}')?;
            }
            self.cur.eat(",");
        }
        self.cur.set_pos(0);
        Ok(())
    }

    fn dialect_resources(&mut self) -> Parse<()> {
        self.list_of("{", "}", |parser| {
            parser.cur.word().ok_or_else(|| parser.cur.expected("the name of a dialect"))?;
            parser.cur.expect(":")?;
            parser.list_of("{", "}", Self::resource)?;
            Ok(())
        })?;
        Ok(())
    }

    /// `name: "0x…"`: four bytes of alignment, then the data.
    fn resource(&mut self) -> Parse<()> {
        let name = if self.cur.peek() == Some(b'"') {
            self.cur.string()?
        } else {
            self.cur.word().ok_or_else(|| self.cur.expected("the name of a resource"))?.to_owned()
        };
        self.cur.expect(":")?;
        self.cur.skip();
        let start = self.cur.pos();
        self.cur.expect("\"")?;
        if !self.cur.rest().starts_with(b"0x") {
            return Err(self.cur.error_at(start, "a resource must be hexadecimal, with `0x`"));
        }
        self.cur.set_pos(self.cur.pos() + 2);
        let all = self.hex_bytes()?;
        let data = all.slice(4..all.len().max(4));
        let data =
            data.ok_or_else(|| self.cur.error_at(start, "a resource starts with four bytes of alignment"))?;
        self.resources.insert(name, data);
        Ok(())
    }

    /// Steps over the section, which has been read.
    pub(super) fn skip_resources(&mut self) -> Parse<()> {
        let rest = self.cur.rest();
        let end = rest.windows(3).position(|window| window == b"#-}");
        match end {
            Some(at) => {
                self.cur.set_pos(self.cur.pos() + at + 3);
                Ok(())
            }
            None => Err(self.cur.error_here("the section of resources is not closed")),
        }
    }
}

/// Where the last `{-#` is, by the byte of it that large constants do not have.
fn last_section(text: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(b'#', text).find(|&at| text[..at].ends_with(b"{-")).map(|at| at - 2)
}
