//! The choice among backends.

use std::num::NonZeroUsize;
use std::sync::Arc;

use warpforge_fusion::cluster::Machine;

use crate::error::{ErrorKind, Offer, Result};
use crate::{Backend, CompileOptions, Device, Executable, Precision, Program, Tier};

/// What a program is compiled for: [`CompileOptions`] with nothing left open.
#[derive(Debug, Clone)]
pub struct Target {
    /// The device.
    pub device: Device,
    /// The tier.
    pub tier: Tier,
    /// The element type that contractions multiply in.
    pub precision: Precision,
    /// The most host threads that a run may use.
    pub threads: Option<NonZeroUsize>,
    /// Refuse a program with operations that only the reference interpreter runs.
    pub no_fallback: bool,
    /// What the machine says about fusion decisions that are close.
    pub machine: Option<Arc<dyn Machine>>,
    /// Have the backward pass of a training step compute the forward pass again, segment by segment, instead of keeping it.
    pub gradient_checkpointing: bool,
}

impl Target {
    /// A device in a tier and a precision, with all threads; operations without a kernel fall back to the reference.
    #[must_use]
    pub fn new(device: Device, tier: Tier, precision: Precision) -> Self {
        let (threads, no_fallback, machine, gradient_checkpointing) = (None, false, None, false);
        Self { device, tier, precision, threads, no_fallback, machine, gradient_checkpointing }
    }

    /// The reference interpreter.
    #[must_use]
    pub fn reference() -> Self {
        Self::new(Device::Cpu, Tier::Correctness, Precision::Model)
    }
}

/// A backend and what it is to compile for.
#[derive(Clone)]
pub struct Choice {
    /// The backend.
    pub backend: Arc<dyn Backend>,
    /// The target.
    pub target: Target,
}

impl Choice {
    /// Compiles a program, and refuses fallbacks where the target does.
    ///
    /// # Errors
    ///
    /// As [`Backend::compile`]; and where [`Target::no_fallback`], when the reference interpreter runs a part of the program.
    pub fn compile(&self, program: &Program) -> Result<Box<dyn Executable>> {
        let executable = self.backend.compile(program, &self.target)?;
        let fallbacks = executable.fallbacks();
        if self.target.no_fallback && !fallbacks.is_empty() {
            let operations = fallbacks.iter().map(ToString::to_string).collect();
            return Err(ErrorKind::Fallback { operations }.into());
        }
        Ok(executable)
    }
}

/// Every device and tier that the backends have on this machine, the fastest tier of a device first.
#[must_use]
pub fn offers(backends: &[Arc<dyn Backend>]) -> Vec<Offer> {
    let mut offers = Vec::new();
    for backend in backends {
        for device in backend.devices() {
            for tier in backend.capabilities(device).tiers {
                offers.push(Offer { backend: backend.name(), device, tier });
            }
        }
    }
    offers.sort_by_key(|offer| (offer.device, offer.tier));
    offers
}

/// The backend for what is asked, and the best tier that the device has where none is.
///
/// # Errors
///
/// When no backend has the device and tier on this machine, or the one that has cannot compute in the precision.
pub fn choose(backends: &[Arc<dyn Backend>], options: &CompileOptions) -> Result<Choice> {
    let all = offers(backends);
    let wanted =
        |offer: &&Offer| offer.device == options.device && options.tier.is_none_or(|tier| tier == offer.tier);
    let unavailable = || ErrorKind::Unavailable {
        device: options.device,
        tier: options.tier,
        offers: all.clone(),
        reasons: backends.iter().filter_map(|backend| backend.why_not(options.device)).collect(),
    };
    let offer = all.iter().find(wanted).ok_or_else(unavailable)?;
    let backend = backends.iter().find(|backend| backend.name() == offer.backend).ok_or_else(unavailable)?;
    choice(backend, options, offer.tier)
}

