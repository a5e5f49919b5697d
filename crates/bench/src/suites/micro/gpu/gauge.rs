//! Power and clock of a GPU while it is measured.

use std::time::{Duration, Instant};

use warpforge_inventory::live::{GpuSampler, GpuUsage};

/// How often one looks: the sensors do not change faster.
const PERIOD: Duration = Duration::from_millis(20);

/// Looks at one GPU.
pub struct Gauge {
    sampler: GpuSampler,
    guid: Option<String>,
    last: Option<Instant>,
    /// Watts.
    pub power: Vec<f64>,
    /// MHz.
    pub clock: Vec<f64>,
}

impl Gauge {
    /// A gauge for the GPU of this name among the vendor's tools.
    #[must_use]
    pub fn new(guid: Option<&str>) -> Self {
        let sampler = GpuSampler::here();
        Self { sampler, guid: guid.map(str::to_owned), last: None, power: Vec::new(), clock: Vec::new() }
    }

    /// Looks, if it is time.
    pub fn look(&mut self) {
        if self.last.is_some_and(|last| last.elapsed() < PERIOD) {
            return;
        }
        if let Some(usage) = chosen(self.sampler.sample(), self.guid.as_deref()) {
            self.power.extend(usage.power_watts);
            self.clock.extend(usage.graphics_mhz);
        }
        self.last = Some(Instant::now());
    }
}

/// The GPU of this name, or the only one.
fn chosen(mut all: Vec<GpuUsage>, guid: Option<&str>) -> Option<GpuUsage> {
    let named = guid.and_then(|guid| {
        all.iter()
            .position(|usage| usage.guid.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(guid)))
    });
    match named {
        Some(at) => Some(all.swap_remove(at)),
        None if all.len() == 1 => all.pop(),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gpu_is_found_by_its_name_and_never_guessed() {
        let gpu = |guid: &str, watts| GpuUsage {
            guid: Some(guid.to_owned()),
            power_watts: Some(watts),
            ..GpuUsage::default()
        };
        let two = || vec![gpu("GPU-1", 1.0), gpu("GPU-2", 2.0)];
        let power = |all, guid| chosen(all, guid).and_then(|usage| usage.power_watts);
        assert_eq!(power(two(), Some("gpu-2")), Some(2.0));
        assert_eq!(power(two(), None), None);
        assert_eq!(power(two(), Some("GPU-3")), None);
        assert_eq!(power(vec![gpu("GPU-1", 1.0)], None), Some(1.0));
    }
}
