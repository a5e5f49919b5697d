//! Archives that are not as they must be: each is refused with what is wrong and where, and nothing panics.

mod members;
#[path = "../common/zip.rs"]
mod zip;

use members::{Members, untouched};
use warpforge_ir::print::print;
use warpforge_snakegrinder::{Archive, Error, ImportOptions};
use warpforge_tensor::{Blob, ElementType};

const GRAPH: &str = "linear/models/model.json";
const WEIGHTS: &str = "linear/data/weights/model_weights_config.json";

fn import(file: Vec<u8>) -> Result<warpforge_snakegrinder::Imported, Error> {
    Archive::from_blob(Blob::from(file))?.import(&ImportOptions::default())
}

/// Refuses the file, and its message has all of these.
#[track_caller]
fn refused(file: Vec<u8>, expected: &[&str]) {
    let message = import(file).map(|_| ()).expect_err("this is no sound archive").to_string();
    for expected in expected {
        assert!(message.contains(expected), "no {expected:?} in: {message}");
    }
}

/// Replaces bytes wherever they are in the file.
fn patched(mut file: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> =
        (0..=file.len() - from.len()).filter(|&at| file[at..].starts_with(from)).collect();
    assert!(!places.is_empty());
    for at in places {
        file[at..at + to.len()].copy_from_slice(to);
    }
    file
}

/// Where the directory of a file begins.
fn directory(file: &[u8]) -> usize {
    let at = file.len() - 6;
    u32::from_le_bytes([file[at], file[at + 1], file[at + 2], file[at + 3]]) as usize
}

