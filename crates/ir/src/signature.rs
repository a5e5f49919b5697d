//! What the arguments and results of an entry function are to the model it came from.
//!
//! The module itself carries the answer, as attributes of arguments and results, so that it survives a round trip
//! through a file: `warpforge.name`, `warpforge.role` and, for what belongs to a parameter, `warpforge.of`. Results
//! without a name of ours have the one that JAX writes, `jax.result_info`. An argument whose new value is a result is
//! state: it names that result in `tf.aliasing_output`, as JAX writes it for donated buffers. `jax.buffer_donor` gives
//! the buffer away without saying to which result.

use std::collections::HashSet;

use crate::attr::{Attribute, Dict};
use crate::module::Func;
use crate::types::Type;

const NAME: &str = "warpforge.name";
const ROLE: &str = "warpforge.role";
const OF: &str = "warpforge.of";
/// Where JAX writes how a result is found in what the function returned: `result['loss']`, `[0]`.
const RESULT_INFO: &str = "jax.result_info";

/// The attribute of an argument that names the result which is its new value.
pub const ALIASING_OUTPUT: &str = "tf.aliasing_output";

/// The attribute of an argument whose buffer is given away.
pub const BUFFER_DONOR: &str = "jax.buffer_donor";

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
        /// State that starts at zero, such as an optimizer's moment.
        State = "state",
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
        !matches!(self, ArgumentRole::Input | ArgumentRole::State)
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
    /// The position of the result that is its new value: the argument is state.
    pub alias: Option<usize>,
    /// Whether its buffer is given away, to a result that is not named.
    pub donated: bool,
}

