//! Modules that say how many processes run them: each process runs the entry function, on inputs of its own.

use warpforge_ir::attr::Attribute;
use warpforge_ir::signature::{Argument, Output, Signature};
use warpforge_ir::table::Trait;
use warpforge_ir::{Dict, FunctionType, Module, OpKind, Type, ValueId};

/// Most processes: as many as the reference runs.
const MOST: usize = 256;

/// Adds a function that runs the entry function in each of the processes that the module asks for, and gives its name.
///
/// Weights that no result is the new value of are the same for all. Inputs, state and results are one after the other, replicas
/// first, named `NAME@REPLICA.PARTITION`.
/// `None` where one process is enough: the module asks for no more, or has nothing that processes do together.
pub(crate) fn spread(module: &mut Module, entry: &str) -> Option<String> {
    let count = |name: &str| {
        let said = module.attributes().find(|(known, _)| *known == name);
        said.and_then(|(_, value)| value.as_i64()).and_then(|count| usize::try_from(count).ok()).unwrap_or(1)
    };
    let (replicas, partitions) = (count("mhlo.num_replicas"), count("mhlo.num_partitions"));
    replicas.checked_mul(partitions).filter(|count| (2..=MOST).contains(count))?;
    if !module.has(Trait::Collective) {
        return None;
    }
    let own = Signature::of(module.function(entry)?);
    let places = (0..replicas).flat_map(|replica| (0..partitions).map(move |partition| (replica, partition)));
    let places: Vec<String> = places.map(|(replica, partition)| format!("{replica}.{partition}")).collect();
    let all = of_all(&own, &places);
    let mut name = format!("{entry}_processes");
    while module.function(&name).is_some() {
        name.push('_');
    }
    build(module, &name, entry, (replicas, partitions), &own, &all);
    Some(name)
}

/// Whether all processes read the same argument.
fn is_shared(argument: &Argument) -> bool {
    argument.role.is_weight() && argument.alias.is_none()
}

/// The arguments and results of all processes: what they share, then the other arguments of each.
fn of_all(own: &Signature, places: &[String]) -> Signature {
    let weights = own.arguments.iter().filter(|argument| is_shared(argument)).cloned();
    let inputs = places.iter().enumerate().flat_map(|(process, place)| {
        own.arguments.iter().filter(|argument| !is_shared(argument)).map(move |argument| Argument {
            name: format!("{}@{place}", argument.name),
            alias: argument.alias.map(|result| process * own.results.len() + result),
            ..argument.clone()
        })
    });
    let results = places.iter().flat_map(|place| {
        own.results
            .iter()
            .map(move |result| Output { name: format!("{}@{place}", result.name), ..result.clone() })
    });
    Signature { arguments: weights.chain(inputs).collect(), results: results.collect() }
}

fn build(
    module: &mut Module,
    name: &str,
    entry: &str,
    (replicas, partitions): (usize, usize),
    own: &Signature,
    all: &Signature,
) {
    let span = module.function(entry).map(|func| func.op().span()).unwrap_or_default();
    let types = FunctionType {
        inputs: all.arguments.iter().map(|argument| argument.ty.clone()).collect(),
        results: all.results.iter().map(|result| result.ty.clone()).collect(),
    };
    let (inputs, results) = (types.inputs.clone(), types.results.clone());
    let attrs: Dict = [
        ("sym_name", Attribute::string(name)),
        ("function_type", Attribute::Type(Type::Function(types.into()))),
        ("arg_attrs", all.argument_attrs()),
        ("res_attrs", all.result_attrs()),
    ]
    .into_iter()
    .collect();
    let func = module.create_op(OpKind::Func, vec![], vec![], attrs, span);
    module.append_op(module.body(), func);
    let region = module.add_region(func);
    let block = module.add_block(region);
    let given: Vec<ValueId> = inputs.into_iter().map(|ty| module.add_argument(block, ty)).collect();
    let shared = own.arguments.iter().filter(|argument| is_shared(argument)).count();
    let (weights, inputs) = given.split_at(shared);
    let mut inputs = inputs.iter().copied();
    let mut operands = Vec::new();
    for _ in 0..replicas * partitions {
        let mut weights = weights.iter().copied();
        let next = |argument: &Argument| if is_shared(argument) { weights.next() } else { inputs.next() };
        operands.extend(own.arguments.iter().filter_map(next));
    }
    let row = Attribute::Array(vec![Attribute::symbol(entry); partitions].into());
    let programs: Dict = [("programs", Attribute::Array(vec![row; replicas].into()))].into_iter().collect();
    let run = module.create_op(OpKind::InterpreterRunParallel, operands, results, programs, span);
    module.append_op(block, run);
    let results = module.op(run).results().collect();
    let end = module.create_op(OpKind::FuncReturn, results, vec![], Dict::new(), span);
    module.append_op(block, end);
}

#[cfg(test)]
mod tests {
    use warpforge_runtime::CompileOptions;
    use warpforge_tensor::Tensor;

    use crate::Model;

    /// What every replica has, times a weight, summed.
    fn text(replicas: usize, body: &str) -> String {
        format!(
            "module attributes {{mhlo.num_replicas = {replicas} : i32, mhlo.num_partitions = 1 : i32}} {{
  func.func @main(%x: tensor<2xi32> {{warpforge.name = \"x\"}},
      %w: tensor<2xi32> {{warpforge.name = \"w\", warpforge.role = \"parameter\"}}) -> tensor<2xi32> {{
    %0 = stablehlo.multiply %x, %w : tensor<2xi32>
    {body}
    func.return %1 : tensor<2xi32>
  }}\n}}"
        )
    }

    const SUM: &str =
        "%1 = \"stablehlo.all_reduce\"(%0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %s = stablehlo.add %a, %b : tensor<i32>
        stablehlo.return %s : tensor<i32>
    }) : (tensor<2xi32>) -> tensor<2xi32>";

    #[test]
    fn a_module_of_two_replicas_takes_and_gives_twice() {
        let model = Model::from_text("m.mlir", text(2, SUM)).unwrap();
        let names: Vec<&str> = model.inputs().iter().map(|slot| slot.name).collect();
        assert_eq!(names, ["w", "x@0.0", "x@1.0"]);
        let vector = |values: [i32; 2]| Tensor::from_slice(&[2], &values).unwrap();
        let compiled = model.compile(&CompileOptions::default()).unwrap();
        let outputs = compiled
            .run([("w", vector([10, 100])), ("x@0.0", vector([1, 2])), ("x@1.0", vector([3, 4]))])
            .unwrap();
        for name in ["out0@0.0", "out0@1.0"] {
            assert_eq!(outputs[name].as_slice::<i32>().unwrap(), [40, 600]);
        }
    }

    #[test]
    fn what_needs_no_others_is_one_process() {
        let alone = "%1 = stablehlo.add %0, %0 : tensor<2xi32>";
        for text in [text(2, alone), text(1, alone)] {
            let model = Model::from_text("m.mlir", text).unwrap();
            assert_eq!((model.entry(), model.inputs().len()), ("main", 2));
        }
    }
}
