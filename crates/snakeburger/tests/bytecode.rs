//! Bytecode: what jaxlib writes is read as the same text, what is written is read again, and nonsense is refused.

use std::path::{Path, PathBuf};

use warpforge_diag::{Severity, Source};
use warpforge_ir::attr::ElementData;
use warpforge_ir::{Blob, DenseElements, Module, OpKind, print, verify};
use warpforge_snakeburger::bytecode::{self, ErrorKind, Target, Version, WriteError};
use warpforge_snakeburger::text::{self, Options};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(data(name)).unwrap()
}

/// A text of the folder, without the comment before it.
fn expected(name: &str) -> String {
    let text = std::fs::read_to_string(data(name)).unwrap();
    text[text.find("module ").unwrap()..].to_owned()
}

fn parse(text: &str) -> Module {
    text::parse(&Source::new("m", text), &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn read(bytes: Vec<u8>) -> Result<Module, bytecode::Error> {
    bytecode::read(&Blob::from(bytes), &Options::default())
}

fn is_sound(module: &Module) -> bool {
    verify(module).iter().all(|found| found.severity != Severity::Error)
}

#[test]
fn what_jaxlib_writes_is_read_as_what_it_prints() {
    for (artifact, text) in [
        ("everything_1_17.mlir.bc", "everything.mlir"),
        ("everything_native.mlir.bc", "everything.mlir"),
        ("mixed_1_17.mlir.bc", "mixed.mlir"),
        ("mixed_native.mlir.bc", "mixed.mlir"),
        ("old_0_9.mlir.bc", "old.mlir"),
        ("old_0_13.mlir.bc", "old.mlir"),
        ("old_1_0.mlir.bc", "old.mlir"),
    ] {
        let module = read(bytes(artifact)).unwrap_or_else(|error| panic!("{artifact}: {error}"));
        assert!(is_sound(&module), "{artifact}");
        assert_eq!(print::print(&module), expected(text), "{artifact}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    for name in ["everything.mlir", "old.mlir"] {
        let text = expected(name);
        let module = parse(&text);
        for target in
            [Target::Compatible, Target::Version(Version::CURRENT), Target::Version(Version::new(1, 13))]
        {
            let written = bytecode::write(&module, target).unwrap();
            let again = read(written).unwrap_or_else(|error| panic!("{name}, {target:?}: {error}"));
            assert_eq!(print::print(&again), text, "{name}, {target:?}");
        }
    }
}

#[test]
fn aliases_of_arguments_are_kept() {
    let text = "module {
  func.func @main(%arg0: tensor<2xf32> {jax.buffer_donor = true}, %arg1: tensor<2xf32> {tf.aliasing_output = 1 : i32}) \
                -> (tensor<2xf32>, tensor<2xf32>) {
    return %arg0, %arg1 : tensor<2xf32>, tensor<2xf32>
  }\n}\n";
    let module = parse(text);
    assert_eq!(print::print(&module), text);
    let generic = print::print_as(&module, print::Form::Generic);
    assert_eq!(print::print(&parse(&generic)), text);
    let written = bytecode::write(&module, Target::Compatible).unwrap();
    assert_eq!(print::print(&read(written).unwrap()), text);
    let legal = warpforge_ir::legalize::legalize(module).unwrap();
    assert_eq!(print::print(&legal), text);
}

#[test]
fn an_artifact_is_of_the_oldest_version_that_has_what_it_uses() {
    let version = |text: &str| {
        let written = bytecode::write(&parse(text), Target::Compatible).unwrap();
        bytecode::version(&written).unwrap().unwrap()
    };
    let with = |op: &str, ty: &str| {
        format!("func.func @f(%a: {ty}) -> {ty} {{\n  %0 = {op} : {ty}\n  return %0 : {ty}\n}}\n")
    };
    assert_eq!(version(&with("stablehlo.exponential %a", "tensor<2xf32>")), Version::OLDEST_WRITTEN);
    assert_eq!(version(&with("stablehlo.tan %a", "tensor<2xf32>")), Version::new(1, 4));
    assert_eq!(version(&with("stablehlo.negate %a", "tensor<2xf8E3M4>")), Version::new(1, 7));
    let accurate = "stablehlo.sine %a {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>}";
    assert_eq!(version(&with(accurate, "tensor<2xf32>")), Version::new(1, 10));
    let call = "func.func @f(%a: tensor<f32>) -> tensor<f32> {\n  %0 = stablehlo.custom_call @c(%a) {result_tilings = [[dense<2> : tensor<1xindex>]]} : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n";
    assert_eq!(version(call), Version::new(1, 18));
    let module = parse(&with("stablehlo.tan %a", "tensor<2xf32>"));
    let error = bytecode::write(&module, Target::Version(Version::new(1, 3))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "StableHLO 1.3.0 does not have `stablehlo.tan` in this form: version 1.4.0 does"
    );
    let future = bytecode::write(&module, Target::Version(Version::new(1, 21)));
    assert_eq!(future.unwrap_err(), WriteError::UnknownVersion(Version::new(1, 21)));
}

#[test]
fn what_artifacts_have_no_place_for_is_listed() {
    let error = bytecode::write(&parse(&expected("mixed.mlir")), Target::Compatible).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a portable artifact has no place for the operation `chlo.broadcast_compare`; the operation `chlo.erf`; \
         the operation `chlo.top_k`"
    );
}

#[test]
fn an_artifact_of_a_future_version_is_refused_by_name() {
    let artifact = bytes("everything_1_17.mlir.bc");
    let renamed = |version: &[u8; 6]| {
        let mut artifact = artifact.clone();
        let at = artifact.windows(6).position(|window| window == b"1.17.0").unwrap();
        artifact[at..at + 6].copy_from_slice(version);
        read(artifact)
    };
    let error = renamed(b"1.21.0").unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::FutureVersion(Version::new(1, 21)));
    assert!(
        error.to_string().starts_with("byte 5: the artifact is of StableHLO 1.21.0, a future version"),
        "{error}"
    );
    assert_eq!(renamed(b"0.08.0").unwrap_err().kind(), &ErrorKind::TooOld(Version::new(0, 8)));
    assert!(renamed(b"1.20.9").is_ok(), "a patch is no new version");
    assert!(renamed(b"1.x7.0").unwrap_err().to_string().contains("is no version"));
    let mut future_container = artifact.clone();
    future_container[4] = 7 << 1 | 1;
    assert_eq!(read(future_container).unwrap_err().kind(), &ErrorKind::FutureFormat(7));
}

