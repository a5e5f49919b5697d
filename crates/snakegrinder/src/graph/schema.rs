//! The JSON of `torch.export`, as far as it is used.
//!
//! Unions are objects with one key that says which alternative it is. Fields that are not listed are ignored: they are
//! for rebuilding Python objects. An alternative that is not listed is an error that names it.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, Unexpected};

/// The whole file.
#[derive(Debug, Deserialize)]
pub(crate) struct ExportedProgram {
    pub(crate) graph_module: GraphModule,
    #[serde(default)]
    pub(crate) range_constraints: HashMap<String, RangeConstraint>,
    #[serde(default = "unknown")]
    pub(crate) torch_version: String,
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The version of the schema.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct SchemaVersion {
    pub(crate) major: i64,
    pub(crate) minor: i64,
}

/// The values that a symbol can have.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct RangeConstraint {
    pub(crate) min_val: Option<i64>,
    pub(crate) max_val: Option<i64>,
}

/// A graph and what its inputs and outputs are to the model.
#[derive(Debug, Deserialize)]
pub(crate) struct GraphModule {
    pub(crate) graph: Graph,
    pub(crate) signature: GraphSignature,
    #[serde(default)]
    module_call_graph: Vec<ModuleCall>,
}

impl GraphModule {
    /// The structure that the model returns, as text.
    pub(crate) fn out_spec(&self) -> Option<&str> {
        let whole = self.module_call_graph.iter().find(|call| call.fqn.is_empty())?;
        whole.signature.as_ref()?.out_spec.as_deref()
    }
}

/// A module of the Python model and how it is called; the model itself has an empty name.
#[derive(Debug, Deserialize)]
struct ModuleCall {
    #[serde(default)]
    fqn: String,
    signature: Option<ModuleCallSignature>,
}

/// What a module takes and gives.
#[derive(Debug, Deserialize)]
struct ModuleCallSignature {
    out_spec: Option<String>,
}

/// A graph.
#[derive(Debug, Deserialize)]
pub(crate) struct Graph {
    pub(crate) inputs: Vec<Argument>,
    pub(crate) outputs: Vec<Argument>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) tensor_values: HashMap<String, TensorMeta>,
    #[serde(default)]
    pub(crate) sym_int_values: HashMap<String, SymInt>,
}

/// One operation.
#[derive(Debug, Deserialize)]
pub(crate) struct Node {
    pub(crate) target: String,
    pub(crate) inputs: Vec<NamedArgument>,
    pub(crate) outputs: Vec<Argument>,
    #[serde(default)]
    pub(crate) metadata: HashMap<String, String>,
    pub(crate) name: Option<String>,
}

/// An argument by the name of the operator's schema; empty for higher-order operators.
#[derive(Debug, Deserialize)]
pub(crate) struct NamedArgument {
    pub(crate) name: String,
    pub(crate) arg: Argument,
}

/// A value that goes into or comes out of a node or a graph.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the names are the schema's")]
pub(crate) enum Argument {
    AsNone(IgnoredAny),
    AsTensor(Name),
    AsTensors(Vec<Name>),
    AsInt(i64),
    AsInts(Vec<i64>),
    AsFloat(Float),
    AsFloats(Vec<Float>),
    AsString(String),
    AsStrings(IgnoredAny),
    AsSymInt(SymIntArgument),
    AsSymInts(Vec<SymIntArgument>),
    AsScalarType(i64),
    AsMemoryFormat(i64),
    AsLayout(Layout),
    AsDevice(Device),
    AsBool(bool),
    AsBools(Vec<bool>),
    AsSymBool(SymBoolArgument),
    AsSymBools(Vec<SymBoolArgument>),
    AsGraph(GraphArgument),
    AsOptionalTensors(Vec<OptionalTensor>),
    AsOptionalTensor(OptionalTensor),
    AsCustomObj(IgnoredAny),
    AsOperator(IgnoredAny),
    AsSymFloat(SymFloatArgument),
    AsSymFloats(Vec<SymFloatArgument>),
    AsComplex(ComplexValue),
    AsNestedTensors(IgnoredAny),
    AsIntLists(IgnoredAny),
    AsFloatLists(IgnoredAny),
    AsStringToArgument(IgnoredAny),
}

