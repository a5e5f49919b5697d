//! Tiles of tensor-core operands in shared memory.

use super::geometry::Side;
use crate::builder::KernelBuilder;
use crate::index::IndexSpace;
use crate::steps::load_expr;
use crate::types::tensor_core_bytes;

/// Padding of tile lines, in elements, against bank conflicts.
pub(crate) const PADDING: usize = 8;

/// An operand that is loaded tile by tile.
pub(crate) struct Tile<'a> {
    pub(crate) side: &'a Side,
    pub(crate) batch: &'a IndexSpace,
    /// The operand's view in the batch dimensions.
    pub(crate) view: usize,
    /// Strides between lines of a tile and between their elements.
    pub(crate) along: isize,
    pub(crate) across: isize,
    /// Elements per line of the whole operand.
    pub(crate) size: usize,
}

/// A tile load.
pub(crate) struct Loaded<'a> {
    pub(crate) pointer: &'a str,
    /// The operand's base index.
    pub(crate) place: &'a str,
    /// The target in shared memory.
    pub(crate) to: &'a str,
    /// The first line and the first element of each line.
    pub(crate) from: &'a str,
    pub(crate) across_from: &'a str,
    /// Elements per line and lines of the tile, and lines of the operand.
    pub(crate) padded: usize,
    pub(crate) count: usize,
    pub(crate) limit: usize,
    pub(crate) threads: usize,
    pub(crate) ty: &'static str,
}

impl Tile<'_> {
    /// Emits the load of a tile, sixteen bytes at a time where it is aligned.
    pub(crate) fn emit(&self, builder: &mut KernelBuilder<'_>, to: &Loaded<'_>) {
        let Loaded { pointer, place, to: target, from, across_from, padded, count, limit, threads, ty } = *to;
        let chunk = 16 / tensor_core_bytes(ty);
        let aligned = |stride: isize| stride % chunk as isize == 0;
        let chunks = self.across == 1
            && self.size.is_multiple_of(chunk)
            && aligned(self.along)
            && aligned(self.side.offset)
            && self.batch.strides[self.view].iter().all(|&stride| aligned(stride));
        let wide = if chunks { padded / chunk } else { padded };
        let text = &mut builder.text;
        text.line("#pragma unroll 4");
        text.open(format!("for (int at = WF_THREAD; at < {}; at += {threads})", count * wide));
        let each = if chunks { format!(" * {chunk}") } else { String::new() };
        text.line(format!("const int line = at / {wide}, x = at % {wide}{each};"));
        text.line(format!(
            "const bool exists = {from} + line < {limit} && {across_from} + x < {};",
            self.size
        ));
        let source =
            format!("{place} + ({from} + line) * {} + ({across_from} + x) * {}", self.along, self.across);
        let target = format!("{target} + line * {} + x", padded + PADDING);
        if chunks {
            text.line(format!("wf_copy16({target}, {pointer} + (exists ? {source} : 0), exists);"));
        } else {
            let value = load_expr(pointer, &source);
            text.line(format!("*({target}) = exists ? wf_put<{ty}>((float){value}) : {ty}{{0}};"));
        }
        text.close();
    }
}
