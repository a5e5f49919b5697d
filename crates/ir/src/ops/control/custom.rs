//! What is asked of a custom call: its layouts, what shares memory, and its configuration.

use std::collections::HashSet;

use crate::attr::{Attribute, DenseElements, OutputOperandAlias};
use crate::types::Type;
use crate::verify::{Cx, compatible};

/// Layouts come for all operands and all results, or for none. A layout is the dimensions in some order.
pub(super) fn layouts(cx: &mut Cx<'_>) -> Option<()> {
    let operands = cx.attr("operand_layouts").and_then(Attribute::as_array);
    let results = cx.attr("result_layouts").and_then(Attribute::as_array);
    let (operands, results) = match (operands, results) {
        (None, None) => return None,
        (Some(operands), Some(results)) => (operands, results),
        _ => {
            cx.fail("layouts", "layouts of operands and results come together or not at all");
            return None;
        }
    };
    let operand_types = cx.operands().to_vec();
    // The layouts of a single tuple are those of its elements.
    let result_types: Vec<Type> = match cx.results() {
        [Type::Tuple(elements)] => elements.to_vec(),
        types => types.iter().map(|ty| (*ty).clone()).collect(),
    };
    check(cx, "operand", operands, &operand_types);
    check(cx, "result", results, &result_types.iter().collect::<Vec<_>>());
    Some(())
}

fn check(cx: &mut Cx<'_>, what: &str, layouts: &[Attribute], types: &[&Type]) {
    if !cx.same_count("layouts", &format!("layouts of {what}s"), layouts.len(), types.len()) {
        return;
    }
    for (index, (layout, ty)) in layouts.iter().zip(types).enumerate() {
        let Some(layout) = layout.as_elements().and_then(DenseElements::to_i64s) else {
            cx.fail("layouts", format!("the layout of {what} {index} is no list of dimensions"));
            continue;
        };
        match ty {
            Type::Tuple(_) => cx.fail("layouts", format!("{what} {index}: tuples have no layout")),
            Type::Tensor(tensor) => {
                let mut sorted = layout.clone();
                sorted.sort_unstable();
                let fits = sorted.iter().copied().eq(0..tensor.rank() as i64);
                cx.check(fits, "layouts", || {
                    format!("{what} {index}: {layout:?} is no order of the dimensions of {tensor}")
                });
            }
            _ => {
                cx.check(layout.is_empty(), "layouts", || {
                    format!("{what} {index}: only tensors have a layout, not {ty}")
                });
            }
        }
    }
}

/// What shares memory is of one type.
pub(super) fn aliases(cx: &mut Cx<'_>) -> Option<()> {
    let listed = cx.attr("output_operand_aliases")?.as_array()?;
    for item in listed {
        let Attribute::Alias(alias) = item else {
            cx.fail("output_operand_aliases", "an entry is no output_operand_alias");
            continue;
        };
        check_alias(cx, alias);
    }
    Some(())
}

fn check_alias(cx: &mut Cx<'_>, alias: &OutputOperandAlias) {
    let operand =
        usize::try_from(alias.operand_index).ok().and_then(|index| cx.operands().get(index).copied());
    let Some(operand) = operand else {
        let index = alias.operand_index;
        cx.fail("output_operand_aliases", format!("there is no operand {index}"));
        return;
    };
    let output = output(cx);
    let parts = (part(operand, &alias.operand_tuple_indices), part(&output, &alias.output_tuple_indices));
    let (Some(from), Some(to)) = parts else {
        cx.fail("output_operand_aliases", "tuple indices do not lead to a part");
        return;
    };
    cx.check(compatible::types(from, to), "output_operand_aliases", || {
        format!("{from} and {to} cannot share memory")
    });
}

/// The type of what is given: several results are indexed as if they were one tuple.
fn output(cx: &Cx<'_>) -> Type {
    match cx.results() {
        [only] => (*only).clone(),
        results => Type::Tuple(results.iter().map(|ty| (*ty).clone()).collect()),
    }
}

/// Buffers are made, filled and read by calls of their own. Any other call hands each of them on, once.
pub(super) fn buffers(cx: &mut Cx<'_>) -> Option<()> {
    let moved = |inputs: &[&Type], outputs: &[&Type]| match (inputs, outputs) {
        ([Type::Tensor(tensor)], [Type::Buffer(buffer)])
        | ([Type::Buffer(buffer)], [Type::Tensor(tensor)]) => compatible::tensors(tensor, buffer),
        _ => false,
    };
    let (fits, wanted) = match (cx.attr("call_target_name")?.as_str()?, cx.operands(), cx.results()) {
        ("CreateBuffer", inputs, outputs) => {
            (inputs.is_empty() && matches!(outputs, [Type::Buffer(_)]), "nothing and gives a buffer")
        }
        ("Pin", inputs, outputs) => {
            let fits = moved(inputs, outputs) && matches!(inputs, [Type::Tensor(_)]);
            (fits, "a tensor and gives a buffer of its type")
        }
        ("Unpin", inputs, outputs) => {
            let fits = moved(inputs, outputs) && matches!(inputs, [Type::Buffer(_)]);
            (fits, "a buffer and gives a tensor of its type")
        }
        _ => return handed_on(cx),
    };
    cx.check(fits, "buffers", || format!("this call takes {wanted}"));
    Some(())
}

/// Every buffer that is given is one that was taken, and none is handed on twice.
fn handed_on(cx: &mut Cx<'_>) -> Option<()> {
    let listed = cx.attr("output_operand_aliases")?.as_array()?;
    let output = output(cx);
    let (mut taken, mut given) = (HashSet::new(), HashSet::new());
    for item in listed {
        let Attribute::Alias(alias) = item else { continue };
        if !matches!(part(&output, &alias.output_tuple_indices), Some(Type::Buffer(_))) {
            continue;
        }
        let once = taken.insert((alias.operand_index, &alias.operand_tuple_indices));
        let once = given.insert(alias.output_tuple_indices.to_vec()) && once;
        cx.check(once, "buffers", || "a buffer is handed on twice".to_owned());
    }
    let mut pending = vec![(Vec::new(), &output)];
    while let Some((path, ty)) = pending.pop() {
        match ty {
            Type::Tuple(elements) => pending.extend(
                elements.iter().zip(0i64..).map(|(ty, step)| ([path.as_slice(), &[step]].concat(), ty)),
            ),
            Type::Buffer(_) => {
                cx.check(given.contains(&path), "buffers", || {
                    format!("the buffer {path:?} of the results comes from no operand")
                });
            }
            _ => {}
        }
    }
    Some(())
}

/// The part of a type that a path through tuples leads to.
fn part<'t>(mut ty: &'t Type, path: &[i64]) -> Option<&'t Type> {
    for step in path {
        let Type::Tuple(elements) = ty else { return None };
        ty = elements.get(usize::try_from(*step).ok()?)?;
    }
    Some(ty)
}

/// Older calls are configured by text, those of the typed interface by a dictionary.
pub(super) fn configuration(cx: &mut Cx<'_>) -> Option<()> {
    /// The version of the interface that takes dictionaries.
    const TYPED: i64 = 4;
    let version = cx.i64("api_version")?;
    cx.check((0..=TYPED).contains(&version), "api_version", || format!("there is no interface {version}"));
    let config = cx.attr("backend_config")?;
    let fits = if version == TYPED {
        matches!(config, Attribute::Dict(_))
    } else {
        matches!(config, Attribute::Str(_))
    };
    cx.check(fits, "backend_config", || format!("the interface {version} is not configured by {config}"));
    Some(())
}
