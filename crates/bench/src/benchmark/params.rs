//! Parameters: defaults from the specification, values from the user.

use crate::record::{BenchmarkSpec, ParamValue, Params};

/// Why a parameter given by the user was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// The benchmark has no such parameter.
    #[error("{benchmark} has no parameter `{name}`; it has: {known}")]
    Unknown {
        /// The benchmark's name.
        benchmark: String,
        /// What the user wrote.
        name: String,
        /// The parameters that exist.
        known: String,
    },
    /// The value is not of the parameter's type.
    #[error("parameter `{name}` of {benchmark} takes {expected}, not `{value}`")]
    WrongType {
        /// The benchmark's name.
        benchmark: String,
        /// The parameter.
        name: String,
        /// What the user wrote.
        value: String,
        /// What is accepted.
        expected: &'static str,
    },
}

/// Sets one parameter of a specification from text, in the type of its default.
///
/// # Errors
/// If there is no such parameter or the text is not of its type.
pub fn override_params(spec: &mut BenchmarkSpec, name: &str, value: &str) -> Result<(), ParamError> {
    let benchmark = spec.id.name.clone();
    let known = |params: &Params| params.keys().cloned().collect::<Vec<_>>().join(", ");
    let params = spec.params.get_or_insert_default();
    let Some(slot) = params.get_mut(name) else {
        let known = if params.is_empty() { "none".to_owned() } else { known(params) };
        return Err(ParamError::Unknown { benchmark, name: name.to_owned(), known });
    };
    let wrong = |expected| ParamError::WrongType {
        benchmark: benchmark.clone(),
        name: name.to_owned(),
        value: value.to_owned(),
        expected,
    };
    *slot = match slot {
        ParamValue::Bool(_) => ParamValue::Bool(value.parse().map_err(|_| wrong("true or false"))?),
        ParamValue::Int(_) => ParamValue::Int(value.parse().map_err(|_| wrong("a whole number"))?),
        ParamValue::Float(_) => match value.parse::<f64>() {
            Ok(number) if number.is_finite() => ParamValue::Float(number),
            _ => return Err(wrong("a number")),
        },
        ParamValue::Text(_) => ParamValue::Text(value.to_owned()),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{BenchmarkId, BenchmarkKind, params};

    fn spec() -> BenchmarkSpec {
        let defaults = [("depth", ParamValue::Int(4)), ("folder", ParamValue::Text(String::new()))];
        let spec = BenchmarkId::new("micro", "disk_io").spec(BenchmarkKind::Synthetic);
        BenchmarkSpec { params: Some(params(&defaults)), ..spec }
    }

    #[test]
    fn values_take_the_type_of_the_default() {
        let mut spec = spec();
        override_params(&mut spec, "depth", "32").unwrap();
        override_params(&mut spec, "folder", "17").unwrap();
        let params = spec.params.unwrap();
        assert_eq!(params["depth"], ParamValue::Int(32));
        assert_eq!(params["folder"], ParamValue::Text("17".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut spec = spec();
        let error = override_params(&mut spec, "depht", "1").unwrap_err().to_string();
        assert!(error.contains("`depht`") && error.contains("depth, folder"), "{error}");
        let error = override_params(&mut spec, "depth", "deep").unwrap_err().to_string();
        assert!(error.contains("a whole number") && error.contains("`deep`"), "{error}");
        assert_eq!(spec.params.unwrap()["depth"], ParamValue::Int(4));
    }
}
