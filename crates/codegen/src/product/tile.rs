//! Tiles of operands for tensor cores, copied into shared memory.

use warpforge_tensor::ElementType;

use super::geometry::Side;
use crate::draft::Draft;
use crate::index::Space;
use crate::steps::loaded;

/// Elements after each line of a tile, so that the lines of a matrix lie in different banks.
pub(crate) const APART: usize = 8;

/// An operand that is read tile by tile, in lines.
pub(crate) struct Tile<'a> {
    pub(crate) side: &'a Side,
    pub(crate) batch: &'a Space,
    /// Which view of the batch is the operand's.
    pub(crate) view: usize,
    /// Between lines of the tile, and between their elements.
    pub(crate) along: isize,
    pub(crate) across: isize,
    /// Elements of a line, of all tiles together.
    pub(crate) size: usize,
}

/// Where a tile goes.
pub(crate) struct Loaded<'a> {
    pub(crate) pointer: &'a str,
    /// Where the operand begins.
    pub(crate) place: &'a str,
    /// The shared memory.
    pub(crate) to: &'a str,
    /// The first line and the first element of the lines.
    pub(crate) from: &'a str,
    pub(crate) across_from: &'a str,
    /// Elements of a line of this tile, lines, and lines of the operand.
    pub(crate) padded: usize,
    pub(crate) count: usize,
    pub(crate) limit: usize,
    pub(crate) threads: usize,
    pub(crate) ty: &'static str,
}

impl Tile<'_> {
    /// Lines that load a tile, sixteen bytes at a time where they lie so.
    pub(crate) fn emit(&self, draft: &mut Draft<'_>, to: &Loaded<'_>) {
        let Loaded { pointer, place, to: target, from, across_from, padded, count, limit, threads, ty } = *to;
        let eight = |stride: isize| stride % 8 == 0;
        let chunks = self.side.element != ElementType::F32
            && self.across == 1
            && self.size.is_multiple_of(8)
            && eight(self.along)
            && eight(self.side.offset)
            && self.batch.strides[self.view].iter().all(|&stride| eight(stride));
        let wide = if chunks { padded / 8 } else { padded };
        let text = &mut draft.text;
        text.line("#pragma unroll 4");
        text.open(format!("for (int at = WF_THREAD; at < {}; at += {threads})", count * wide));
        let each = if chunks { " * 8" } else { "" };
        text.line(format!("const int line = at / {wide}, x = at % {wide}{each};"));
        text.line(format!(
            "const bool exists = {from} + line < {limit} && {across_from} + x < {};",
            self.size
        ));
        let source =
            format!("{place} + ({from} + line) * {} + ({across_from} + x) * {}", self.along, self.across);
        let target = format!("{target} + line * {} + x", padded + APART);
        if chunks {
            text.line(format!("wf_copy16({target}, {pointer} + (exists ? {source} : 0), exists);"));
        } else {
            let value = loaded(pointer, &source);
            text.line(format!("*({target}) = exists ? wf_put<{ty}>((float){value}) : {ty}{{0}};"));
        }
        text.close();
    }
}
