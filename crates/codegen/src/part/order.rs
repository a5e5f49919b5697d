//! Orders of positions by merging: parts in shared memory first, then runs of them, each pass a kernel.
//!
//! Equal elements keep their order, and nothing but the comparison decides: a run gives what the next one gives.

use super::Cut;
use crate::draft::{Draft, Launch};
use crate::index::int;
use crate::kernel::{Kernel, Unsupported};

/// Positions that one block orders in shared memory, a thread for each.
const PART: usize = 1024;

/// Threads of a block that merges.
const THREADS: usize = 256;

/// Lines of values, each of which gets an order of its own.
pub(super) struct Lines<'c> {
    pub(super) cut: &'c Cut<'c>,
    pub(super) count: usize,
    /// Values of a line.
    pub(super) length: usize,
    /// What is ordered, for people.
    pub(super) what: &'static str,
    /// Two numbers of scratch memory, [`Lines::scratch_bytes`] each; passes write one and read the other.
    pub(super) scratch: [usize; 2],
}

/// Writes lines of code.
type Writes<'w> = &'w dyn Fn(&mut Draft<'_>) -> Result<(), Unsupported>;

impl Lines<'_> {
    /// Bytes of each of the two scratch memories; 0 where none is needed.
    pub(super) fn scratch_bytes(&self) -> u64 {
        if self.length > PART { (self.count * self.length * 4) as u64 } else { 0 }
    }

    /// Kernels that find the order. `compare` are the lines of a function of two positions `a` and `b` of a `line` that
    /// returns whether the first comes before the second; `last` are lines for the position `own` that comes to `to`.
    pub(super) fn kernels(&self, compare: Writes<'_>, last: Writes<'_>) -> Result<Vec<Kernel>, Unsupported> {
        if self.length >= 1 << 30 {
            return Err(Unsupported::new(format!("an order of {} elements", self.length)));
        }
        let mut kernels = vec![self.parts(compare, last)?];
        let mut run = PART;
        let mut from = 0;
        while run < self.length {
            kernels.push(self.merge(run, from, compare, last)?);
            run *= 2;
            from = 1 - from;
        }
        Ok(kernels)
    }

    fn index(&self) -> &'static str {
        int(self.count * self.length)
    }

    /// Lines that begin a kernel's comparison.
    fn comparison(&self, draft: &mut Draft<'_>, compare: Writes<'_>) -> Result<(), Unsupported> {
        draft.text.open("const auto precedes = [&](int a, int b) -> bool");
        compare(draft)?;
        draft.text.close();
        draft.text.line(";");
        Ok(())
    }

    /// The kernel that orders parts of lines.
    fn parts(&self, compare: Writes<'_>, last: Writes<'_>) -> Result<Kernel, Unsupported> {
        let Self { cut, count, length, .. } = self;
        let (index, parts) = (self.index(), length.div_ceil(PART));
        let threads = length.next_multiple_of(32).min(PART);
        let mut draft = Draft::new(cut.graph, cut.options);
        draft.salt().begin(&mut draft.text);
        draft.text.line(format!("WF_SHARED int order[2][{PART}];"));
        draft.text.line(format!("const {index} line = WF_BLOCK / {parts};"));
        draft.text.line(format!("const int first = WF_BLOCK % {parts} * {PART};"));
        draft.text.line(format!("const int count = {length} - first < {PART} ? {length} - first : {PART};"));
        self.comparison(&mut draft, compare)?;
        let each = format!("for (int at = WF_THREAD; at < count; at += {threads})");
        draft.text.line(format!("{each} order[0][at] = first + at;"));
        draft.text.line("wf_sync();");
        draft.text.line("int now = 0;");
        draft.text.open("for (int run = 1; run < count; run *= 2)");
        draft.text.open(&each);
        draft.text.line("order[1 - now][wf_merged(order[now], at, run, count, precedes)] = order[now][at];");
        draft.text.close();
        draft.text.line("wf_sync();");
        draft.text.line("now = 1 - now;");
        draft.text.close();
        draft.text.open(&each);
        draft.text.line("const int own = order[now][at];");
        if parts == 1 {
            draft.text.line("const int to = at;");
            last(&mut draft)?;
        } else {
            let to = draft.scratch(self.scratch[0], "int", false);
            draft.text.line(format!("{to}[line * {length} + first + at] = own;"));
        }
        draft.text.close();
        self.finish(draft, &Launch::new(count * parts, threads), "parts")
    }

    /// The kernel that merges runs of a length.
    fn merge(
        &self,
        run: usize,
        from: usize,
        compare: Writes<'_>,
        last: Writes<'_>,
    ) -> Result<Kernel, Unsupported> {
        let Self { cut, count, length, .. } = self;
        let (index, all) = (self.index(), count * length);
        let mut draft = Draft::new(cut.graph, cut.options);
        draft.salt().begin(&mut draft.text);
        draft.text.line(format!("const {index} n = ({index})WF_BLOCK * {THREADS} + WF_THREAD;"));
        draft.text.open(format!("if (n < {all})"));
        draft.text.line(format!("const {index} line = n / {length};"));
        draft.text.line(format!("const int at = n % {length};"));
        self.comparison(&mut draft, compare)?;
        let source = draft.scratch(self.scratch[from], "int", true);
        draft.text.line(format!("const int own = {source}[n];"));
        draft.text.line(format!(
            "const int to = wf_merged({source} + line * {length}, at, {run}, {length}, precedes);"
        ));
        if run * 2 >= *length {
            last(&mut draft)?;
        } else {
            let target = draft.scratch(self.scratch[1 - from], "int", false);
            draft.text.line(format!("{target}[line * {length} + to] = own;"));
        }
        draft.text.close();
        self.finish(draft, &Launch::new(all.div_ceil(THREADS), THREADS), &format!("runs of {run}"))
    }

    fn finish(&self, mut draft: Draft<'_>, launch: &Launch, how: &str) -> Result<Kernel, Unsupported> {
        let Self { cut, count, length, what, .. } = self;
        draft.salt().end(&mut draft.text);
        let title = format!("{what}, {count} lines of {length}: {how}");
        draft.finish(what, title, launch, cut.cluster.cost(cut.graph))
    }
}
