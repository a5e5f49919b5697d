//! The targets that read and run StableHLO modules.

use warpforge_diag::{Diagnostic, Severity, Source};
use warpforge_interp::{Interpreter, Limits, Value};
use warpforge_ir::{Blob, Func, Module, Type, print, verify};
use warpforge_snakeburger::bytecode::{self, Target};
use warpforge_snakeburger::text;
use warpforge_tensor::{Shape, Tensor};

/// Text: read, verify, print. A sound module reads back as what was printed, and so does its bytecode.
pub fn text(data: &[u8]) {
    let Ok(whole) = std::str::from_utf8(data) else { return };
    for chunk in text::chunks(whole) {
        if let Ok(module) = parse(chunk.text) {
            reads_back(&module);
        }
    }
}

/// Bytecode: read, verify, print. A sound module reads back as what was printed, and so does its bytecode.
pub fn bytecode(data: &[u8]) {
    let data = Blob::from(data.to_vec());
    if let Ok(module) = bytecode::read(&data, &text::Options { keep_locations: true }) {
        print::print(&module);
    }
    if let Ok(module) = bytecode::read(&data, &text::Options::default()) {
        reads_back(&module);
    }
}

/// The evaluator: every function of a sound module is run on zeros, within narrow limits.
pub fn evaluator(data: &[u8]) {
    let Ok(whole) = std::str::from_utf8(data) else { return };
    let Ok(module) = parse(whole) else { return };
    if !is_sound(&module) {
        return;
    }
    let limits = Limits {
        tensor_elements: 1 << 12,
        memory_bytes: 1 << 24,
        steps: 1 << 14,
        depth: 32,
        processes: 4,
        inlined_ops: 1 << 14,
    };
    for func in module.functions() {
        let Some(inputs) = zeros(func) else { continue };
        let options = warpforge_interp::Options { limits, threads: Some(1), ..Default::default() };
        // What a program computes is not judged here, only that it ends.
        let _ = Interpreter::new(&module, options).run(func.name(), inputs);
    }
}

fn parse(text: &str) -> Result<Module, String> {
    let options = text::Options { keep_locations: false };
    text::parse(&Source::new("fuzz", text), &options).map_err(|error| error.to_string())
}

fn is_sound(module: &Module) -> bool {
    !verify(module).iter().any(|found: &Diagnostic| found.severity == Severity::Error)
}

fn reads_back(module: &Module) {
    let sound = is_sound(module);
    let printed = print::print(module);
    print::print_as(module, print::Form::Generic);
    if !sound {
        return;
    }
    match parse(&printed) {
        Ok(again) => assert!(print::print(&again) == printed, "the second print differs from the first"),
        Err(error) => panic!("what was printed cannot be read: {error}"),
    }
    if let Some(once) = through_bytecode(module) {
        // VHLO has no place for the type of a channel, and makes tensors of arrays in attributes that it does not know.
        let lossy = printed.contains("channel_handle") || printed.contains("array<");
        assert!(lossy || print::print(&once) == printed, "bytecode changed the module");
        let twice = through_bytecode(&once).expect("what was read is written again");
        assert!(print::print(&once) == print::print(&twice), "bytecode changes the module each time");
    }
}

fn through_bytecode(module: &Module) -> Option<Module> {
    let written = bytecode::write(module, Target::Compatible).ok()?;
    match bytecode::read(&Blob::from(written), &text::Options::default()) {
        Ok(again) => Some(again),
        Err(error) => panic!("what was written cannot be read: {error}"),
    }
}

/// Zeros for all arguments of a function, when they are small tensors or tokens.
fn zeros(func: Func<'_>) -> Option<Vec<Value>> {
    let types = &func.signature()?.inputs;
    types
        .iter()
        .map(|ty| match ty {
            Type::Tensor(tensor) => {
                let dims = tensor.shape_usize()?;
                let small = dims.iter().try_fold(1usize, |count, dim| count.checked_mul(*dim))? <= 1 << 12;
                let shape = Shape::new(dims).ok().filter(|_| small)?;
                Tensor::zeros(tensor.element().storage()?, shape).ok().map(Value::Tensor)
            }
            Type::Token => Some(Value::Token),
            _ => None,
        })
        .collect()
}
