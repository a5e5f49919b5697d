//! Archives around a graph: the smallest zip that an importer takes.

use serde_json::{Value, json};

use super::zip::Zip;

/// The program of one collected node: its tensors are the model's inputs and outputs.
pub(crate) fn program(seed: &Value) -> Value {
    // An output that nothing uses has a name that says so, and is not returned.
    let used =
        |output: &Value| !output["as_tensor"]["name"].as_str().unwrap_or_default().contains("_unused_");
    let outputs: Vec<Value> =
        seed["outputs"].as_array().into_iter().flatten().flat_map(tensors).filter(used).collect();
    let given: Vec<Value> = seed["outputs"].as_array().into_iter().flatten().flat_map(tensors).collect();
    let is_output = |name: &str| given.iter().any(|output| output["as_tensor"]["name"] == name);
    let values = seed["tensors"].as_object().into_iter().flatten();
    let inputs: Vec<Value> = values
        .clone()
        .filter(|(name, _)| !is_output(name))
        .map(|(name, _)| json!({"as_tensor": {"name": name}}))
        .collect();
    let metas: serde_json::Map<String, Value> =
        values.map(|(name, value)| (name.clone(), meta(&value[0], &value[1]))).collect();
    let specs = |kind: &str, arguments: &[Value]| -> Vec<Value> {
        arguments.iter().map(|argument| json!({kind: {"arg": argument}})).collect()
    };
    let node = json!({
        "target": seed["target"], "inputs": seed["inputs"], "outputs": seed["outputs"], "name": "node", "metadata": {}
    });
    json!({
        "schema_version": {"major": 8, "minor": 0},
        "graph_module": {
            "graph": {"inputs": inputs, "outputs": outputs, "nodes": [node], "tensor_values": metas},
            "signature": {
                "input_specs": specs("user_input", &inputs), "output_specs": specs("user_output", &outputs)
            }
        },
        "range_constraints": {"s0": {"min_val": 2, "max_val": 64}}
    })
}

/// The tensors of an output, each as an argument.
fn tensors(output: &Value) -> Vec<Value> {
    match (output.get("as_tensor"), output.get("as_tensors")) {
        (Some(_), _) => vec![output.clone()],
        (_, Some(list)) => {
            list.as_array().into_iter().flatten().map(|tensor| json!({"as_tensor": tensor})).collect()
        }
        _ => Vec::new(),
    }
}

/// A tensor of an element type's code and sizes, in row-major order.
pub(crate) fn meta(dtype: &Value, sizes: &Value) -> Value {
    let sizes: Vec<i64> = sizes.as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
    let strides = (0..sizes.len()).map(|at| sizes[at + 1..].iter().product::<i64>().max(1));
    let number = |value: i64| json!({"as_int": value});
    json!({
        "dtype": dtype,
        "sizes": sizes.iter().copied().map(number).collect::<Vec<_>>(),
        "strides": strides.map(number).collect::<Vec<_>>(),
        "storage_offset": {"as_int": 0},
        "layout": 7
    })
}

/// The bytes of an archive with this program and no weights.
pub(crate) fn around(program: &str) -> Vec<u8> {
    let members = [
        ("model/archive_format", "pt2"),
        ("model/archive_version", "0"),
        ("model/byteorder", "little"),
        ("model/models/model.json", program),
        ("model/data/weights/model_weights_config.json", "{\"config\": {}}"),
        ("model/data/constants/model_constants_config.json", "{\"config\": {}}"),
    ];
    zip(&members.map(|(name, text)| (name, text.as_bytes())))
}

/// A zip of these members.
fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut zip, mut file) = (Zip::default(), Vec::new());
    for (name, data) in members {
        file.extend(zip.header(name, crc32fast::hash(data), data.len() as u32));
        file.extend(*data);
    }
    file.extend(zip.end());
    file
}
