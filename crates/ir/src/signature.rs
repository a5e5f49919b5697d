//! What the arguments and results of an entry function are to the model it came from.
//!
//! The module itself carries the answer, as attributes of arguments and results, so that it survives a round trip
//! through a file: `warpforge.name`, `warpforge.role` and, for what belongs to a parameter, `warpforge.of`.

use crate::attr::{Attribute, Dict};
use crate::module::Func;
use crate::types::Type;

const NAME: &str = "warpforge.name";
const ROLE: &str = "warpforge.role";
const OF: &str = "warpforge.of";

/// Declares an enumeration of roles with the words that stand for them.
macro_rules! roles {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $role:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $role,)*
        }

        impl $name {
            /// The word that stands for the role in a module.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$role => $word,)*
                }
            }

            /// The role that a word stands for.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some($name::$role),)*
                    _ => None,
                }
            }
        }
    };
}

roles! {
    /// What an argument is.
    ArgumentRole {
        /// Given by the user at each run.
        Input = "input",
        /// A trained weight.
        Parameter = "parameter",
        /// State that is saved but not trained.
        Buffer = "buffer",
        /// A tensor that the model's code made once.
        Constant = "constant",
    }
}

roles! {
    /// What a result is.
    ResultRole {
        /// What the model gives.
        Output = "output",
        /// The number that training makes smaller.
        Loss = "loss",
        /// The derivative of the loss by a parameter or an input.
        Gradient = "gradient",
        /// The new value of a buffer or an input that the model changes.
        Buffer = "buffer",
    }
}

impl ArgumentRole {
    /// Whether the argument comes with the model rather than from the user.
    #[must_use]
    pub fn is_weight(self) -> bool {
        self != ArgumentRole::Input
    }
}

/// One argument of the entry function.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its name: unique among the arguments.
    pub name: String,
    /// What it is.
    pub role: ArgumentRole,
    /// Its type.
    pub ty: Type,
}

/// One result of the entry function.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Its name: unique among the results.
    pub name: String,
    /// What it is.
    pub role: ResultRole,
    /// The parameter, buffer or input that it belongs to.
    pub of: Option<String>,
    /// Its type.
    pub ty: Type,
}

/// The arguments and results of an entry function by name and role.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Signature {
    /// The arguments in order.
    pub arguments: Vec<Argument>,
    /// The results in order.
    pub results: Vec<Output>,
}

impl Signature {
    /// Reads the signature of a function. What has no name of its own is `arg0`, `arg1`, … or `out0`, `out1`, … by its
    /// position; what has no role is an input or an output.
    #[must_use]
    pub fn of(func: Func<'_>) -> Self {
        let Some(types) = func.signature() else { return Self::default() };
        let arguments = types.inputs.iter().enumerate().map(|(index, ty)| {
            let attrs = func.argument_attrs(index);
            Argument {
                name: text(attrs, NAME).map_or_else(|| format!("arg{index}"), str::to_owned),
                role: text(attrs, ROLE).and_then(ArgumentRole::from_word).unwrap_or(ArgumentRole::Input),
                ty: ty.clone(),
            }
        });
        let results = types.results.iter().enumerate().map(|(index, ty)| {
            let attrs = func.result_attrs(index);
            Output {
                name: text(attrs, NAME).map_or_else(|| format!("out{index}"), str::to_owned),
                role: text(attrs, ROLE).and_then(ResultRole::from_word).unwrap_or(ResultRole::Output),
                of: text(attrs, OF).map(str::to_owned),
                ty: ty.clone(),
            }
        });
        Self { arguments: arguments.collect(), results: results.collect() }
    }

    /// The arguments that the user gives, with their positions among all arguments.
    pub fn inputs(&self) -> impl Iterator<Item = (usize, &Argument)> {
        self.arguments.iter().enumerate().filter(|(_, argument)| !argument.role.is_weight())
    }

    /// The arguments that come with the model, with their positions among all arguments.
    pub fn weights(&self) -> impl Iterator<Item = (usize, &Argument)> {
        self.arguments.iter().enumerate().filter(|(_, argument)| argument.role.is_weight())
    }

    /// The `arg_attrs` of a function with these arguments.
    #[must_use]
    pub fn argument_attrs(&self) -> Attribute {
        let dicts = self
            .arguments
            .iter()
            .map(|argument| Attribute::Dict(entries(&argument.name, argument.role.word(), None)));
        Attribute::Array(dicts.collect())
    }

    /// The `res_attrs` of a function with these results.
    #[must_use]
    pub fn result_attrs(&self) -> Attribute {
        let dicts = self
            .results
            .iter()
            .map(|result| Attribute::Dict(entries(&result.name, result.role.word(), result.of.as_deref())));
        Attribute::Array(dicts.collect())
    }
}

fn text<'a>(attrs: Option<&'a Dict>, name: &str) -> Option<&'a str> {
    match attrs?.get(name)? {
        Attribute::Str(text) => Some(text),
        _ => None,
    }
}

fn entries(name: &str, role: &str, of: Option<&str>) -> Dict {
    let named = [(NAME, Some(name)), (ROLE, Some(role)), (OF, of)];
    named.into_iter().filter_map(|(key, value)| Some((key, Attribute::Str(value?.into())))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ElementType, FunctionType, Module, OpKind, TensorType};
    use warpforge_diag::Span;

    fn vector() -> Type {
        TensorType::fixed(&[4], ElementType::I32).into()
    }

    fn module_with(attrs: &[(&'static str, Attribute)]) -> Module {
        let mut module = Module::new();
        let types = FunctionType { inputs: vec![vector(); 2], results: vec![vector()] };
        let mut dict: Dict = attrs.iter().cloned().collect();
        dict.set("sym_name", Attribute::Str("main".into()));
        dict.set("function_type", Attribute::Type(Type::Function(types.into())));
        let func = module.create_op(OpKind::Func, vec![], vec![], dict, Span::default());
        let body = module.body();
        module.append_op(body, func);
        module
    }

    #[test]
    fn names_and_roles_are_read_back_as_they_were_written() {
        let signature = Signature {
            arguments: vec![
                Argument { name: "fc.weight".into(), role: ArgumentRole::Parameter, ty: vector() },
                Argument { name: "x".into(), role: ArgumentRole::Input, ty: vector() },
            ],
            results: vec![Output {
                name: "grad.fc.weight".into(),
                role: ResultRole::Gradient,
                of: Some("fc.weight".into()),
                ty: vector(),
            }],
        };
        let module = module_with(&[
            ("arg_attrs", signature.argument_attrs()),
            ("res_attrs", signature.result_attrs()),
        ]);
        let read = Signature::of(module.function("main").unwrap());
        assert_eq!(read, signature);
        assert_eq!(read.inputs().map(|(at, _)| at).collect::<Vec<_>>(), [1]);
        assert_eq!(read.weights().map(|(at, _)| at).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_plain_function_has_names_by_position() {
        let module = module_with(&[]);
        let read = Signature::of(module.function("main").unwrap());
        let names: Vec<&str> = read.arguments.iter().map(|argument| argument.name.as_str()).collect();
        assert_eq!(names, ["arg0", "arg1"]);
        assert_eq!((read.results[0].name.as_str(), read.results[0].role), ("out0", ResultRole::Output));
        assert_eq!(read.weights().count(), 0);
    }
}
