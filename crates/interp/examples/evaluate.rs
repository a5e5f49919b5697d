//! Evaluates scalar functions for `accuracy/check.py`: reads `name arguments…`, writes the results, all as hex bits.

use std::io::{BufRead, Write};

use warpforge_interp::math::{complex, real, special};
use warpforge_tensor::FloatFormat;

fn evaluate(name: &str, x: &[f64]) -> Option<Vec<f64>> {
    let complex = |f: fn(complex::Complex) -> complex::Complex| {
        let (re, im) = f((x[0], x[1]));
        Some(vec![re, im])
    };
    let real = |value: f64| Some(vec![value]);
    match name {
        "cexp" => complex(complex::exp),
        "cexpm1" => complex(complex::exp_m1),
        "clog" => complex(complex::ln),
        "clog1p" => complex(complex::ln_1p),
        "csqrt" => complex(complex::sqrt),
        "crsqrt" => complex(complex::rsqrt),
        "ccbrt" => complex(complex::cbrt),
        "csin" => complex(complex::sin),
        "ccos" => complex(complex::cos),
        "ctan" => complex(complex::tan),
        "csinh" => complex(complex::sinh),
        "ccosh" => complex(complex::cosh),
        "ctanh" => complex(complex::tanh),
        "casin" => complex(complex::asin),
        "cacos" => complex(complex::acos),
        "catan" => complex(complex::atan),
        "casinh" => complex(complex::asinh),
        "cacosh" => complex(complex::acosh),
        "catanh" => complex(complex::atanh),
        "csign" => complex(complex::sign),
        "clogistic" => complex(complex::logistic),
        "cpow" => {
            let (re, im) = complex::pow((x[0], x[1]), (x[2], x[3]));
            Some(vec![re, im])
        }
        "cdiv" => {
            let (re, im) = complex::div((x[0], x[1]), (x[2], x[3]));
            Some(vec![re, im])
        }
        "cabs" => real(complex::abs((x[0], x[1]))),
        "exp" => real(real::exp(x[0])),
        "expm1" => real(real::expm1(x[0])),
        "log" => real(real::log(x[0])),
        "log1p" => real(real::log1p(x[0])),
        "rsqrt" => real(real::rsqrt(x[0])),
        "cbrt" => real(real::cbrt(x[0])),
        "sin" => real(real::sin(x[0])),
        "cos" => real(real::cos(x[0])),
        "tan" => real(real::tan(x[0])),
        "sinh" => real(real::sinh(x[0])),
        "cosh" => real(real::cosh(x[0])),
        "tanh" => real(real::tanh(x[0])),
        "asin" => real(real::asin(x[0])),
        "acos" => real(real::acos(x[0])),
        "atan" => real(real::atan(x[0])),
        "asinh" => real(real::asinh(x[0])),
        "acosh" => real(real::acosh(x[0])),
        "atanh" => real(real::atanh(x[0])),
        "logistic" => real(real::logistic(x[0])),
        "atan2" => real(real::atan2(x[0], x[1])),
        "pow" => real(real::pow(x[0], x[1])),
        "erf" => real(special::erf(x[0])),
        "erfc" => real(special::erfc(x[0])),
        "erf_inv" => real(special::erf_inv(x[0])),
        "lgamma" => real(special::lgamma(x[0])),
        "digamma" => real(special::digamma(x[0])),
        "polygamma" => real(special::polygamma(x[0], x[1])),
        "zeta" => real(special::zeta(x[0], x[1])),
        "bessel_i0e" => real(special::bessel_i0e(x[0])),
        "bessel_i1e" => real(special::bessel_i1e(x[0])),
        "next_after" => real(special::next_after(&FloatFormat::F64, x[0], x[1])),
        _ => None,
    }
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let arguments: Option<Vec<f64>> =
            words.map(|word| u64::from_str_radix(word, 16).ok().map(f64::from_bits)).collect();
        match arguments.filter(|found| !found.is_empty()).and_then(|x| evaluate(name, &x)) {
            Some(results) => {
                let text: Vec<String> = results.iter().map(|r| format!("{:016x}", r.to_bits())).collect();
                writeln!(out, "{}", text.join(" "))?;
            }
            None => writeln!(out, "cannot evaluate: {line}")?,
        }
    }
    Ok(())
}
