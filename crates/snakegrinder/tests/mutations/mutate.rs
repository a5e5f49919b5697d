//! Changes to a JSON value that keep it JSON: what a careless or hostile writer of graphs would get wrong.

use serde_json::{Map, Value, json};

/// Where decisions come from: random numbers, or the bytes of a fuzzer.
pub(crate) trait Choices {
    /// A number from 0 to below `count`; 0 where `count` is 0.
    fn below(&mut self, count: usize) -> usize;
}

/// Numbers at the edges of what sizes, dimensions and codes may be.
const NUMBERS: [i64; 18] = [
    0,
    1,
    -1,
    2,
    3,
    -2,
    5,
    7,
    12,
    16,
    64,
    1000,
    i32::MAX as i64,
    i32::MIN as i64,
    1 << 40,
    -(1 << 40),
    i64::MAX,
    i64::MIN,
];

/// Changes one place of a value: mostly a number, since a graph whose structure is broken is refused at once.
pub(crate) fn mutate(root: &mut Value, choices: &mut impl Choices) {
    let others = strings(root);
    let wanted: fn(&Value) -> bool = match choices.below(6) {
        0 | 1 => |_| true,
        2 => |value| value.is_array(),
        _ => |value| value.is_number() || value.is_boolean(),
    };
    let count = places(root, wanted);
    let mut at = choices.below(count);
    if let Some(place) = find(root, wanted, &mut at) {
        change(place, &others, choices);
    }
}

/// How many values of a kind there are, the containers among them.
fn places(value: &Value, wanted: fn(&Value) -> bool) -> usize {
    usize::from(wanted(value))
        + match value {
            Value::Array(values) => values.iter().map(|value| places(value, wanted)).sum::<usize>(),
            Value::Object(entries) => entries.values().map(|value| places(value, wanted)).sum(),
            _ => 0,
        }
}

/// The value at a position of the walk that [`places`] counts.
fn find<'v>(value: &'v mut Value, wanted: fn(&Value) -> bool, at: &mut usize) -> Option<&'v mut Value> {
    if wanted(value) {
        if *at == 0 {
            return Some(value);
        }
        *at -= 1;
    }
    match value {
        Value::Array(values) => values.iter_mut().find_map(|value| find(value, wanted, at)),
        Value::Object(entries) => entries.values_mut().find_map(|value| find(value, wanted, at)),
        _ => None,
    }
}

/// All strings, so that one name can take the place of another.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(strings).collect(),
        Value::Object(entries) => entries.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

fn change(place: &mut Value, others: &[String], choices: &mut impl Choices) {
    let number = |choices: &mut dyn FnMut(usize) -> usize| json!(NUMBERS[choices(NUMBERS.len())]);
    match place {
        Value::Number(_) => *place = number(&mut |count| choices.below(count)),
        Value::Bool(truth) => *truth = !*truth,
        Value::String(text) => {
            if let Some(other) = others.get(choices.below(others.len() + 1)) {
                text.clone_from(other);
            } else {
                text.clear();
            }
        }
        Value::Array(values) => change_list(values, choices),
        Value::Object(entries) => change_object(entries, choices),
        Value::Null => *place = number(&mut |count| choices.below(count)),
    }
}

fn change_list(values: &mut Vec<Value>, choices: &mut impl Choices) {
    let at = choices.below(values.len());
    match choices.below(5) {
        0 if !values.is_empty() => {
            values.remove(at);
        }
        1 if !values.is_empty() => values.insert(at, values[at].clone()),
        2 => values.clear(),
        3 if !values.is_empty() => {
            let other = choices.below(values.len());
            values.swap(at, other);
        }
        _ => values.insert(at, json!({"as_int": NUMBERS[choices.below(NUMBERS.len())]})),
    }
}

/// Alternatives of the unions that a graph is made of.
fn alternatives() -> [Value; 16] {
    let huge = "Mul(Integer(4611686018427387904), Symbol('s0'))";
    [
        json!({"as_none": true}),
        json!({"as_int": -1}),
        json!({"as_int": i64::MIN}),
        json!({"as_ints": []}),
        json!({"as_ints": [i64::MAX, 0, -1]}),
        json!({"as_float": 0.5}),
        json!({"as_float": "NaN"}),
        json!({"as_bool": true}),
        json!({"as_string": "sum"}),
        json!({"as_tensors": []}),
        json!({"as_scalar_type": 12}),
        json!({"as_sym_int": {"as_int": 3}}),
        json!({"as_expr": {"expr_str": "Symbol('s0')", "hint": {"as_int": 4}}}),
        json!({"as_expr": {"expr_str": huge, "hint": null}}),
        json!({"as_complex": {"real": 1.0, "imag": "Infinity"}}),
        json!({"as_optional_tensors": [{"as_none": true}]}),
    ]
}

fn change_object(entries: &mut Map<String, Value>, choices: &mut impl Choices) {
    let keys: Vec<String> = entries.keys().cloned().collect();
    let key = keys.get(choices.below(keys.len()));
    match (choices.below(4), key) {
        (0, Some(key)) => {
            entries.remove(key);
        }
        (1, Some(key)) => {
            let other = keys[choices.below(keys.len())].clone();
            let (left, right) = (entries[key].clone(), entries[&other].clone());
            entries.insert(key.clone(), right);
            entries.insert(other, left);
        }
        _ => {
            let alternative = alternatives()[choices.below(16)].clone();
            if let Value::Object(alternative) = alternative {
                *entries = alternative;
            }
        }
    }
}
