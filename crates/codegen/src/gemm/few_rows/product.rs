//! What the parts of a kernel are emitted from, and what they share.

use super::plan::Plan;
use crate::gemm::geometry::Geometry;
use crate::text::Text;

/// A product of few rows.
pub(super) struct Product<'a> {
    pub(super) plan: Plan,
    pub(super) geometry: &'a Geometry,
    /// The type of the activations.
    pub(super) ty: &'static str,
    /// The type of indices.
    pub(super) index: &'static str,
}

impl Product<'_> {
    /// Emits the parts of shared memory.
    pub(super) fn rooms(&self, text: &mut Text) {
        let [_, totals, scales, offsets, codes, parts] = self.plan.places();
        text.line("WF_DYNAMIC_SHARED(room);");
        if self.plan.shares_rows {
            text.line(format!("{0}* const rows = ({0}*)room;", self.ty));
        }
        if self.plan.knows_totals() {
            text.line(format!("float* const totals = (float*)(room + {totals});"));
        }
        if self.plan.groups > 0 {
            text.line(format!("wf_bf16* const scales = (wf_bf16*)(room + {scales});"));
            text.line(format!("wf_bf16* const offsets = (wf_bf16*)(room + {offsets});"));
        }
        let own = format!("WF_THREAD * {}", self.plan.words);
        text.line(format!("unsigned* const staged = (unsigned*)(room + {codes}) + {own};"));
        text.line(format!("float* const parts = (float*)(room + {parts});"));
    }

    /// Opens a loop over elements and a condition: `at` is the first of so many that a thread has.
    pub(super) fn vectors(&self, text: &mut Text, count: usize, width: usize) {
        let at_once = self.plan.threads() * width;
        text.unrolled_up_to("piece", count.div_ceil(at_once), 8);
        text.line(format!("const int at = WF_THREAD * {width} + piece * {at_once};"));
        text.open(if count.is_multiple_of(at_once) { String::new() } else { format!("if (at < {count})") });
    }
}
