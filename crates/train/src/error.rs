//! What can go wrong.

use warpforge_ir::build::BuildError;

/// Why a module cannot become a training step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// There is no such function, or it has no body.
    #[error("the module has no function @{0} with a body")]
    NoFunction(String),
    /// The function gives no gradient of a parameter.
    #[error(
        "@{0} has no result that is the gradient of a parameter: trace the model with its loss, `python -m warpforge.trace --train`"
    )]
    NoGradients(String),
    /// The function gives gradients, but what they are of is no argument that could be updated.
    #[error(
        "@{0} gives gradients of parameters that are constants of the module, which no step can update: write the weights to a \
         file of their own, with --weights W.safetensors of `warpt opt` or `warpt import`"
    )]
    ConstantParameters(String),
    /// A gradient is of another type than its parameter, or of one that is not trained.
    #[error("parameter `{parameter}` is {ty}, its gradient {gradient}")]
    Gradient {
        /// The parameter.
        parameter: String,
        /// Its type.
        ty: String,
        /// The type of the gradient.
        gradient: String,
    },
    /// A parameter's type has no arithmetic here.
    #[error("parameter `{parameter}` is {ty}: only real floating-point tensors of known sizes are trained")]
    Parameter {
        /// The parameter.
        parameter: String,
        /// Its type.
        ty: String,
    },
    /// The module has an argument or a result of a name that the step needs.
    #[error("`{0}` is an argument or a result of the module already")]
    Name(String),
    /// A parameter has a new value already.
    #[error("parameter `{0}` is updated by the module already")]
    Updated(String),
    /// The optimizer cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// What was built breaks a rule.
    #[error("the step is not valid: {0}")]
    Invalid(String),
}

/// Why a recipe cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// There is no such optimizer.
    #[error("there is no optimizer `{0}`; there are sgd, adam, adamw and adamw-8bit")]
    Optimizer(String),
    /// There is no such setting.
    #[error("`{optimizer}` has no setting `{name}`; it has {known}")]
    Setting {
        /// The optimizer.
        optimizer: &'static str,
        /// The setting.
        name: String,
        /// All that there are.
        known: String,
    },
    /// A value is none, or out of range.
    #[error("`{name}={value}`: expected {expected}")]
    Value {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A setting is needed and not given.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A setting is given twice.
    #[error("`{0}` is given twice")]
    Twice(String),
}
