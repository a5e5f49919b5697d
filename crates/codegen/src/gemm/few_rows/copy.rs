//! Copies into shared memory: codes, some steps before they are multiplied; activations, once; scales and offsets, for each tile.

use super::plan::{Codes, LANE_BYTES, STAGES, TILE};
use super::product::Product;
use crate::builder::KernelBuilder;
use crate::kernel::Unsupported;
use crate::text::Text;

/// The copies of a kernel.
pub(super) struct Copies<'a> {
    product: &'a Product<'a>,
    /// The pointer to the codes.
    codes: String,
}

impl<'a> Copies<'a> {
    pub(super) fn new(product: &'a Product<'a>, codes: String) -> Self {
        Self { product, codes }
    }

    /// Emits the copies of the activations, of the first scales and offsets and of the first codes.
    pub(super) fn begin(&self, builder: &mut KernelBuilder<'_>) -> Result<(), Unsupported> {
        let plan = &self.product.plan;
        if plan.shares_rows {
            self.rows(&mut builder.text);
        }
        self.factors(builder, "WF_BLOCK", "0")?;
        let text = &mut builder.text;
        text.line("wf_copies_end();");
        text.line("int ahead = 0, ahead_tile = WF_BLOCK;");
        for half in 0..plan.halves {
            text.line(format!("const unsigned* from{half} = {};", self.first(half)));
        }
        text.unrolled("stage", STAGES - 1);
        self.next(text, "stage");
        text.close();
        if plan.shares_rows || plan.groups > 0 {
            text.line(format!("wf_copies_wait<{}>();", STAGES - 1));
            text.line("wf_sync();");
        }
        if plan.knows_totals() {
            self.product.arrange(text);
        }
        Ok(())
    }

    fn rows(&self, text: &mut Text) {
        let Product { plan, geometry, index, .. } = self.product;
        let (k, stride) = (geometry.k, plan.row_stride());
        self.product.vectors(text, geometry.m * k, 8);
        let from = format!("({index})(at / {k}) * {} + at % {k}", geometry.lhs.row);
        text.line(format!("wf_copy16(rows + at / {k} * {stride} + at % {k}, x + {from}, true);"));
        text.close();
        text.close();
    }

    /// Emits the copies of a tile's scales and offsets to a place.
    pub(super) fn factors(
        &self,
        builder: &mut KernelBuilder<'_>,
        tile: &str,
        place: &str,
    ) -> Result<(), Unsupported> {
        let Product { plan, geometry, index, .. } = self.product;
        let Codes::Grouped(groups) = plan.codes else { return Ok(()) };
        let (n, count, columns) = (geometry.n, plan.groups, plan.columns());
        let pointers = [groups.scales, groups.offsets].map(|value| builder.read(value));
        let [scales, offsets] = pointers;
        let both = [("scales", scales?), ("offsets", offsets?)];
        let text = &mut builder.text;
        let to =
            format!("{place} * {} + at / {count} * {} + at % {count}", plan.factors(), plan.factor_stride());
        if n.is_multiple_of(columns) {
            self.product.vectors(text, columns * count, 8);
            for (name, pointer) in both {
                let from = format!("({index}){tile} * {} + at", columns * count);
                text.line(format!("wf_copy16({name} + {to}, {pointer} + {from}, true);"));
            }
        } else {
            self.product.vectors(text, columns * count, 1);
            text.line(format!("const {index} n = {tile} * {columns} + at / {count};"));
            for (name, pointer) in both {
                let from = format!("(n < {n} ? n : {}) * {count} + at % {count}", n - 1);
                text.line(format!("{name}[{to}] = {pointer}[{from}];"));
            }
        }
        text.close();
        text.close();
        Ok(())
    }

    /// A lane's first codes of the tile that is copied.
    fn first(&self, half: usize) -> String {
        let Product { plan, geometry, index, .. } = self.product;
        let (n, per_word) = (geometry.n, plan.codes.per_word());
        let column = format!("ahead_tile * {} + {} + line", plan.columns(), half * TILE);
        let column = format!("({index})({column} < {n} ? {column} : {})", n - 1);
        let at = format!("warp * {} + part * {}", plan.step() / per_word, plan.words);
        format!("(const unsigned*){} + {column} * {} + {at}", self.codes, geometry.k / per_word)
    }

