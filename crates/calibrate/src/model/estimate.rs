//! Predicted times in the report of a plan.

use warpforge::{FusionReport, Plan};
use warpforge_fusion::cluster::op_by_op_clusters;
use warpforge_fusion::report::Estimate;

use super::CostModel;

impl CostModel {
    /// Adds predicted times to a report: those of each cluster, of all of them, and of a kernel for each operation.
    pub fn estimate(&self, plan: &Plan, report: &mut FusionReport) {
        let (after, kernels) = self.model(plan);
        for (entry, prediction) in report.clusters.iter_mut().zip(kernels) {
            entry.predicted = Some(Estimate { ms: prediction.ms, bound: prediction.bound.to_string() });
        }
        report.after.predicted_ms = Some(after);
        // Layouts that no strides describe have no kernel of their own: there is no time before fusion then.
        report.before.predicted_ms =
            op_by_op_clusters(&plan.graph).map(|clusters| self.in_order(&plan.graph, &clusters.clusters).0);
    }
}
