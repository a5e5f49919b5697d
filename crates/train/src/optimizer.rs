//! Optimizers: the new value of a parameter and of its moments.

use warpforge_ir::build::BuildError;
use warpforge_ir::{OpKind, TensorType, Type, ValueId};

use crate::eight_bit::{self, Map};
use crate::emit::Emit;

/// An optimizer and its settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Optimizer {
    /// Stochastic gradient descent.
    Sgd {
        /// How much of the last direction is kept.
        momentum: f64,
        /// How much less of the gradient is added to the direction.
        dampening: f64,
        /// Whether the gradient is taken ahead of the step.
        nesterov: bool,
        /// The weight decay, added to the gradient.
        weight_decay: f64,
    },
    /// Adam.
    Adam {
        /// How much of both moments is kept.
        betas: [f64; 2],
        /// Added to the denominator.
        eps: f64,
        /// The weight decay.
        weight_decay: f64,
        /// Whether weights decay by themselves, not through the gradient: AdamW.
        decoupled: bool,
    },
    /// AdamW whose moments are codes of 8 bits, by the rule of `bitsandbytes` on CPUs.
    AdamW8bit {
        /// How much of both moments is kept.
        betas: [f64; 2],
        /// Added to the denominator.
        eps: f64,
        /// The weight decay.
        weight_decay: f64,
    },
}

/// The numbers of an update that are the same for all parameters, in f64.
pub(crate) struct Scalars {
    rate: ValueId,
    /// Whether this is the first update.
    first: ValueId,
    /// Adam: the rate over the first bias correction, and the root of the second.
    corrected: Option<[ValueId; 2]>,
    /// Moments of 8 bits: the maps of both.
    maps: Option<[Map; 2]>,
}

impl Optimizer {
    /// Its name in recipes.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Optimizer::Sgd { .. } => "sgd",
            Optimizer::Adam { decoupled: false, .. } => "adam",
            Optimizer::Adam { decoupled: true, .. } => "adamw",
            Optimizer::AdamW8bit { .. } => "adamw-8bit",
        }
    }

    /// What it keeps for a parameter of a type, as PyTorch and `bitsandbytes` call it.
    pub(crate) fn state(&self, ty: &TensorType) -> Vec<(&'static str, Type)> {
        let like = || Type::Tensor(ty.clone());
        match self {
            Optimizer::Sgd { momentum, .. } if *momentum == 0.0 => Vec::new(),
            Optimizer::Sgd { .. } => vec![("momentum_buffer", like())],
            Optimizer::Adam { .. } => vec![("exp_avg", like()), ("exp_avg_sq", like())],
            Optimizer::AdamW8bit { .. } => eight_bit::state(ty),
        }
    }

    /// The numbers of an update, from the learning rate and the number of updates before it.
    pub(crate) fn scalars(
        &self,
        emit: &mut Emit<'_, '_>,
        rate: ValueId,
        updates: ValueId,
    ) -> Result<Scalars, BuildError> {
        let zero = emit.f64(0.0)?;
        let first = emit.equal(updates, zero)?;
        let corrected = match self {
            Optimizer::Sgd { .. } => None,
            Optimizer::Adam { betas, .. } | Optimizer::AdamW8bit { betas, .. } => {
                let one = emit.f64(1.0)?;
                let number = emit.add(updates, one)?;
                let mut correction = |beta: f64| {
                    let beta = emit.f64(beta)?;
                    let power = emit.b.binary(OpKind::Power, beta, number)?;
                    emit.one_minus(power)
                };
                let (one, two) = (correction(betas[0])?, correction(betas[1])?);
                Some([emit.div(rate, one)?, emit.b.unary(OpKind::Sqrt, two)?])
            }
        };
        let maps = match self {
            Optimizer::AdamW8bit { .. } => Some(eight_bit::maps(emit.b)?),
            _ => None,
        };
        Ok(Scalars { rate, first, corrected, maps })
    }

    /// The new parameter, and its new state in the order of [`Optimizer::state`].
    pub(crate) fn update(
        &self,
        emit: &mut Emit<'_, '_>,
        scalars: &Scalars,
        parameter: ValueId,
        gradient: ValueId,
        moments: &[ValueId],
        decays: bool,
    ) -> Result<Vec<ValueId>, BuildError> {
        match (self, scalars.corrected, moments) {
            (
                &Optimizer::Adam { betas, eps, weight_decay, decoupled },
                Some([rate, root]),
                &[mean, square],
            ) => {
                let decay = if decays { weight_decay } else { 0.0 };
                let (mut parameter, mut gradient) = (parameter, gradient);
                if decoupled {
                    parameter = decayed(emit, scalars, parameter, decay)?;
                } else if decay != 0.0 {
                    gradient = emit.add_scaled(gradient, parameter, decay)?;
                }
                let mean = lerp(emit, mean, gradient, 1.0 - betas[0])?;
                let square = second_moment(emit, square, gradient, betas[1])?;
                let parameter = adam_step(emit, [rate, root], parameter, mean, square, eps)?;
                Ok(vec![parameter, mean, square])
            }
            (&Optimizer::AdamW8bit { betas, eps, weight_decay }, Some(corrected), moments) => {
                let decay = if decays { weight_decay } else { 0.0 };
                let parameter = decayed(emit, scalars, parameter, decay)?;
                eight_bits(emit, scalars, corrected, parameter, gradient, moments, betas, eps)
            }
            (&Optimizer::Sgd { momentum, dampening, nesterov, weight_decay }, _, moments) => {
                let mut gradient = gradient;
                if decays && weight_decay != 0.0 {
                    gradient = emit.add_scaled(gradient, parameter, weight_decay)?;
                }
                let (mut direction, mut kept) = (gradient, Vec::new());
                if let &[buffer] = moments {
                    let old = emit.scaled_by(buffer, momentum)?;
                    let mut new = match dampening == 0.0 {
                        true => emit.add(old, gradient)?,
                        false => emit.add_scaled(old, gradient, 1.0 - dampening)?,
                    };
                    if dampening != 0.0 {
                        // The first direction is the gradient itself.
                        new = emit.b.select(scalars.first, gradient, new)?;
                    }
                    direction = if nesterov { emit.add_scaled(gradient, new, momentum)? } else { new };
                    kept.push(new);
                }
                let change = emit.scaled(direction, scalars.rate)?;
                let parameter = emit.sub(parameter, change)?;
                Ok([vec![parameter], kept].concat())
            }
            _ => Err(BuildError::NotATensor("the moments of the optimizer".to_owned())),
        }
    }
}

