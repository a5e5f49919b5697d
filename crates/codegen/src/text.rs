//! Source text with indentation.

/// Lines of source.
#[derive(Debug, Default)]
pub(crate) struct Text {
    text: String,
    depth: usize,
}

impl Text {
    /// A line.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    /// A line that begins a block.
    pub(crate) fn open(&mut self, line: impl AsRef<str>) {
        self.line(format!("{} {{", line.as_ref()).trim_start());
        self.depth += 1;
    }

    /// A loop with constant bounds, unrolled.
    pub(crate) fn unrolled(&mut self, name: &str, count: usize) {
        self.line("#pragma unroll");
        self.open(format!("for (int {name} = 0; {name} < {count}; ++{name})"));
    }

    /// The same, with so many turns at once at most.
    pub(crate) fn unrolled_up_to(&mut self, name: &str, count: usize, most: usize) {
        if count <= most {
            return self.unrolled(name, count);
        }
        self.line(format!("#pragma unroll {most}"));
        self.open(format!("for (int {name} = 0; {name} < {count}; ++{name})"));
    }

    /// The end of a block.
    pub(crate) fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.line("}");
    }

    /// The text.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}
