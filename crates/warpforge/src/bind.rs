//! Putting named tensors in the order of a function's arguments.

use std::collections::BTreeMap;

use warpforge_ir::TensorType;
use warpforge_ir::signature::Signature;
use warpforge_runtime::mismatch;
use warpforge_tensor::Tensor;
use warpforge_tensor::io::carrier;

use crate::Inputs;

/// One argument to be given: its name, its other name by position, and its type.
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a str,
    pub(crate) alias: String,
    pub(crate) ty: &'a TensorType,
}

/// The tensors that `wanted` names, in its order.
///
/// # Errors
///
/// Everything that is missing, unknown, given twice or of another type.
pub(crate) fn in_order(wanted: &[Wanted<'_>], given: &Inputs) -> Result<Vec<Tensor>, Vec<String>> {
    let mut problems = Vec::new();
    let mut found: BTreeMap<usize, (&str, Tensor)> = BTreeMap::new();
    for (name, tensor) in given.iter() {
        // A name of the signature wins over another argument's name by position.
        let position = wanted
            .iter()
            .position(|slot| slot.name == name)
            .or_else(|| wanted.iter().position(|slot| slot.alias == name));
        let Some((position, slot)) = position.and_then(|at| Some((at, wanted.get(at)?))) else {
            problems.push(format!("`{name}` is not known{}", hint(name, wanted)));
            continue;
        };
        match fitting(slot.ty, tensor) {
            Err(problem) => problems.push(format!("`{name}` {problem}")),
            Ok(tensor) => {
                if let Some((other, _)) = found.insert(position, (name, tensor)) {
                    problems.push(format!("`{other}` and `{name}` are the same input"));
                }
            }
        }
    }
    let named = |slot: &Wanted<'_>| given.get(slot.name).or_else(|| given.get(&slot.alias)).is_some();
    for slot in wanted.iter().filter(|slot| !named(slot)) {
        problems.push(format!("`{}` is missing: {}", slot.name, slot.ty));
    }
    if problems.is_empty() {
        return Ok(found.into_values().map(|(_, tensor)| tensor).collect());
    }
    Err(problems)
}

/// The tensor as the argument wants it.
pub(crate) fn fitting(ty: &TensorType, tensor: &Tensor) -> Result<Tensor, String> {
    let carried = ty.element().storage().map(|element| carrier::from_carrier(tensor, element));
    let tensor = match carried {
        Some(Ok(Some(carried))) => carried,
        Some(Err(error)) => return Err(format!("cannot be used: {error}")),
        _ => tensor.clone(),
    };
    mismatch(ty, &tensor).map_or(Ok(tensor), Err)
}

fn hint(name: &str, wanted: &[Wanted<'_>]) -> String {
    let near = wanted.iter().map(|slot| (strsim::jaro_winkler(name, slot.name), slot.name));
    match near.filter(|(likeness, _)| *likeness > 0.8).max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((_, nearest)) => format!(", did you mean `{nearest}`?"),
        None => String::new(),
    }
}

/// The weights of a model by the position of their argument.
///
/// # Errors
///
/// Every weight that is missing, unknown or of another type.
pub(crate) fn weights(
    signature: &Signature,
    given: &BTreeMap<String, Tensor>,
) -> Result<Vec<Option<Tensor>>, Vec<String>> {
    let mut problems = Vec::new();
    let mut bound: Vec<Option<Tensor>> = vec![None; signature.arguments.len()];
    for (position, argument) in signature.weights() {
        let Some(ty) = argument.ty.as_tensor() else { continue };
        let own = given.get(&argument.name).or_else(|| given.get(of_all_processes(&argument.name)));
        match own.map(|tensor| fitting(ty, tensor)) {
            None => problems.push(format!("`{}` is missing: {ty}", argument.name)),
            Some(Err(problem)) => problems.push(format!("`{}` {problem}", argument.name)),
            Some(Ok(tensor)) => bound[position] = Some(tensor),
        }
    }
    let is = |argument: &str, name: &str| argument == name || of_all_processes(argument) == name;
    let known = |name: &String| signature.weights().any(|(_, argument)| is(&argument.name, name));
    for name in given.keys().filter(|name| !known(name)) {
        problems.push(format!("`{name}` is not known"));
    }
    if problems.is_empty() { Ok(bound) } else { Err(problems) }
}

/// The name of a weight without the process that has it as state: each starts with the same.
fn of_all_processes(name: &str) -> &str {
    name.rsplit_once('@').map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementType;

    fn wanted<'a>(types: &'a [(&'a str, TensorType)]) -> Vec<Wanted<'a>> {
        let slot = |(index, (name, ty)): (usize, &'a (&'a str, TensorType))| Wanted {
            name,
            alias: format!("arg{index}"),
            ty,
        };
        types.iter().enumerate().map(slot).collect()
    }

    fn types() -> [(&'static str, TensorType); 3] {
        let f32s = TensorType::fixed(&[2], ElementType::F32);
        [("tokens", f32s.clone()), ("mask", f32s), ("scale", TensorType::fixed(&[], ElementType::I4))]
    }

    fn two(value: f32) -> Tensor {
        Tensor::from_slice(&[2], &[value; 2]).unwrap()
    }

    #[test]
    fn names_and_positions_find_their_argument() {
        let scale = Tensor::from_slice(&[], &[-3i8]).unwrap();
        let given = Inputs::from([("scale", scale), ("arg0", two(1.0)), ("mask", two(2.0))]);
        let tensors = in_order(&wanted(&types()), &given).unwrap();
        assert_eq!(tensors[0].as_slice::<f32>().unwrap(), [1.0; 2]);
        assert_eq!(tensors[1].as_slice::<f32>().unwrap(), [2.0; 2]);
        assert_eq!(tensors[2].element_type(), ElementType::I4);
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let given =
            Inputs::from([("arg1", two(1.0)), ("mask", two(2.0)), ("token", two(3.0)), ("scale", two(4.0))]);
        let problems = in_order(&wanted(&types()), &given).unwrap_err().join("\n");
        for expected in [
            "`arg1` and `mask` are the same input",
            "`token` is not known, did you mean `tokens`?",
            "`scale` is tensor<2xf32>, not tensor<i4>",
            "`tokens` is missing: tensor<2xf32>",
        ] {
            assert!(problems.contains(expected), "no {expected} in\n{problems}");
        }
    }
}