/// `from + weight * (to - from)`.
fn lerp(emit: &mut Emit<'_, '_>, from: ValueId, to: ValueId, weight: f64) -> Result<ValueId, BuildError> {
    let between = emit.sub(to, from)?;
    emit.add_scaled(from, between, weight)
}

/// The running mean of the squared gradient.
fn second_moment(
    emit: &mut Emit<'_, '_>,
    square: ValueId,
    gradient: ValueId,
    beta: f64,
) -> Result<ValueId, BuildError> {
    let kept = emit.scaled_by(square, beta)?;
    let scaled = emit.scaled_by(gradient, 1.0 - beta)?;
    let added = emit.mul(scaled, gradient)?;
    emit.add(kept, added)
}

/// The parameter after Adam's step: `parameter - rate · mean / (√square / root + eps)`.
fn adam_step(
    emit: &mut Emit<'_, '_>,
    [rate, root]: [ValueId; 2],
    parameter: ValueId,
    mean: ValueId,
    square: ValueId,
    eps: f64,
) -> Result<ValueId, BuildError> {
    let spread = emit.b.unary(OpKind::Sqrt, square)?;
    let root = emit.spread(root, spread)?;
    let spread = emit.div(spread, root)?;
    let eps = emit.b.splat_like(spread, eps)?;
    let denominator = emit.add(spread, eps)?;
    let direction = emit.scaled(mean, rate)?;
    let change = emit.div(direction, denominator)?;
    emit.sub(parameter, change)
}

/// A parameter that decays by itself.
fn decayed(
    emit: &mut Emit<'_, '_>,
    scalars: &Scalars,
    parameter: ValueId,
    decay: f64,
) -> Result<ValueId, BuildError> {
    if decay == 0.0 {
        return Ok(parameter);
    }
    let decay = emit.f64(decay)?;
    let lost = emit.mul(scalars.rate, decay)?;
    let kept = emit.one_minus(lost)?;
    emit.scaled(parameter, kept)
}

/// AdamW with moments of 8 bits, or of f32 for a small parameter.
#[allow(clippy::too_many_arguments)]
fn eight_bits(
    emit: &mut Emit<'_, '_>,
    scalars: &Scalars,
    [rate, root]: [ValueId; 2],
    parameter: ValueId,
    gradient: ValueId,
    state: &[ValueId],
    betas: [f64; 2],
    eps: f64,
) -> Result<Vec<ValueId>, BuildError> {
    let missing = || BuildError::NotATensor("the state of the optimizer".to_owned());
    let maps = scalars.maps.ok_or_else(missing)?;
    let (mean, square) = match *state {
        [mean, square] => (mean, square),
        [codes1, scales1, codes2, scales2] => (
            eight_bit::dequantize(emit, maps[0], codes1, scales1)?,
            eight_bit::dequantize(emit, maps[1], codes2, scales2)?,
        ),
        _ => return Err(missing()),
    };
    let mean = emit.scaled_by(mean, betas[0])?;
    let mean = emit.add_scaled(mean, gradient, 1.0 - betas[0])?;
    let square = second_moment(emit, square, gradient, betas[1])?;
    if state.len() == 2 {
        let spread = emit.b.unary(OpKind::Sqrt, square)?;
        // The small ones scale the step and eps instead of the root.
        let eps = emit.f64(eps)?;
        let eps = emit.mul(eps, root)?;
        let eps = emit.spread(eps, spread)?;
        let denominator = emit.add(spread, eps)?;
        let direction = emit.div(mean, denominator)?;
        let rate = emit.mul(rate, root)?;
        let change = emit.scaled(direction, rate)?;
        return Ok(vec![emit.sub(parameter, change)?, mean, square]);
    }
    let parameter = adam_step(emit, [rate, root], parameter, mean, square, eps)?;
    let [codes1, scales1] = eight_bit::quantize(emit, maps[0], mean)?;
    let [codes2, scales2] = eight_bit::quantize(emit, maps[1], square)?;
    Ok(vec![parameter, codes1, scales1, codes2, scales2])
}