/// Anything that is only a name here.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Name {
    pub(crate) name: String,
}

/// A device. Lowered graphs are of no device, so only its kind matters: `meta` tensors have no values.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Device {
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

/// A complex number.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct ComplexValue {
    pub(crate) real: Float,
    pub(crate) imag: Float,
}

/// A graph that a higher-order operator calls.
#[derive(Debug, Deserialize)]
pub(crate) struct GraphArgument {
    pub(crate) graph: Box<Graph>,
}

/// A tensor or none.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OptionalTensor {
    AsTensor(Name),
    AsNone(IgnoredAny),
}

/// An integer: a number or a value of the graph.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SymIntArgument {
    AsName(String),
    AsInt(i64),
}

/// A float: a number or a value of the graph.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SymFloatArgument {
    AsName(String),
    AsFloat(Float),
}

/// A truth value: known or a value of the graph.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SymBoolArgument {
    AsName(String),
    AsBool(bool),
}

/// What a tensor is.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct TensorMeta {
    pub(crate) dtype: i64,
    pub(crate) sizes: Vec<SymInt>,
    pub(crate) strides: Vec<SymInt>,
    pub(crate) storage_offset: SymInt,
    pub(crate) layout: Layout,
}

/// A size: a number or an expression of symbols.
#[derive(Clone, Debug, Deserialize)]
pub(crate) enum SymInt {
    #[serde(rename = "as_int")]
    Int(i64),
    #[serde(rename = "as_expr")]
    Expr(SymExpr),
}

/// An expression of symbols, as sympy writes it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SymExpr {
    pub(crate) expr_str: String,
    hint: Option<Hint>,
}

impl SymExpr {
    /// The value that the expression had when the model was traced.
    pub(crate) fn hinted(&self) -> Option<i64> {
        match self.hint {
            Some(Hint::AsInt(value)) => Some(value),
            _ => None,
        }
    }
}

/// The value that an expression had when the model was traced.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the names are the schema's")]
pub(crate) enum Hint {
    AsInt(i64),
    AsBool(IgnoredAny),
    AsFloat(IgnoredAny),
}

/// How a tensor's elements are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Strided,
    Other(i64),
}

impl<'de> Deserialize<'de> for Layout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = i64::deserialize(deserializer)?;
        Ok(if code == 7 { Layout::Strided } else { Layout::Other(code) })
    }
}

/// A float; PyTorch writes infinities and NaN as strings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Float(pub(crate) f64);

impl<'de> Deserialize<'de> for Float {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(value) => Ok(Float(value)),
            Written::Text(text) => match text.as_str() {
                "Infinity" => Ok(Float(f64::INFINITY)),
                "-Infinity" => Ok(Float(f64::NEG_INFINITY)),
                "NaN" => Ok(Float(f64::NAN)),
                other => Err(D::Error::invalid_value(Unexpected::Str(other), &"a number")),
            },
        }
    }
}

/// What the inputs and outputs of the graph are.
#[derive(Debug, Deserialize)]
pub(crate) struct GraphSignature {
    pub(crate) input_specs: Vec<InputSpec>,
    pub(crate) output_specs: Vec<OutputSpec>,
}

/// What an input of the graph is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputSpec {
    UserInput { arg: Argument },
    Parameter { arg: Name, parameter_name: String },
    Buffer { arg: Name, buffer_name: String },
    TensorConstant { arg: Name, tensor_constant_name: String },
    ConstantInput(IgnoredAny),
    CustomObj { custom_obj_name: String },
    Token { arg: Name },
}

/// What an output of the graph is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputSpec {
    UserOutput { arg: Argument },
    LossOutput { arg: Name },
    BufferMutation { arg: Name, buffer_name: String },
    ParameterMutation { arg: Name, parameter_name: String },
    GradientToParameter { arg: Name, parameter_name: String },
    GradientToUserInput { arg: Name, user_input_name: String },
    UserInputMutation { arg: Name, user_input_name: String },
    Token { arg: Name },
}
