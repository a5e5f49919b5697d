//! Kernels compiled for the host and run there, one thread at a time.

use std::fmt::Write as _;
use std::process::Command;

use warpforge_codegen::{Argument, Emitted, Kernel, Options, TensorMap, prelude};
use warpforge_fusion::NodeId;
use warpforge_fusion::Op;
use warpforge_tensor::{Shape, Tensor};

use crate::case::{Case, close};
use crate::tool::{Tool, is_current};

/// Guard bytes after each value.
const GUARD: usize = 256;

/// The results of a run.
pub(crate) struct Ran {
    pub(crate) outputs: Vec<Tensor>,
    /// Instrumentation records, by kernel.
    pub(crate) salt: Vec<Vec<u8>>,
}

/// Runs a program's kernels on the host and compares with the reference.
pub(crate) fn check(text: &str, options: &Options, tolerance: f64) {
    if !is_current(Tool::Host) {
        return;
    }
    check_case(&Case::new(text), options, tolerance);
}

/// The same of a program that is planned already.
pub(crate) fn check_case(case: &Case, options: &Options, tolerance: f64) {
    if !is_current(Tool::Host) {
        return;
    }
    let inputs = case.inputs();
    let expected = case.expected(&inputs);
    let Some(ran) = run(case, &inputs, options) else { return };
    assert_eq!(ran.outputs.len(), expected.len());
    for (at, (ours, theirs)) in ran.outputs.iter().zip(&expected).enumerate() {
        if let Err(difference) = close(ours, theirs, tolerance) {
            panic!("output {at}: {difference}\n{}", sources(&case.emitted(options)));
        }
    }
}

fn sources(emitted: &[Emitted]) -> String {
    let kernels = emitted.iter().flat_map(|emitted| &emitted.kernels);
    kernels
        .map(|kernel| {
            format!("// {} {:?}x{:?}\n{}\n", kernel.title, kernel.grid, kernel.block, kernel.source)
        })
        .collect()
}

/// The C++ compiler of the host.
fn compiler() -> String {
    std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned())
}

/// Why kernels cannot be run on the host.
pub(crate) fn missing() -> Option<String> {
    let compiler = compiler();
    let works = Command::new(&compiler).arg("--version").output().is_ok_and(|output| output.status.success());
    (!works).then(|| format!("there is no C++ compiler {compiler}"))
}

/// Runs a program's kernels on the host, in the trial for it.
pub(crate) fn run(case: &Case, inputs: &[Tensor], options: &Options) -> Option<Ran> {
    if !is_current(Tool::Host) {
        return None;
    }
    let compiler = compiler();
    let emitted = case.emitted(options);
    let folder = tempfile::tempdir().unwrap();
    let [source, program, given, wanted] =
        ["kernels.cpp", "kernels", "given.bin", "wanted.bin"].map(|name| folder.path().join(name));
    std::fs::write(&source, program_text(case, &emitted)).unwrap();
    let mut bytes = Vec::new();
    for id in case.graph.ids() {
        match &case.graph.node(id).op {
            Op::Argument(at) => bytes.extend_from_slice(inputs[*at].bytes()),
            Op::Constant(tensor) => bytes.extend_from_slice(tensor.bytes()),
            _ => {}
        }
    }
    std::fs::write(&given, bytes).unwrap();
    let output = Command::new(&compiler)
        .args(["-std=c++17", "-O1", "-fno-strict-aliasing", "-ffp-contract=off", "-w", "-o"])
        .arg(&program)
        .arg(&source)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", sources(&emitted));
    let output = Command::new(&program).arg(&given).arg(&wanted).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?} {said}\n{}", output.status, sources(&emitted));
    let bytes = std::fs::read(&wanted).unwrap();
    let mut rest = bytes.as_slice();
    let outputs = case.clusters.outputs.iter().map(|operand| {
        let node = case.graph.node(operand.value);
        let (own, others) = rest.split_at(node.bytes());
        rest = others;
        Tensor::from_bytes(node.element, Shape::new(operand.view.dims.clone()).unwrap(), own).unwrap()
    });
    let outputs = outputs.collect();
    let mut salt = Vec::new();
    for kernel in emitted.iter().flat_map(|emitted| &emitted.kernels) {
        let (own, others) = rest.split_at(kernel.salt_bytes as usize);
        rest = others;
        salt.push(own.to_vec());
    }
    Some(Ran { outputs, salt })
}

