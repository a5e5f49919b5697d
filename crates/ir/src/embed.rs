//! Arguments of a function turned into constants of its body.

use std::collections::BTreeMap;

use warpforge_diag::Span;

use crate::attr::{Attribute, DenseElements, Dict};
use crate::module::{Module, ValueId};
use crate::table::OpKind;
use crate::types::{FunctionType, Type};

/// Why arguments cannot become constants.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EmbedError {
    /// There is no such function, or it has no body.
    #[error("the module has no function @{0} with a body")]
    NoFunction(String),
    /// The constant is not of the argument's type.
    #[error("argument {position} is {argument}, its constant {constant}")]
    Type {
        /// Which argument.
        position: usize,
        /// Its type.
        argument: String,
        /// The constant's type.
        constant: String,
    },
}

/// Replaces arguments of a function, by their positions, by constants at the start of its body. The bytes are shared.
///
/// # Errors
///
/// When there is no such function, or a constant is not of its argument's type. The module is then as it was.
pub fn embed(
    module: &mut Module,
    function: &str,
    constants: BTreeMap<usize, DenseElements>,
) -> Result<(), EmbedError> {
    let missing = || EmbedError::NoFunction(function.to_owned());
    let func = module.function(function).ok_or_else(missing)?;
    let (op, body) = (func.op().id(), func.body().ok_or_else(missing)?);
    let attrs = func.op().attr("arg_attrs").cloned();
    let results = func.result_types().to_vec();
    let arguments: Vec<(ValueId, Type)> =
        func.arguments().iter().map(|&argument| (argument, module.value_type(argument).clone())).collect();
    for (&position, constant) in &constants {
        let argument = arguments.get(position).map(|(_, ty)| ty.clone());
        if argument != Some(constant.ty().clone().into()) {
            let argument = argument.map_or_else(|| "missing".to_owned(), |ty| ty.to_string());
            return Err(EmbedError::Type { position, argument, constant: constant.ty().to_string() });
        }
    }
    let kept: Vec<usize> = (0..arguments.len()).filter(|at| !constants.contains_key(at)).collect();
    let mut replaced = BTreeMap::new();
    for (at, (position, constant)) in constants.into_iter().enumerate() {
        let ty = constant.ty().clone().into();
        let value: Dict = [("value", Attribute::from(constant))].into_iter().collect();
        let made = module.create_op(OpKind::Constant, vec![], vec![ty], value, Span::NONE);
        module.insert_op(body, at, made);
        let result = module.op(made).results().next();
        replaced.extend(result.map(|result| (arguments[position].0, result)));
    }
    module.replace_all_uses(&replaced);
    module.keep_arguments(body, &kept);
    let inputs = kept.iter().map(|&at| arguments[at].1.clone()).collect();
    let signature = Type::Function(FunctionType { inputs, results }.into());
    module.set_attr(op, "function_type", Attribute::Type(signature));
    if let Some(Attribute::Array(dicts)) = attrs {
        let dicts = kept.iter().filter_map(|&at| dicts.get(at).cloned()).collect();
        module.set_attr(op, "arg_attrs", Attribute::Array(dicts));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::{Argument, ArgumentRole, Signature};
    use crate::{ElementType, TensorType};

    fn scalar() -> TensorType {
        TensorType::fixed(&[], ElementType::I32)
    }

    /// `@main(%w, %x) { return %w, %x }`.
    fn module() -> Module {
        let mut module = Module::new();
        let ty: Type = scalar().into();
        let argument = |name: &str, role| Argument::new(name, role, ty.clone());
        let arguments = vec![argument("w", ArgumentRole::Parameter), argument("x", ArgumentRole::Input)];
        let signature = Signature { arguments, results: vec![] };
        let types = FunctionType { inputs: vec![ty.clone(); 2], results: vec![ty.clone(); 2] };
        let attrs: Dict = [
            ("sym_name", Attribute::Str("main".into())),
            ("function_type", Attribute::Type(Type::Function(types.into()))),
            ("arg_attrs", signature.argument_attrs()),
        ]
        .into_iter()
        .collect();
        let func = module.create_op(OpKind::Func, vec![], vec![], attrs, Span::NONE);
        module.append_op(module.body(), func);
        let region = module.add_region(func);
        let block = module.add_block(region);
        let values = [ty.clone(), ty].map(|ty| module.add_argument(block, ty)).to_vec();
        let end = module.create_op(OpKind::FuncReturn, values, vec![], Dict::new(), Span::NONE);
        module.append_op(block, end);
        module
    }

    #[test]
    fn an_argument_becomes_a_constant() {
        let mut module = module();
        let seven = DenseElements::raw(scalar(), 7i32.to_le_bytes().to_vec()).unwrap();
        embed(&mut module, "main", BTreeMap::from([(0, seven)])).unwrap();
        assert!(crate::verify(&module).is_empty());
        let text = crate::print::print(&module);
        assert!(text.contains("@main(%arg0: tensor<i32> {warpforge.name = \"x\""), "{text}");
        assert!(text.contains("%c = stablehlo.constant dense<7> : tensor<i32>"), "{text}");
        assert!(text.contains("return %c, %arg0 : tensor<i32>, tensor<i32>"), "{text}");
    }

    #[test]
    fn a_constant_of_another_type_is_refused() {
        let mut module = module();
        let before = crate::print::print(&module);
        let wrong = DenseElements::raw(TensorType::fixed(&[1], ElementType::I32), vec![0; 4]).unwrap();
        let error = embed(&mut module, "main", BTreeMap::from([(1, wrong)])).unwrap_err();
        assert_eq!(error.to_string(), "argument 1 is tensor<i32>, its constant tensor<1xi32>");
        assert_eq!(crate::print::print(&module), before);
        let none = embed(&mut module, "other", BTreeMap::new()).unwrap_err();
        assert_eq!(none, EmbedError::NoFunction("other".into()));
    }
}
