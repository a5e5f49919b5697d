//! Elementwise functions: one table of their names, operands and cost.
//!
//! Fusion, the CPU's vector code and the GPU's source all name a function by its [`Function`]. To add one, add a row here, then its code: one
//! function of the CPU engine (`kernels`) and one of the GPU's prelude (`codegen`), named `wf_` and the mnemonic.

/// What computing a function again costs, beside reading its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cost {
    /// An instruction or two.
    Cheap,
    /// Many instructions, exactly rounded or exact.
    Costly,
    /// An approximation, by polynomials, tables or instructions that do not round exactly.
    Approximate,
}

/// Whether a function of values that a narrow float holds gives a value that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rounding {
    /// Always: the result needs no rounding.
    Exact,
    /// Not always.
    Rounds,
}

macro_rules! functions {
    ($($(#[doc = $doc:literal])+ $name:ident: $mnemonic:literal, $op:expr, $arity:literal, $cost:ident, $rounding:ident;)+) => {
        /// A function of one element of each operand.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Function {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Function {
            /// Every function, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            fn row(self) -> (&'static str, Option<&'static str>, usize, Cost, Rounding) {
                match self {
                    $(Self::$name => ($mnemonic, $op, $arity, Cost::$cost, Rounding::$rounding),)+
                }
            }
        }
    };
}

functions! {
    /// The magnitude; of the least integer, itself.
    Abs: "abs", Some("stablehlo.abs"), 1, Cheap, Exact;
    /// The value with the other sign; integers wrap.
    Negate: "neg", Some("stablehlo.negate"), 1, Cheap, Exact;
    /// -1, 0 or 1; a zero keeps its sign and NaN stays.
    Sign: "sign", Some("stablehlo.sign"), 1, Costly, Exact;
    /// All bits, or the truth value, inverted.
    Not: "not", Some("stablehlo.not"), 1, Cheap, Rounds;
    /// How many bits are set.
    Popcnt: "popcnt", Some("stablehlo.popcnt"), 1, Costly, Rounds;
    /// How many bits above the highest that is set are clear.
    CountLeadingZeros: "clz", Some("stablehlo.count_leading_zeros"), 1, Costly, Rounds;
    /// Whether the value is neither infinite nor NaN.
    IsFinite: "isfinite", Some("stablehlo.is_finite"), 1, Costly, Exact;
    /// The next integer above.
    Ceil: "ceil", Some("stablehlo.ceil"), 1, Costly, Exact;
    /// The next integer below.
    Floor: "floor", Some("stablehlo.floor"), 1, Costly, Exact;
    /// The nearest integer, halves away from zero.
    RoundNearestAfz: "round_afz", Some("stablehlo.round_nearest_afz"), 1, Costly, Rounds;
    /// The nearest integer, halves to the even one.
    RoundNearestEven: "round_even", Some("stablehlo.round_nearest_even"), 1, Costly, Rounds;
    /// The square root.
    Sqrt: "sqrt", Some("stablehlo.sqrt"), 1, Costly, Rounds;
    /// One divided by the square root.
    Rsqrt: "rsqrt", Some("stablehlo.rsqrt"), 1, Approximate, Rounds;
    /// The cube root.
    Cbrt: "cbrt", Some("stablehlo.cbrt"), 1, Approximate, Rounds;
    /// e to the power of the value.
    Exponential: "exp", Some("stablehlo.exponential"), 1, Approximate, Rounds;
    /// e to the power of the value, less one.
    ExponentialMinusOne: "expm1", Some("stablehlo.exponential_minus_one"), 1, Approximate, Rounds;
    /// The natural logarithm.
    Log: "log", Some("stablehlo.log"), 1, Approximate, Rounds;
    /// The natural logarithm of the value plus one.
    LogPlusOne: "log1p", Some("stablehlo.log_plus_one"), 1, Approximate, Rounds;
    /// `1 / (1 + e^-x)`.
    Logistic: "logistic", Some("stablehlo.logistic"), 1, Approximate, Rounds;
    /// The hyperbolic tangent.
    Tanh: "tanh", Some("stablehlo.tanh"), 1, Approximate, Rounds;
    /// The sine.
    Sine: "sin", Some("stablehlo.sine"), 1, Approximate, Rounds;
    /// The cosine.
    Cosine: "cos", Some("stablehlo.cosine"), 1, Approximate, Rounds;
    /// The tangent.
    Tan: "tan", Some("stablehlo.tan"), 1, Approximate, Rounds;
    /// The error function.
    Erf: "erf", Some("chlo.erf"), 1, Approximate, Rounds;
    /// One less the error function.
    Erfc: "erfc", Some("chlo.erfc"), 1, Approximate, Rounds;
    /// The Gaussian error linear unit, `x / 2 (1 + erf(x / √2))`; fusion makes it of its parts.
    Gelu: "gelu", None, 1, Approximate, Rounds;
    /// The same by the hyperbolic tangent, `x / 2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`; fusion makes it of its parts.
    GeluTanh: "gelu_tanh", None, 1, Approximate, Rounds;
    /// The first times the derivative of [`Function::GeluTanh`] at the second; fusion makes it of its parts.
    GeluTanhGradient: "gelu_tanh_gradient", None, 2, Approximate, Rounds;
    /// The sum; integers wrap; of truth values, either.
    Add: "add", Some("stablehlo.add"), 2, Cheap, Rounds;
    /// The difference; integers wrap; of truth values, whether they differ.
    Subtract: "sub", Some("stablehlo.subtract"), 2, Cheap, Rounds;
    /// The product; integers wrap; of truth values, both.
    Multiply: "mul", Some("stablehlo.multiply"), 2, Cheap, Rounds;
    /// The quotient; of integers, truncated, all bits set where the divisor is zero.
    Divide: "div", Some("stablehlo.divide"), 2, Costly, Rounds;
    /// The remainder with the sign of the dividend; of integers by zero, the dividend.
    Remainder: "rem", Some("stablehlo.remainder"), 2, Costly, Rounds;
    /// The larger; NaN wins and zeros are ordered by sign.
    Maximum: "max", Some("stablehlo.maximum"), 2, Cheap, Exact;
    /// The smaller; NaN wins and zeros are ordered by sign.
    Minimum: "min", Some("stablehlo.minimum"), 2, Cheap, Exact;
    /// The first to the power of the second; integers wrap.
    Power: "pow", Some("stablehlo.power"), 2, Approximate, Rounds;
    /// The angle of the point with the second as abscissa and the first as ordinate.
    Atan2: "atan2", Some("stablehlo.atan2"), 2, Approximate, Rounds;
    /// Bits, or truth values, set in both.
    And: "and", Some("stablehlo.and"), 2, Cheap, Rounds;
    /// Bits, or truth values, set in either.
    Or: "or", Some("stablehlo.or"), 2, Cheap, Rounds;
    /// Bits, or truth values, set in one.
    Xor: "xor", Some("stablehlo.xor"), 2, Cheap, Rounds;
    /// The first shifted to the left by the second; zero from the width on.
    ShiftLeft: "shl", Some("stablehlo.shift_left"), 2, Costly, Rounds;
    /// The first shifted to the right, zeros moving in.
    ShiftRightLogical: "shr", Some("stablehlo.shift_right_logical"), 2, Costly, Rounds;
    /// The first shifted to the right, copies of the top bit moving in.
    ShiftRightArithmetic: "sar", Some("stablehlo.shift_right_arithmetic"), 2, Costly, Rounds;
    /// The second where the first is true, else the third.
    Select: "select", Some("stablehlo.select"), 3, Cheap, Exact;
    /// The value as another type: floats are truncated and saturate, integers wrap, NaN gives zero.
    Convert: "convert", Some("stablehlo.convert"), 1, Cheap, Rounds;
}

