//! The products of a step.

use super::plan::{Codes, TILE};
use super::product::Product;
use crate::index::sum;
use crate::text::Text;

impl Product<'_> {
    /// Emits the products of a step.
    pub(super) fn multiply(&self, text: &mut Text) {
        let Self { plan, ty, .. } = self;
        let grouped = plan.groups > 0;
        if grouped {
            text.line(format!("float own[{}][4] = {{}};", plan.row_tiles));
        }
        let counts = grouped && !plan.knows_totals();
        if counts {
            text.line(format!("float given[{}][4] = {{}};", plan.row_tiles));
            text.line(format!("const unsigned one = wf_ones(({ty}*)0);"));
            text.line("const unsigned ones[4] = {one, one, one, one};");
        }
        // Eight elements of the depth at a time.
        let words = 8 / plan.codes.per_word();
        text.unrolled("c", plan.words / words);
        for pair in 0..2 {
            text.line(format!("unsigned l{pair}[4] = {{}};"));
            for half in 0..plan.halves {
                for side in 0..2 {
                    let value = self.pair(pair * 2 + side, half, words);
                    text.line(format!("l{pair}[{}] = {value};", side * 2 + half));
                }
            }
        }
        text.unrolled("t", plan.row_tiles);
        self.activations(text);
        let target = if grouped { "own" } else { "sums" };
        for pair in 0..2 {
            let [first, second] = [0, 1].map(|side| self.right(pair * 2 + side));
            text.line(format!("wf_mma({target}[t], l{pair}, {first}, {second}, ({ty}*)0);"));
            if counts {
                text.line(format!("wf_mma(given[t], ones, {first}, {second}, ({ty}*)0);"));
            }
        }
        text.close();
        text.close();
        if grouped {
            self.scale(text);
        }
    }

    /// Emits the loads of eight activations. Lines without a row may have those of any: their products are not used.
    fn activations(&self, text: &mut Text) {
        let Self { plan, geometry, index, .. } = self;
        let (m, vector) = (geometry.m, "wf_vec<unsigned, 4>");
        let (memory, stride) = match plan.shares_rows {
            true => ("rows", plan.row_stride().to_string()),
            false => ("x", format!("({index}){}", geometry.lhs.row)),
        };
        let line = format!("t * {TILE} + line");
        let row = if m.is_multiple_of(TILE) { line } else { format!("({line} < {m} ? {line} : {})", m - 1) };
        let at = format!("step * {} + part * {} + c * 8", plan.step(), plan.lane_codes());
        let load = format!("*(const {vector}*)({memory} + ({row}) * {stride} + {at})");
        // Beyond the depth codes are zeros, and what is multiplied by them may not be.
        match plan.is_cut_off() {
            true => {
                text.line(format!("{vector} eight = {{}};"));
                text.line(format!("if ({at} < {}) eight = {load};", geometry.k));
            }
            false => text.line(format!("const {vector} eight = {load};")),
        }
    }

    /// A register of the left operand: two elements, of those that [`Product::right`] gives too.
    fn pair(&self, number: usize, half: usize, words: usize) -> String {
        let word = |at: usize| format!("codes{half}.x[{}]", sum(&[format!("c * {words}"), at.to_string()]));
        let ty = self.ty;
        match self.plan.codes {
            Codes::Grouped(_) => format!("wf_nibbles({}, {number}, ({ty}*)0)", word(0)),
            Codes::I8 => format!("wf_i8_pair({}, {}, ({ty}*)0)", word(number / 2), number % 2),
            Codes::F8 => format!("wf_f8_pair({}, {}, ({ty}*)0)", word(number / 2), number % 2),
        }
    }

    fn right(&self, number: usize) -> String {
        match self.plan.groups > 0 && !self.plan.knows_totals() {
            true => format!("wf_apart(eight, {number})"),
            false => format!("eight.x[{number}]"),
        }
    }

    /// Emits the scaling of a step's products by the scale and the offset of its group.
    fn scale(&self, text: &mut Text) {
        let Self { plan, ty, .. } = self;
        let Codes::Grouped(groups) = plan.codes else { return };
        let group = match groups.size / plan.step() {
            1 => "step".to_owned(),
            steps => format!("step / {steps}"),
        };
        for half in 0..plan.halves {
            let line = format!("(line + {}) * {}", half * TILE, plan.factor_stride());
            let place = format!("place * {} + {line} + {group}", plan.factors());
            text.line(format!("const float scale{half} = wf_get(scales[{place}]);"));
            text.line(format!(
                "const float moved{half} = wf_fma(-wf_nibble_zero(({ty}*)0), scale{half}, wf_get(offsets[{place}]));"
            ));
        }
        text.unrolled("t", plan.row_tiles);
        let given = if plan.knows_totals() { "total" } else { "given[t]" };
        if plan.knows_totals() {
            text.line("float total[2];");
            text.unrolled("e", 2);
            let row = format!("t * {TILE} + part * 2 + e");
            text.line(format!("total[e] = totals[({row}) * {} + step];", plan.total_stride()));
            text.close();
        }
        for half in 0..plan.halves {
            for element in 0..2 {
                let at = half * 2 + element;
                text.line(format!(
                    "sums[t][{at}] = wf_fma(scale{half}, own[t][{at}], wf_fma(moved{half}, {given}[{element}], sums[t][{at}]));"
                ));
            }
        }
        text.close();
    }
}
