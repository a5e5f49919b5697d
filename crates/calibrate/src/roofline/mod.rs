//! The roofline of a profile: what the lines and points are, and their picture.

mod picture;

pub use picture::picture;

use crate::profile::{Bandwidth, Mode, Profile};

/// A roof: a rate that no kernel exceeds, unless it needs fewer operations than are counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Roof {
    /// The element type and the instructions: `f32 avx512`.
    pub label: String,
    /// 10^9 operations a second.
    pub gops: f64,
    /// Whether it can be held.
    pub sustained: bool,
}

/// A slope: the bandwidth of a level.
#[derive(Debug, Clone, PartialEq)]
pub struct Slope {
    /// The level.
    pub label: String,
    /// 10^9 bytes a second.
    pub gbps: f64,
}

/// A kernel, or the kernels of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// What it is.
    pub label: String,
    /// Operations for each byte.
    pub intensity: f64,
    /// 10^9 operations a second.
    pub gops: f64,
    /// The same work unfused, where it is a pattern.
    pub unfused: Option<(f64, f64)>,
}

/// What a picture shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Roofline {
    /// The machine and the device.
    pub title: String,
    /// Roofs, the highest first.
    pub roofs: Vec<Roof>,
    /// Slopes, the steepest first.
    pub slopes: Vec<Slope>,
    /// Kernels.
    pub points: Vec<Point>,
}

impl Roofline {
    /// The roofline of a device with the most threads that were measured.
    #[must_use]
    pub fn new(profile: &Profile, device: &str) -> Self {
        let threads =
            profile.peaks.iter().filter(|peak| peak.device == device).map(|peak| peak.threads).max();
        let threads = threads.unwrap_or(1);
        let own = profile.peaks.iter().filter(|peak| peak.device == device && peak.threads == threads);
        let mut roofs: Vec<Roof> = own
            .map(|peak| Roof {
                label: format!("{} {}", peak.dtype, peak.isa),
                gops: peak.gops,
                sustained: peak.mode == Mode::Sustained,
            })
            .collect();
        roofs.sort_by(|a, b| b.gops.total_cmp(&a.gops));
        let name = &profile.machine.hardware_name;
        let title = match (device, threads) {
            ("cpu", 1) => format!("{name}, {device}, 1 thread"),
            ("cpu", _) => format!("{name}, {device}, {threads} threads"),
            _ => format!("{name}, {device}"),
        };
        Self { title, roofs, slopes: slopes(profile, device, threads), points: points(profile, device) }
    }

    /// The highest roof of each element type, the highest first.
    #[must_use]
    pub fn highest(&self) -> Vec<&Roof> {
        let mut found: Vec<&Roof> = Vec::new();
        let dtype = |roof: &Roof| roof.label.split(' ').next().unwrap_or_default().to_owned();
        for roof in &self.roofs {
            if !found.iter().any(|known| dtype(known) == dtype(roof)) {
                found.push(roof);
            }
        }
        found
    }
}

fn slopes(profile: &Profile, device: &str, threads: usize) -> Vec<Slope> {
    let own = |found: &&Bandwidth| {
        found.device == device
            && found.threads == threads
            && ["triad", "copy"].contains(&found.access.as_str())
    };
    let mut slopes: Vec<Slope> = Vec::new();
    for found in profile.bandwidth.iter().filter(own) {
        match slopes.iter_mut().find(|slope| slope.label == found.level) {
            Some(slope) => slope.gbps = slope.gbps.max(found.gbps),
            None => slopes.push(Slope { label: found.level.clone(), gbps: found.gbps }),
        }
    }
    slopes.sort_by(|a, b| b.gbps.total_cmp(&a.gbps));
    slopes
}

fn points(profile: &Profile, device: &str) -> Vec<Point> {
    let sizes = |shape: &[usize]| shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    let operations =
        profile.operations.iter().filter(|operation| operation.device == device && operation.flops > 0);
    let alone = operations.map(|operation| Point {
        label: format!("{} {} {}", operation.op, sizes(&operation.shape), operation.dtype),
        intensity: operation.flops as f64 / operation.bytes.max(1) as f64,
        gops: operation.flops as f64 / operation.ms / 1e6,
        unfused: None,
    });
    let fusions = profile.fusion_profiles.iter().filter(|fusion| fusion.device == device && fusion.flops > 0);
    let joined = fusions.map(|fusion| Point {
        label: format!("{} {} {}", fusion.fusion_pattern, sizes(&fusion.input_shape), fusion.dtype),
        intensity: fusion.flops as f64 / fusion.fused_bytes.max(1) as f64,
        gops: fusion.fused_gflops,
        unfused: Some((fusion.flops as f64 / fusion.unfused_bytes.max(1) as f64, fusion.unfused_gflops)),
    });
    alone.chain(joined).filter(|point| point.gops.is_finite() && point.gops > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    #[test]
    fn roofs_slopes_and_points_are_those_of_the_profile() {
        let roofline = Roofline::new(&profile(), "cpu");
        assert_eq!(roofline.roofs.iter().map(|roof| roof.gops).collect::<Vec<_>>(), [100.0, 90.0]);
        assert_eq!(roofline.highest().len(), 1);
        let slopes: Vec<&str> = roofline.slopes.iter().map(|slope| slope.label.as_str()).collect();
        assert_eq!(slopes, ["L1", "L2", "DRAM"]);
        assert_eq!(roofline.points.len(), 3);
        assert_eq!(roofline.points.iter().filter(|point| point.unfused.is_some()).count(), 1);
        assert!(Roofline::new(&profile(), "cuda:0").points.is_empty());
    }

    #[test]
    fn the_picture_has_every_line_and_point_inside_it() {
        let text = picture(&Roofline::new(&profile(), "cpu"));
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
        assert_eq!(text.matches("<circle").count(), 4 + 3, "points and legend");
        assert!(text.contains("stroke-dasharray"));
        for word in ["f32 avx512", "DRAM 10 GB/s", "Linear_Bias_ReLU 512x1024x1024 f32"] {
            assert!(text.contains(word), "{word}");
        }
        let mut fast = Roofline::new(&profile(), "cuda:0");
        assert!(fast.title.ends_with(", cuda:0"), "{}", fast.title);
        fast.roofs = vec![Roof { label: "bf16 tensor cores".to_owned(), gops: 812_000.0, sustained: true }];
        let text = picture(&fast);
        assert!(text.contains("TFLOP/s") && text.contains("bf16 tensor cores 812<"), "{text}");
        let empty = Roofline { title: String::new(), roofs: vec![], slopes: vec![], points: vec![] };
        assert!(picture(&empty).ends_with("</svg>\n"));
    }
}