impl Function {
    /// A short name: what the GPU's function is called after `wf_`.
    #[must_use]
    pub fn mnemonic(self) -> &'static str {
        self.row().0
    }

    /// Its name for people: the operation's without the dialect, or the mnemonic.
    #[must_use]
    pub fn name(self) -> &'static str {
        let op = self.op_name().and_then(|name| name.rsplit('.').next());
        op.unwrap_or_else(|| self.mnemonic())
    }

    /// The StableHLO or CHLO operation that it is; none for what fusion makes of several.
    #[must_use]
    pub fn op_name(self) -> Option<&'static str> {
        self.row().1
    }

    /// The function of an operation, by the operation's name.
    #[must_use]
    pub fn of_op(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|function| function.op_name() == Some(name))
    }

    /// How many operands it takes.
    #[must_use]
    pub fn arity(self) -> usize {
        self.row().2
    }

    /// Whether computing it again costs no more than reading its result.
    #[must_use]
    pub fn is_cheap(self) -> bool {
        self.row().3 == Cost::Cheap
    }

    /// Whether it is computed by approximation, so that two implementations may differ in the last places.
    #[must_use]
    pub fn is_approximate(self) -> bool {
        self.row().3 == Cost::Approximate
    }

    /// Whether its result on values that a narrow float holds is one that the float holds.
    #[must_use]
    pub fn is_exact(self) -> bool {
        self.row().4 == Rounding::Exact
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_lead_back() {
        let mnemonics: HashSet<&str> = Function::ALL.iter().map(|function| function.mnemonic()).collect();
        assert_eq!(mnemonics.len(), Function::ALL.len());
        for &function in Function::ALL {
            assert!((1..=3).contains(&function.arity()));
            if let Some(name) = function.op_name() {
                assert_eq!(Function::of_op(name), Some(function));
            }
        }
        assert_eq!(Function::of_op("stablehlo.dot_general"), None);
    }
}
