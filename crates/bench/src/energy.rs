//! Energy of the processor packages, where the machine reports it.

use warpforge_inventory::live::Sampler;

/// Reads the energy counters.
pub(crate) struct EnergyMeter(Sampler);

impl EnergyMeter {
    pub(crate) fn new() -> Self {
        Self(Sampler::new())
    }

    /// The joules that all processor packages have used since the meter began; none where the machine does not report it.
    pub(crate) fn joules(&mut self) -> Option<f64> {
        let power = self.0.sample().power;
        let packages: Vec<_> = power
            .iter()
            .filter(|usage| usage.domain.starts_with("package") && !usage.domain.contains('/'))
            .collect();
        let known = packages.iter().map(|usage| usage.energy_joules).collect::<Option<Vec<f64>>>()?;
        (!known.is_empty()).then(|| known.iter().sum())
    }
}