#[test]
fn what_pytorch_wrote_is_read_however_it_is_stored() {
    for file in [
        untouched(),
        Members::linear().zipped(),
        Members::linear().renamed(|n| n.replacen("linear", "m", 1)).zipped(),
    ] {
        let imported = import(file).unwrap();
        let weight = &imported.weights["layer.weight"];
        assert_eq!((weight.element_type(), weight.dims()), (ElementType::F32, &[2, 3][..]));
        let values: Vec<u8> =
            [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].into_iter().flat_map(f32::to_le_bytes).collect();
        assert_eq!(weight.bytes(), values);
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let whole = untouched();
    for length in 0..whole.len() {
        refused(whole[..length].to_vec(), &["not a sound zip archive", "at byte"]);
    }
}

#[test]
fn a_changed_byte_is_a_refusal_or_a_weight() {
    let whole = untouched();
    let module = print(&import(whole.clone()).unwrap().module);
    let mut refusals = 0;
    for at in 0..whole.len() {
        let mut file = whole.clone();
        file[at] ^= 0x41;
        // Weights are not read here, and some bytes of a zip say nothing about the model; what is imported
        // nevertheless is the same model.
        match import(file) {
            Err(_) => refusals += 1,
            Ok(imported) => assert_eq!(print(&imported.module), module, "with byte {at} changed"),
        }
    }
    assert!(2 * refusals > whole.len(), "only {refusals} of {} changed bytes are refused", whole.len());
    refused(
        patched(whole, b"torch.ops.aten.relu", b"torch.ops.aten.sinh"),
        &[GRAPH, "checksum", "bytes were changed"],
    );
}

#[test]
fn compressed_members_are_refused_by_name() {
    let mut file = Members::linear().zipped();
    let directory = directory(&file);
    file[directory + 10] = 8;
    refused(file, &["linear/data/weights/weight_0", "compressed (method 8)", "torch.export.save"]);
}

#[test]
fn an_archive_packed_again_without_its_folder_is_refused() {
    let flat = |name: &str| name.split_once('/').unwrap().1.replace('/', "_");
    refused(Members::linear().renamed(flat).zipped(), &["no folder with an exported program"]);
    let stray = Members::linear().with("other/readme", b"text").zipped();
    refused(stray, &["other/readme", "outside the archive's folder `linear/`"]);
    let not_ours = Members(vec![("a/b".to_owned(), vec![1])]).zipped();
    refused(not_ours, &["archive_format", "not written by `torch.export.save`"]);
}

#[test]
fn entries_outside_their_size_are_refused() {
    let bigger = Members::linear().replaced(WEIGHTS, "\"as_int\": 3", "\"as_int\": 30000");
    refused(bigger.zipped(), &["layer.weight", "reach", "the entry holds 6"]);
    let endless = Members::linear().replaced(WEIGHTS, "\"as_int\": 3", "\"as_int\": 9223372036854775807");
    refused(endless.zipped(), &["layer.weight"]);
    let negative = Members::linear().replaced(WEIGHTS, "\"as_int\": 3", "\"as_int\": -3");
    refused(negative.zipped(), &["layer.weight", "-3"]);
    // The directory says that the first member is larger than the file.
    let mut file = Members::linear().zipped();
    let directory = directory(&file);
    file[directory + 20..directory + 28].copy_from_slice(&[0, 0, 0, 64, 0, 0, 0, 64]);
    refused(file, &["linear/data/weights/weight_0", "1073741824 bytes", "reach beyond"]);
}

#[test]
fn a_bomb_takes_no_memory() {
    // Two entries of the directory that share their bytes: how a small file pretends to be a large one.
    let mut file = Members::linear().zipped();
    let first = directory(&file);
    file[first + 20..first + 28].copy_from_slice(&[200, 0, 0, 0, 200, 0, 0, 0]);
    refused(file, &["two members share bytes"]);
    let mut file = Members::linear().zipped();
    let second = first + 46 + "linear/data/weights/weight_0".len();
    file[second + 42..second + 46].copy_from_slice(&[0; 4]);
    refused(file, &["local header contradicts the directory"]);
    let twice = Members::linear().with("linear/archive_format", b"pt2");
    refused(twice.zipped(), &["linear/archive_format", "twice"]);
    // An end record that counts more entries than the file could hold.
    let mut file = Members::linear().zipped();
    let end = file.len() - 22;
    file[end + 8..end + 12].copy_from_slice(&[0xfe, 0xff, 0xfe, 0xff]);
    refused(file, &["counts more entries than the directory has room for"]);
    // JSON that nests without end.
    let deep = format!("{{\"schema_version\": {}", "[".repeat(1 << 20));
    let mut members = Members::linear();
    members.0.iter_mut().find(|(name, _)| name == GRAPH).unwrap().1 = deep.into_bytes();
    refused(members.zipped(), &[GRAPH, "line 1"]);
}

#[test]
fn tricks_in_names_are_refused() {
    for name in [
        "../escape",
        "/etc/passwd",
        "linear/../../escape",
        "linear//x",
        "linear/a\\b",
        "C:/x",
        "linear/./x",
        "linear/\u{0}",
    ] {
        let shown = name.escape_default().to_string();
        refused(Members::linear().with(name, b"x").zipped(), &[&shown, "not a plain relative path"]);
    }
}

#[test]
fn wrong_types_are_refused() {
    let code = "\"dtype\": 7";
    let wider = Members::linear().replaced(WEIGHTS, code, "\"dtype\": 8");
    refused(wider.zipped(), &["layer.weight"]);
    let unknown = Members::linear().replaced(WEIGHTS, code, "\"dtype\": 99");
    refused(unknown.zipped(), &["layer.weight", "99"]);
    let integers = Members::linear().replaced(WEIGHTS, code, "\"dtype\": 4");
    refused(integers.zipped(), &["layer.weight", "i32", "f32"]);
}

#[test]
fn missing_weights_are_named() {
    let bytes = Members::linear().without("linear/data/weights/weight_0");
    refused(bytes.zipped(), &["layer.weight", "bytes are missing", "data/weights/weight_0"]);
    let entry = Members::linear().replaced(WEIGHTS, "layer.weight", "layer.wait");
    refused(entry.zipped(), &["layer.weight"]);
    refused(Members::linear().without(WEIGHTS).zipped(), &["model_weights_config.json", "incomplete"]);
    refused(Members::linear().without(GRAPH).zipped(), &["models/model.json", "no exported program"]);
    let pickled = Members::linear().replaced(WEIGHTS, "\"use_pickle\": false", "\"use_pickle\": true");
    refused(pickled.zipped(), &["layer.weight", "pickle is never read"]);
}

#[test]
fn another_schema_is_refused_by_its_version() {
    let newer = Members::linear().replaced(GRAPH, "\"major\": 8", "\"major\": 9");
    refused(newer.zipped(), &["export schema 9.", "this program reads 8.x"]);
    let broken = Members::linear().replaced(GRAPH, "\"graph_module\"", "\"graph_modul\"");
    refused(broken.zipped(), &[GRAPH, "graph_module", "line", "column"]);
    let order = Members::linear().replaced("linear/byteorder", "little", "big");
    refused(order.zipped(), &["linear/byteorder", "byte order `big`"]);
    let archive = Members::linear().replaced("linear/archive_version", "0", "7");
    refused(archive.zipped(), &["archive version 7 is not supported"]);
}