impl Argument {
    /// An argument that is no state.
    #[must_use]
    pub fn new(name: impl Into<String>, role: ArgumentRole, ty: Type) -> Self {
        Self { name: name.into(), role, ty, alias: None, donated: false }
    }
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
                alias: aliased_result(attrs),
                donated: attrs.and_then(|attrs| attrs.get(BUFFER_DONOR)?.as_bool()).unwrap_or(false),
            }
        });
        let mut taken = HashSet::new();
        let results = types.results.iter().enumerate().map(|(index, ty)| {
            let attrs = func.result_attrs(index);
            let own = || text(attrs, NAME).map(str::to_owned);
            let name = own().or_else(|| text(attrs, RESULT_INFO).and_then(jax_name));
            let name = name.filter(|name| taken.insert(name.clone()));
            Output {
                name: name.unwrap_or_else(|| format!("out{index}")),
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
        let dict = |argument: &Argument| {
            let mut dict = entries(&argument.name, argument.role.word(), None);
            if let Some(result) = argument.alias.and_then(|result| i32::try_from(result).ok()) {
                dict.set(ALIASING_OUTPUT, Attribute::i32(result));
            }
            if argument.donated {
                dict.set(BUFFER_DONOR, Attribute::Bool(true));
            }
            Attribute::Dict(dict)
        };
        Attribute::Array(self.arguments.iter().map(dict).collect())
    }

    /// The arguments that are state, with their positions, and the positions of their new values.
    pub fn state(&self) -> impl Iterator<Item = (usize, &Argument, usize)> {
        let arguments = self.arguments.iter().enumerate();
        arguments.filter_map(|(at, argument)| Some((at, argument, argument.alias?)))
    }

    /// Declares that a result is the new value of an argument.
    ///
    /// # Errors
    ///
    /// When there are no such argument and result, their types differ, or one of them is aliased already.
    pub fn alias(&mut self, argument: &str, result: &str) -> Result<(), AliasError> {
        let no = |what, name: &str| AliasError::Unknown { what, name: name.to_owned() };
        let from = self.arguments.iter().position(|known| known.name == argument);
        let from = from.ok_or_else(|| no("argument", argument))?;
        let to = self.results.iter().position(|known| known.name == result);
        let to = to.ok_or_else(|| no("result", result))?;
        let types = [&self.arguments[from].ty, &self.results[to].ty];
        if types[0] != types[1] {
            let types = types.map(ToString::to_string);
            return Err(AliasError::Types {
                argument: argument.to_owned(),
                result: result.to_owned(),
                types: Box::new(types),
            });
        }
        let taken = self.state().find(|(at, _, other)| (*at == from) != (*other == to));
        if let Some((_, other, _)) = taken {
            return Err(AliasError::Twice { argument: other.name.clone() });
        }
        self.arguments[from].alias = Some(to);
        self.arguments[from].donated = false;
        Ok(())
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

/// Why a result cannot be the new value of an argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AliasError {
    /// There is no such argument or result.
    #[error("there is no {what} `{name}`")]
    Unknown {
        /// Argument or result.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// They are of different types.
    #[error("argument `{argument}` is {}, result `{result}` is {}", .types[0], .types[1])]
    Types {
        /// The argument.
        argument: String,
        /// The result.
        result: String,
        /// The types of both.
        types: Box<[String; 2]>,
    },
    /// The argument or the result is aliased with another.
    #[error("argument `{argument}` is aliased already")]
    Twice {
        /// The argument that is.
        argument: String,
    },
}

/// The result that an argument's attributes name.
pub(crate) fn aliased_result(attrs: Option<&Dict>) -> Option<usize> {
    attrs?.get(ALIASING_OUTPUT)?.as_i64().and_then(|result| usize::try_from(result).ok())
}

/// The name that JAX gives a result: `result['past'][0].key` is `past.0.key`. Positions alone are no name.
fn jax_name(info: &str) -> Option<String> {
    let mut rest = info.strip_prefix("result").unwrap_or(info);
    let (mut path, mut named) = (Vec::new(), false);
    while !rest.is_empty() {
        let part;
        if let Some(inside) = rest.strip_prefix('[') {
            (part, rest) = inside.split_once(']')?;
        } else {
            let field = rest.strip_prefix('.')?;
            let end = field.find(['.', '[']).unwrap_or(field.len());
            (part, rest) = field.split_at(end);
            named = true;
        }
        let key = part.trim_matches(['\'', '"']);
        named |= key.len() < part.len();
        if key.is_empty() {
            return None;
        }
        path.push(key);
    }
    named.then(|| path.join("."))
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
                Argument { alias: Some(0), ..Argument::new("fc.weight", ArgumentRole::Parameter, vector()) },
                Argument { donated: true, ..Argument::new("x", ArgumentRole::Input, vector()) },
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
    fn an_alias_is_between_equal_types_and_alone() {
        let result = |name: &str, ty| Output { name: name.into(), role: ResultRole::Output, of: None, ty };
        let mut signature = Signature {
            arguments: ["a", "b"].map(|name| Argument::new(name, ArgumentRole::Input, vector())).into(),
            results: vec![
                result("new", vector()),
                result("other", TensorType::fixed(&[5], ElementType::I32).into()),
            ],
        };
        assert_eq!(signature.alias("c", "new").unwrap_err().to_string(), "there is no argument `c`");
        assert_eq!(signature.alias("a", "old").unwrap_err().to_string(), "there is no result `old`");
        assert_eq!(
            signature.alias("a", "other").unwrap_err().to_string(),
            "argument `a` is tensor<4xi32>, result `other` is tensor<5xi32>"
        );
        signature.alias("a", "new").unwrap();
        signature.alias("a", "new").unwrap();
        let twice = signature.alias("b", "new").unwrap_err();
        assert_eq!(twice.to_string(), "argument `a` is aliased already");
        assert_eq!(signature.state().map(|(at, _, to)| (at, to)).collect::<Vec<_>>(), [(0, 0)]);
    }

    #[test]
    fn results_have_the_names_that_jax_wrote() {
        let names = [
            ("result['loss']", Some("loss")),
            ("['past'][0].key", Some("past.0.key")),
            (".logits", Some("logits")),
            ("result[0]", None),
            ("", None),
            ("result['", None),
        ];
        for (info, name) in names {
            assert_eq!(jax_name(info).as_deref(), name, "{info}");
        }
        let info = Dict::from_iter([(RESULT_INFO, Attribute::Str("['loss']".into()))]);
        let module = module_with(&[("res_attrs", Attribute::Array(vec![Attribute::Dict(info)].into()))]);
        assert_eq!(Signature::of(module.function("main").unwrap()).results[0].name, "loss");
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