#[test]
fn constants_are_parts_of_the_file() {
    let values: Vec<String> = (0..2000).map(|i| format!("{i}.0")).collect();
    let text = format!(
        "func.func @f() -> tensor<2000xf32> {{\n  %0 = stablehlo.constant dense<[{}]> : tensor<2000xf32>\n  return %0 : tensor<2000xf32>\n}}\n",
        values.join(", ")
    );
    let file = Blob::from(bytecode::write(&parse(&text), Target::Compatible).unwrap());
    let module = bytecode::read(&file, &Options::default()).unwrap();
    let func = module.function("f").unwrap();
    let constant = module.ops_in(func.body().unwrap()).find(|op| op.is(OpKind::Constant)).unwrap();
    let Some(ElementData::Raw(data)) = constant.attr_elements("value").map(DenseElements::data) else {
        panic!("the constant is no splat");
    };
    let (file, data) = (file.as_ptr_range(), data.as_ptr_range());
    assert!(file.start <= data.start && data.end <= file.end, "the data has been copied");
}

#[test]
fn locations_stay_when_they_are_kept() {
    let text = "#loc = loc(\"model.py\":7:0)\nmodule {\n  func.func @f(%arg0: tensor<f32>) -> tensor<f32> {\n    %0 = stablehlo.negate %arg0 : tensor<f32> loc(#loc1)\n    %1 = stablehlo.abs %0 : tensor<f32> loc(callsite(\"abs\" at fused<{a = 1 : i64}>[\"x.py\":1:2, #loc]))\n    return %1 : tensor<f32>\n  }\n}\n#loc1 = loc(\"neg\"(#loc))\n";
    let options = Options { keep_locations: true };
    let module = text::parse(&Source::new("m", text), &options).unwrap();
    let written = Blob::from(bytecode::write(&module, Target::Compatible).unwrap());
    let again = bytecode::read(&written, &options).unwrap();
    let body = again.function("f").unwrap().body().unwrap();
    let locations: Vec<Option<&str>> = again.ops_in(body).map(|op| again.location(op.id())).collect();
    assert_eq!(
        locations,
        [
            Some("loc(\"neg\"(\"model.py\":7:0))"),
            Some("loc(callsite(\"abs\" at fused<{a = 1 : i64}>[\"x.py\":1:2, \"model.py\":7:0]))"),
            None
        ]
    );
    let dropped = bytecode::read(&written, &Options::default()).unwrap();
    let body = dropped.function("f").unwrap().body().unwrap();
    assert!(dropped.ops_in(body).all(|op| dropped.location(op.id()).is_none()));
}

/// Reads, and where that succeeds does what every command does next.
fn survive(bytes: Vec<u8>) -> Option<bytecode::Error> {
    let length = bytes.len();
    match bytecode::read(&Blob::from(bytes), &Options { keep_locations: true }) {
        Ok(module) => {
            verify(&module);
            print::print(&module);
            None
        }
        Err(error) => {
            assert!(error.offset() <= length, "{error}");
            Some(error)
        }
    }
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    for name in
        ["everything_1_17.mlir.bc", "everything_native.mlir.bc", "old_0_9.mlir.bc", "mixed_1_17.mlir.bc"]
    {
        let whole = bytes(name);
        for length in 0..whole.len() {
            assert!(survive(whole[..length].to_vec()).is_some(), "{name} cut to {length} bytes was read");
        }
    }
}

#[test]
fn any_byte_may_be_wrong() {
    for name in ["old_0_9.mlir.bc", "old_1_0.mlir.bc", "mixed_1_17.mlir.bc", "mixed_native.mlir.bc"] {
        let whole = bytes(name);
        let mut refused = 0;
        for at in 0..whole.len() {
            for flip in [0x01, 0x02, 0x80, 0xFF] {
                let mut bad = whole.clone();
                bad[at] ^= flip;
                refused += usize::from(survive(bad).is_some());
            }
        }
        assert!(refused > whole.len(), "{name}: only {refused} of {} were refused", 4 * whole.len());
    }
}

#[test]
fn the_public_artifacts_are_read_and_are_sound() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance/bytecode");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: {} is not there", folder.display());
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let module =
            read(std::fs::read(&path).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(is_sound(&module), "{}", path.display());
        let text = print::print(&module);
        assert_eq!(print::print(&parse(&text)), text, "{}", path.display());
        let written = bytecode::write(&module, Target::Version(Version::CURRENT)).unwrap();
        assert_eq!(print::print(&read(written).unwrap()), text, "{}", path.display());
    }
}