    /// Where a lane's codes of a stage lie.
    fn slot(&self, stage: &str, half: usize) -> String {
        let plan = &self.product.plan;
        format!("staged + ({stage}) * {} + {}", plan.stage(), half * plan.threads() * plan.words)
    }

    /// Emits the copies of a lane's next codes, which it makes for itself; beyond the depth and the last tile there are zeros.
    pub(super) fn next(&self, text: &mut Text, stage: &str) {
        let Product { plan, geometry, .. } = self.product;
        let (warps, per_word) = (plan.warps, plan.codes.per_word());
        let mut exists = vec![format!("ahead_tile < {}", plan.tiles)];
        if plan.is_cut_off() || !plan.is_even() {
            let at = format!("(warp + ahead * {warps}) * {} + part * {}", plan.step(), plan.lane_codes());
            exists.push(format!("{at} < {}", geometry.k));
        }
        text.open("");
        text.line(format!("const bool exists = {};", exists.join(" && ")));
        for half in 0..plan.halves {
            let slot = self.slot(stage, half);
            let from = format!("(exists ? from{half} : (const unsigned*){})", self.codes);
            if plan.words * 4 == LANE_BYTES {
                text.line(format!("wf_stream16({slot}, {from}, exists);"));
            } else {
                text.unrolled("word", plan.words);
                text.line(format!("wf_copy4({slot} + word, {from} + word, exists);"));
                text.close();
            }
            text.line(format!("from{half} += {};", warps * plan.step() / per_word));
        }
        text.open(format!("if (++ahead == {})", plan.turns()));
        text.line("ahead = 0;");
        text.line(format!("ahead_tile += {};", plan.blocks));
        for half in 0..plan.halves {
            text.line(format!("from{half} = {};", self.first(half)));
        }
        text.close();
        text.close();
        text.line("wf_copies_end();");
    }

    /// Emits the loads of the codes that have arrived.
    pub(super) fn take(&self, text: &mut Text) {
        let plan = &self.product.plan;
        let vector = format!("wf_vec<unsigned, {}>", plan.words);
        text.line(format!("wf_copies_wait<{}>();", STAGES - 2));
        for half in 0..plan.halves {
            let slot = self.slot(&format!("turn % {STAGES}"), half);
            text.line(format!("const {vector} codes{half} = *(const {vector}*)({slot});"));
        }
    }
}

impl Product<'_> {
    /// Emits the sums of the activations of each step, and puts pairs of activations beside each other as codes of 4 bits lie.
    fn arrange(&self, text: &mut Text) {
        let Self { plan, geometry, ty, .. } = self;
        let (k, stride, step) = (geometry.k, plan.row_stride(), plan.step());
        let (all, at_once, lanes) = (geometry.m * k, plan.threads() * 8, step / 8);
        // Whole warps take part, so that lanes may add their sums.
        text.unrolled_up_to("piece", all.div_ceil(at_once), 4);
        text.line(format!("const int at = WF_THREAD * 8 + piece * {at_once};"));
        text.line("float total = 0;");
        text.open(format!("if (at < {all})"));
        text.line(format!("{ty}* const place = rows + at / {k} * {stride} + at % {k};"));
        text.line(format!("const wf_vec<{ty}, 8> eight = *(const wf_vec<{ty}, 8>*)place;"));
        text.unrolled("e", 8);
        text.line("total += wf_get(eight.x[e]);");
        text.close();
        text.line("*(wf_vec<unsigned, 4>*)place = wf_all_apart(*(const wf_vec<unsigned, 4>*)place);");
        text.close();
        text.unrolled("by", lanes.ilog2() as usize);
        text.line("total += wf_shuffle(total, 1 << by);");
        text.close();
        let place = format!("at / {k} * {} + at % {k} / {step}", plan.total_stride());
        text.line(format!("if (at < {all} && WF_THREAD % {lanes} == 0) totals[{place}] = total;"));
        text.close();
        text.line("wf_sync();");
    }
}
