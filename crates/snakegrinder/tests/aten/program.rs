//! From the graph of a line to the program of an archive.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The program around a graph whose inputs and outputs are all the user's.
pub(crate) fn program(graph: &Value) -> Value {
    let specs = |kind: &str, arguments: &Value| -> Vec<Value> {
        arguments.as_array().into_iter().flatten().map(|argument| json!({kind: {"arg": argument}})).collect()
    };
    let tensors = graph["tensors"].as_object().into_iter().flatten();
    let metas: Map<String, Value> = tensors.map(|(name, tensor)| (name.clone(), meta(tensor))).collect();
    json!({
        "schema_version": {"major": 8, "minor": 0},
        "graph_module": {
            "graph": {
                "inputs": graph["inputs"],
                "outputs": graph["outputs"],
                "nodes": graph["nodes"],
                "tensor_values": metas,
                "sym_int_values": graph.get("sizes").cloned().unwrap_or_else(|| json!({}))
            },
            "signature": {
                "input_specs": specs("user_input", &graph["inputs"]),
                "output_specs": specs("user_output", &graph["outputs"])
            }
        },
        "range_constraints": graph.get("ranges").cloned().unwrap_or_else(|| json!({}))
    })
}

/// The shapes of the inputs; a dynamic size is the one that PyTorch ran with.
pub(crate) fn shapes(graph: &Value) -> BTreeMap<String, Vec<u64>> {
    let size = |size: &Value| size.as_u64().or_else(|| size["as_expr"]["hint"]["as_int"].as_u64());
    let shape = |input: &Value| {
        let name = input["as_tensor"]["name"].as_str()?;
        let sizes = graph["tensors"][name][1].as_array()?;
        Some((name.to_owned(), sizes.iter().map(size).collect::<Option<_>>()?))
    };
    graph["inputs"].as_array().into_iter().flatten().filter_map(shape).collect()
}

/// What a graph says of a tensor, from `[element type, sizes, strides, offset]`. Without strides it is row-major.
fn meta(tensor: &Value) -> Value {
    let number = |value: &Value| if value.is_number() { json!({"as_int": value}) } else { value.clone() };
    let numbers = |values: &Value| values.as_array().into_iter().flatten().map(number).collect::<Vec<_>>();
    let strides = tensor.get(2).map_or_else(|| row_major(&tensor[1]), &numbers);
    let offset = tensor.get(3).map_or_else(|| json!({"as_int": 0}), number);
    json!({
        "dtype": tensor[0], "sizes": numbers(&tensor[1]), "strides": strides, "storage_offset": offset, "layout": 7
    })
}

fn row_major(sizes: &Value) -> Vec<Value> {
    let sizes: Vec<i64> = sizes.as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
    let stride = |at: usize| sizes[at + 1..].iter().map(|&size| size.max(1)).product::<i64>();
    (0..sizes.len()).map(|at| json!({"as_int": stride(at)})).collect()
}
