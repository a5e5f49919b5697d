//! Small modules run twice.

use fastrand::Rng;
use warpforge_diag::Source;
use warpforge_interp::{Interpreter, Options, Value};
use warpforge_ir::verify;
use warpforge_snakeburger::text;
use warpforge_tensor::{ElementType, Scalar, Shape, Tensor};

/// A function of some arguments and one result.
pub(crate) struct Case {
    text: String,
}

impl Case {
    /// `body` computes `%r` from `%a0`, `%a1`, …
    pub(crate) fn new(arguments: &[&str], result: &str, body: &str) -> Self {
        let arguments: Vec<String> =
            arguments.iter().enumerate().map(|(at, ty)| format!("%a{at}: {ty}")).collect();
        let text = format!(
            "func.func @main({}) -> {result} {{\n{body}\nfunc.return %r : {result}\n}}\n",
            arguments.join(", ")
        );
        Self { text }
    }

    /// Runs it both ways and compares; 0 when the module is not valid or the general path does not support it.
    pub(crate) fn compare(&self, inputs: &[Tensor]) -> usize {
        let source = Source::new("case.mlir", self.text.as_str());
        let module = match text::parse(&source, &text::Options::default()) {
            Ok(module) => module,
            Err(error) => panic!("{error}\n{}", self.text),
        };
        if !verify(&module).is_empty() {
            return 0;
        }
        let run = |general_only: bool| {
            let options = Options { general_only, threads: Some(2), ..Options::default() };
            let values = inputs.iter().cloned().map(Value::Tensor).collect();
            let results = Interpreter::new(&module, options).run("main", values)?;
            results[0].as_tensor().cloned()
        };
        match (run(false), run(true)) {
            (Ok(fast), Ok(general)) => {
                same(&fast, &general, &self.text);
                1
            }
            (Err(_), Err(_)) => 0,
            (fast, general) => panic!("{}\nfast: {fast:?}\ngeneral: {general:?}", self.text),
        }
    }
}

fn same(fast: &Tensor, general: &Tensor, text: &str) {
    assert_eq!((fast.shape(), fast.element_type()), (general.shape(), general.element_type()));
    let width = fast.element_type().byte_width();
    for position in 0..fast.len() {
        let (a, b) = (fast.get(position), general.get(position));
        let bytes = |tensor: &Tensor| tensor.bytes()[position * width..][..width].to_vec();
        let equal = bytes(fast) == bytes(general) || a.is_nan() && b.is_nan();
        assert!(equal, "{text}\nat {position}: fast {a}, general {b}");
    }
}

/// The text of a tensor type.
pub(crate) fn ty(element: ElementType, dims: &[usize]) -> String {
    let dims: String = dims.iter().map(|dim| format!("{dim}x")).collect();
    format!("tensor<{dims}{element}>")
}

/// Some dimension sizes.
pub(crate) fn dims(random: &mut Rng, rank: usize, size: usize) -> Vec<usize> {
    (0..random.usize(0..=rank)).map(|_| random.usize(1..=size)).collect()
}

/// Zero of a type.
pub(crate) fn zero(element: ElementType) -> Tensor {
    Tensor::zeros(element, Shape::scalar()).expect("small")
}

/// Any bits, with plain and special numbers among them.
pub(crate) fn random_tensor(random: &mut Rng, element: ElementType, dims: &[usize]) -> Tensor {
    let shape = Shape::new(dims).expect("small");
    let mut tensor = floats(random, element, dims);
    for position in 0..shape.num_elements() {
        let special = match random.u8(0..16) {
            0 => Scalar::Float(f64::NAN),
            1 => Scalar::Float(f64::INFINITY),
            2 => Scalar::Float(f64::NEG_INFINITY),
            3 => Scalar::Float(-0.0),
            4 => Scalar::Float(0.0),
            5 => Scalar::Int(i128::from(random.i64(..))),
            6 => Scalar::Float(f64::from_bits(random.u64(..))),
            7 => Scalar::Float(1e-40),
            _ => continue,
        };
        tensor.set(position, special);
    }
    tensor
}

/// Plain numbers of moderate size.
pub(crate) fn floats(random: &mut Rng, element: ElementType, dims: &[usize]) -> Tensor {
    let shape = Shape::new(dims).expect("small");
    let count = shape.num_elements();
    let number = |random: &mut Rng| random.f64() * 20.0 - 10.0;
    let values: Vec<Scalar> = (0..count)
        .map(|_| match element {
            ElementType::Complex(_) => Scalar::Complex(number(random), number(random)),
            ElementType::Bool => Scalar::Bool(random.bool()),
            _ => Scalar::Float(number(random)),
        })
        .collect();
    Tensor::from_scalars(element, shape, values).expect("fits")
}
