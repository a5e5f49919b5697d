//! What a model calls its outputs: the keys of the dicts and the fields of the dataclasses that they are returned in.

use serde::Deserialize;
use serde_json::Value;

/// The structure that a model returns, as PyTorch's pytree writes it.
#[derive(Debug, Deserialize)]
struct Tree {
    /// The Python type; nothing for a leaf.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// The keys of a dict, the fields of a dataclass: JSON in a string.
    context: Option<String>,
    #[serde(default)]
    children_spec: Vec<Tree>,
}

/// The names of the leaves of a tree, in order: `loss`, `past.0.key`. A leaf that only positions lead to has none, and a text
/// that is no tree has no leaves.
pub(crate) fn names(spec: &str) -> Vec<Option<String>> {
    let mut found = Vec::new();
    if let Ok((_, tree)) = serde_json::from_str::<(Value, Tree)>(spec) {
        visit(&tree, &mut Vec::new(), false, &mut found);
    }
    found
}

fn visit(tree: &Tree, path: &mut Vec<String>, named: bool, found: &mut Vec<Option<String>>) {
    if tree.kind.is_none() {
        found.push(named.then(|| path.join(".")));
        return;
    }
    let keys = tree.context.as_deref().and_then(|context| keys(context, tree.children_spec.len()));
    for (at, child) in tree.children_spec.iter().enumerate() {
        let key = keys.as_ref().map(|keys| keys[at].clone());
        let named = named || key.is_some();
        path.push(key.unwrap_or_else(|| at.to_string()));
        visit(child, path, named, found);
        path.pop();
    }
}

/// The keys that a context lists: `["loss", "logits"]` of a dict, `[["loss", "logits"], ["fields that are None"]]` of a dataclass.
fn keys(context: &str, count: usize) -> Option<Vec<String>> {
    let Value::Array(items) = serde_json::from_str(context).ok()? else { return None };
    let items = match items.first() {
        Some(Value::Array(fields)) => fields.clone(),
        _ => items,
    };
    let key = |item: Value| match item {
        Value::String(text) if !text.is_empty() => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let keys: Vec<String> = items.into_iter().map(key).collect::<Option<_>>()?;
    (keys.len() == count).then_some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: &str = r#"{"type": null, "context": null, "children_spec": []}"#;

    fn of(tree: &str) -> Vec<Option<String>> {
        names(&format!("[1, {}]", tree.replace("LEAF", LEAF)))
    }

    #[test]
    fn keys_and_fields_are_names_and_positions_alone_are_not() {
        let pair = r#"{"type": "builtins.tuple", "context": "null", "children_spec": [LEAF, LEAF]}"#;
        assert_eq!(of("LEAF"), [None]);
        assert_eq!(of(pair), [None, None]);
        let dict = format!(
            r#"{{"type": "builtins.dict", "context": "[\"loss\", \"past\"]", "children_spec": [LEAF,
                {{"type": "builtins.list", "context": "null", "children_spec": [{pair}]}}]}}"#
        );
        let named = |names: &[&str]| names.iter().map(|&name| Some(name.to_owned())).collect::<Vec<_>>();
        assert_eq!(of(&dict), named(&["loss", "past.0.0", "past.0.1"]));
        let fields = r#"{"type": "Out", "context": "[[\"loss\", \"logits\"], [\"past\"]]", "children_spec": [LEAF, LEAF]}"#;
        assert_eq!(of(fields), named(&["loss", "logits"]));
        assert_eq!(names("no tree"), []);
    }
}