/// The backend that plans for what is asked, whether or not the device is on this machine.
///
/// # Errors
///
/// When no backend is for such a device at the tier, or the one that is cannot compute in the precision.
pub fn planner(backends: &[Arc<dyn Backend>], options: &CompileOptions) -> Result<Choice> {
    let tier = |backend: &Arc<dyn Backend>| {
        let tiers = backend.capabilities(options.device).tiers;
        options.tier.filter(|tier| tiers.contains(tier)).or(match options.tier {
            None => tiers.first().copied(),
            Some(_) => None,
        })
    };
    let mut serving = backends.iter().filter(|backend| backend.serves(options.device));
    match serving.find_map(|backend| Some((backend, tier(backend)?))) {
        Some((backend, tier)) => choice(backend, options, tier),
        None => choose(backends, options),
    }
}

fn choice(backend: &Arc<dyn Backend>, options: &CompileOptions, tier: Tier) -> Result<Choice> {
    let &CompileOptions { device, precision, threads, no_fallback, gradient_checkpointing, .. } = options;
    let known = backend.capabilities(device).precisions;
    if !known.iter().any(|known| known.covers(precision)) {
        return Err(ErrorKind::Precision { backend: backend.name(), precision, known }.into());
    }
    if gradient_checkpointing && tier == Tier::Correctness {
        // Each operation keeps a kernel of its own there, and none is computed twice.
        let what = "gradient checkpointing in the correctness tier".to_owned();
        return Err(ErrorKind::NotOffered { backend: backend.name(), what }.into());
    }
    let machine = options.machine.clone();
    let target = Target { device, tier, precision, threads, no_fallback, machine, gradient_checkpointing };
    Ok(Choice { backend: Arc::clone(backend), target })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capabilities, Reference};

    /// A backend that is chosen and never compiles.
    struct Fast;

    impl Backend for Fast {
        fn name(&self) -> &'static str {
            "fast"
        }

        fn serves(&self, device: Device) -> bool {
            self.devices().contains(&device)
        }

        fn devices(&self) -> Vec<Device> {
            vec![Device::Cpu, Device::Cuda(1)]
        }

        fn capabilities(&self, _: Device) -> Capabilities {
            let tiers = vec![Tier::Production, Tier::Observable];
            Capabilities {
                tiers,
                precisions: vec![Precision::Model, Precision::Bf16],
                observes_values: false,
            }
        }

        fn compile(&self, _: &Program, _: &Target) -> Result<Box<dyn Executable>> {
            Err(ErrorKind::NotOffered { backend: "fast", what: "compile".to_owned() }.into())
        }
    }

    fn chosen(device: &str, tier: Option<Tier>, precision: &str) -> Result<(&'static str, Tier)> {
        let both: Vec<Arc<dyn Backend>> = vec![Arc::new(Reference), Arc::new(Fast)];
        let device = device.parse().unwrap();
        let precision = precision.parse().unwrap();
        choose(&both, &CompileOptions { device, tier, precision, ..CompileOptions::default() })
            .map(|choice| (choice.backend.name(), choice.target.tier))
    }

    #[test]
    fn the_best_tier_of_a_device_is_the_default() {
        assert_eq!(chosen("cpu", None, "model").unwrap(), ("fast", Tier::Production));
        assert_eq!(chosen("cuda:1", None, "model").unwrap(), ("fast", Tier::Production));
        let correctness = Some(Tier::Correctness);
        assert_eq!(chosen("cpu", correctness, "model").unwrap(), ("reference", Tier::Correctness));
        assert_eq!(chosen("cpu", None, "bf16").unwrap(), ("fast", Tier::Production));
    }

    #[test]
    fn what_there_is_not_is_an_error_that_says_what_there_is() {
        let error = chosen("cuda:1", Some(Tier::Correctness), "model").unwrap_err().to_string();
        assert!(error.starts_with("no backend runs on cuda:1 at tier correctness"), "{error}");
        assert!(error.contains("cpu at tier correctness (reference)"), "{error}");
        assert!(error.contains("cuda:1 at tier production (fast)"), "{error}");
        assert!(chosen("hip", None, "model").is_err());
        let error = chosen("cpu", Some(Tier::Correctness), "bf16").unwrap_err().to_string();
        assert!(error.contains("`bf16`") && error.contains("it has model"), "{error}");
    }
}
