//! Numbers in JSON files: losses and metrics.

use serde_json::Value;
use warpforge_tensor::Tensor;

/// How deep objects and lists may nest.
const DEPTH: usize = 16;

/// The numbers of a JSON text as tensors of binary64: a number is a scalar, a list of numbers a vector, and what is
/// inside objects and lists of other things has their keys before its name, `eval.f1` or `steps.3.loss`.
///
/// Python writes `NaN`, `Infinity` and `-Infinity` where JSON has no word; they are read as what they are.
pub(super) fn parse(text: &str) -> Result<Vec<(String, Tensor)>, String> {
    let value: Value = serde_json::from_str(&quote_special(text)).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    collect("", &value, DEPTH, &mut found)?;
    Ok(found)
}

fn collect(name: &str, value: &Value, depth: usize, found: &mut Vec<(String, Tensor)>) -> Result<(), String> {
    let deeper = depth.checked_sub(1).ok_or_else(|| format!("`{name}` nests deeper than {DEPTH}"))?;
    let inside = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    let mut keep = |tensor: Result<Tensor, warpforge_tensor::Error>| match tensor {
        Ok(tensor) => {
            found.push((if name.is_empty() { "value" } else { name }.to_owned(), tensor));
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    };
    match value {
        Value::Object(entries) => {
            entries.iter().try_for_each(|(key, value)| collect(&inside(key), value, deeper, found))
        }
        Value::Array(values) => match values.iter().map(number).collect::<Option<Vec<f64>>>() {
            Some(numbers) => keep(Tensor::from_slice(&[numbers.len()], &numbers)),
            None => values
                .iter()
                .enumerate()
                .try_for_each(|(index, value)| collect(&inside(&index.to_string()), value, deeper, found)),
        },
        other => match number(other) {
            Some(number) => keep(Tensor::from_slice(&[], &[number])),
            // Text beside the numbers says what they are; it is nothing to compare.
            None => Ok(()),
        },
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// A number as JSON; what JSON has no word for is the text that [`parse`] reads.
pub(super) fn to_json(number: f64) -> Value {
    let word = if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    };
    serde_json::Number::from_f64(number).map_or_else(|| word.into(), Value::Number)
}

/// The text with quotes around the three words that JSON does not have.
fn quote_special(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let word = ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| rest.starts_with(word));
        let length = match (character, word) {
            ('"', _) => string_length(rest),
            (_, Some(word)) => {
                quoted.extend(['"']);
                quoted += word;
                quoted.push('"');
                rest = &rest[word.len()..];
                continue;
            }
            _ => character.len_utf8(),
        };
        quoted += &rest[..length];
        rest = &rest[length..];
    }
    quoted
}

/// The length of the string that the text begins with, both quotes among it.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<(String, Vec<usize>, Vec<f64>)> {
        let parsed = parse(text).unwrap();
        let row = |(name, tensor): (String, Tensor)| {
            let values = tensor.as_slice::<f64>().unwrap().to_vec();
            (name, tensor.dims().to_vec(), values)
        };
        parsed.into_iter().map(row).collect()
    }

    #[test]
    fn numbers_are_named_by_their_keys() {
        let text =
            r#"{"f1": 0.5, "eval": {"em": 84, "task": "qa"}, "loss": [1.5, 0.5], "steps": [{"loss": 2}]}"#;
        let mut found = named(text);
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let expected = [
            ("eval.em", vec![], vec![84.0]),
            ("f1", vec![], vec![0.5]),
            ("loss", vec![2], vec![1.5, 0.5]),
            ("steps.0.loss", vec![], vec![2.0]),
        ];
        assert_eq!(found, expected.map(|(name, dims, values)| (name.to_owned(), dims, values)));
        assert_eq!(named("[1, 2]")[0].0, "value");
    }

    #[test]
    fn what_python_writes_for_nan_is_read() {
        let found = named(r#"{"a NaN \" name": 1.0, "loss": [NaN, -Infinity, Infinity]}"#);
        assert_eq!(found[0].0, "a NaN \" name");
        assert!(found[1].2[0].is_nan());
        assert_eq!(found[1].2[1..], [f64::NEG_INFINITY, f64::INFINITY]);
    }

    #[test]
    fn nonsense_is_an_error() {
        for text in [
            "",
            "{",
            "{\"a\": \"",
            "NaNs",
            &"[".repeat(1000),
            &format!("{}{}", "[[".repeat(20), "]]".repeat(20)),
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