fn program_text(case: &Case, emitted: &[Emitted]) -> String {
    let graph = &case.graph;
    let mut text = format!("{}{}{}", include_str!("host.h"), prelude::common(), prelude::fragments());
    let mut known = std::collections::HashSet::new();
    for kernel in emitted.iter().flat_map(|emitted| &emitted.kernels) {
        if known.insert(&kernel.name) {
            text.push_str(&kernel.source);
        }
    }
    for id in graph.ids() {
        let _ = writeln!(text, "static unsigned char* v{};", id.0);
    }
    let scratches = emitted.iter().flat_map(|emitted| &emitted.scratch).count();
    let kernels = emitted.iter().map(|emitted| emitted.kernels.len()).sum::<usize>();
    let _ = writeln!(text, "static unsigned char *scratch[{}], *salt[{}];", scratches + 1, kernels + 1);
    text.push_str("static unsigned char* room(size_t bytes) {\n");
    text.push_str("  unsigned char* made = (unsigned char*)aligned_alloc(256, (bytes + 511) / 256 * 256);\n");
    let _ = writeln!(text, "  memset(made, 0xfb, bytes + {GUARD});\n  return made;\n}}");
    text.push_str("static void intact(unsigned char* value, size_t bytes, int id) {\n");
    let _ = writeln!(text, "  for (int at = 0; at < {GUARD}; ++at)");
    text.push_str(
        "    if (value[bytes + at] != 0xfb) { fprintf(stderr, \"written after %d\\n\", id); exit(8); }\n}\n",
    );
    text.push_str("int main(int, char** arguments) {\n  FILE* file = fopen(arguments[1], \"rb\");\n");
    for id in graph.ids() {
        let (node, bytes) = (graph.node(id), graph.node(id).bytes());
        let _ = writeln!(text, "  v{} = room({bytes});", id.0);
        if matches!(node.op, Op::Argument(_) | Op::Constant(_)) {
            let _ = writeln!(text, "  if (fread(v{}, 1, {bytes}, file) != {bytes}) return 7;", id.0);
        }
    }
    let mut scratch = 0;
    let mut number = 0;
    for emitted in emitted {
        for (at, bytes) in emitted.scratch.iter().enumerate() {
            let _ = writeln!(text, "  scratch[{}] = room({bytes});", scratch + at);
        }
        for kernel in &emitted.kernels {
            let _ =
                writeln!(text, "  salt[{number}] = (unsigned char*)calloc({} + 8, 1);", kernel.salt_bytes);
            launch(&mut text, kernel, scratch, number);
            number += 1;
        }
        scratch += emitted.scratch.len();
    }
    for id in graph.ids() {
        let _ = writeln!(text, "  intact(v{0}, {1}, {0});", id.0, graph.node(id).bytes());
    }
    text.push_str("  file = fopen(arguments[2], \"wb\");\n");
    for output in &case.clusters.outputs {
        let NodeId(id) = output.value;
        let _ = writeln!(text, "  fwrite(v{id}, 1, {}, file);", graph.node(output.value).bytes());
    }
    let all = emitted.iter().flat_map(|emitted| &emitted.kernels);
    for (number, kernel) in all.enumerate() {
        let _ = writeln!(text, "  fwrite(salt[{number}], 1, {}, file);", kernel.salt_bytes);
    }
    text.push_str("  return fclose(file);\n}\n");
    text
}

fn launch(text: &mut String, kernel: &Kernel, scratch: usize, number: usize) {
    let arguments: Vec<String> = kernel
        .arguments
        .iter()
        .map(|argument| match argument {
            Argument::Value(id) | Argument::Output(id) => format!("wf_any{{v{}}}", id.0),
            Argument::TensorMap(TensorMap { value, offset, dims: [x, y, z], strides: [line, batch], lines }) => {
                format!(
                    "wf_tensor_map{{v{} + {offset}, {{{x}, {y}, {z}}}, {{{line}, {batch}}}, {{64, {lines}}}}}",
                    value.0
                )
            }
            Argument::Scratch(at) => format!("wf_any{{scratch[{}]}}", scratch + at),
            Argument::Salt => format!("wf_any{{salt[{number}]}}"),
        })
        .collect();
    let _ = writeln!(
        text,
        "  wf_launch({}, {}, {}, [] {{ {}({}); }});",
        kernel.grid[0],
        kernel.block[0],
        kernel.shared_bytes,
        kernel.name,
        arguments.join(", ")
    );
}
