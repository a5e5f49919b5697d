//! From a value that names an element type to the Rust type.

/// Evaluates an expression with `$T` as the Rust type beside the pattern that matches.
macro_rules! with_type {
    ($value:expr, $T:ident => $body:expr; { $($pattern:pat => $own:ty),+ $(,)? }
     $(else $other:pat => $otherwise:expr)?) => {
        match $value {
            $($pattern => {
                type $T = $own;
                $body
            })+
            $($other => $otherwise,)?
        }
    };
}

pub(crate) use with_type;
