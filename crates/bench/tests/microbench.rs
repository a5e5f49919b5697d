//! `warpt microbench` without a terminal: small files run as a whole.

use warpforge_bench::microbench::config::{MODELS, read};
use warpforge_bench::microbench::run::{Row, recommended, rows};
use warpforge_bench::microbench::{csv, record};

fn measured(text: &str) -> Vec<Row> {
    rows(&read(text).unwrap(), &mut |_| {})
}

fn file(recipes: &str, shape: &str, dtype: &str, model_type: &str) -> String {
    format!(
        "quantization_config_recipe_names: [{recipes}]\nrepeat_n: 3\nmodel_params:\n  matrix_shapes:\n    - shapes: [{shape}]\n  \
         high_precision_dtype: torch.{dtype}\n  device: cpu\n  model_type: {model_type}\n"
    )
}

const RECIPES: &str = "int8wo, int8dq, int4wo-32, int4wo-32-hqq, float8wo, float8dq-tensor, float8dq-row";

#[test]
fn every_recipe_has_a_row_with_the_accuracy_of_its_bits() {
    for (shape, dtype) in
        [("[1, 64, 96]", "bfloat16"), ("[20, 96, 50]", "float32"), ("[5, 32, 33]", "float16")]
    {
        let rows = measured(&file(RECIPES, shape, dtype, "linear"));
        assert_eq!(rows.len(), 8);
        for row in &rows {
            let least = match row.quantization.as_str() {
                "baseline" => 40.0,
                "int8wo" => 30.0,
                "int8dq" => 25.0,
                "float8wo" => 25.0,
                "float8dq-tensor" | "float8dq-row" => 22.0,
                _ => 10.0,
            };
            let db = row.sqnr_db.unwrap();
            assert!(db > least, "{} {shape} {dtype}: {db} dB", row.quantization);
            let emulated = row.quantization.starts_with("float8dq");
            assert_eq!(row.time().is_none(), emulated, "{row:?}");
            assert_eq!(row.verdict == "SKIPPED", emulated && row.reason.is_some());
        }
        let bytes = |at: usize| rows[at].weight_bytes.unwrap();
        assert!(bytes(3) < bytes(1) && bytes(1) < bytes(0));
        let chosen = recommended(&rows, 20.0);
        assert!(chosen.len() == 1 && chosen[0].sqnr_db > Some(20.0));
    }
}

#[test]
fn every_model_runs_quantized() {
    for model_type in MODELS {
        for dtype in ["bfloat16", "float32"] {
            let rows = measured(&file("int8wo, int8dq, int4wo-32", "[3, 64, 40]", dtype, model_type));
            for row in &rows {
                assert!(row.time().is_some() && row.sqnr_db > Some(8.0), "{row:?}");
            }
            assert!(rows[0].sqnr_db > rows[3].sqnr_db, "{model_type}: {rows:?}");
        }
    }
}

#[test]
fn what_cannot_run_is_a_row_with_its_reason() {
    let reason = |text: &str, at: usize| measured(text)[at].reason.clone().unwrap_or_default();
    assert!(reason(&file("int4wo-48", "[4, 32, 8]", "float32", "linear"), 1).contains("group size 48"));
    assert!(reason(&file("marlin", "[4, 32, 8]", "float32", "linear"), 1).contains("marlin"));
    let huge = file("int8wo", "[8, 16777216, 16777216]", "float32", "linear");
    assert!(reason(&huge, 0).contains("GB of memory"));
    let elsewhere = file("int8wo", "[4, 32, 8]", "float32", "linear").replace("device: cpu", "device: mps");
    assert!(reason(&elsewhere, 0).contains("mps"));
    let sparse = format!(
        "sparsity_config_recipe_names: [\"2:4\"]\n{}",
        file("int8wo", "[4, 32, 8]", "float32", "linear")
    );
    assert_eq!(measured(&sparse)[2].verdict, "SKIPPED");
}

#[test]
fn training_measures_forward_and_backward_by_themselves() {
    let text =
        format!("benchmark_mode: training\n{}", file("float8dq-row", "[32, 64, 48]", "float32", "linear"));
    let config = read(&text).unwrap();
    let rows = rows(&config, &mut |_| {});
    assert!(rows[0].times_ms.len() == 3 && rows[0].backward_ms.len() == 3 && rows[0].speedup() == Some(1.0));
    assert!(rows[1].verdict == "SKIPPED" && rows[1].reason.is_some());
    let table = csv::text(&config, &rows);
    let mut lines = table.lines();
    let columns = lines.next().unwrap().split(',').count();
    assert_eq!(columns, 28 + 12);
    assert!(lines.next().unwrap().split(',').count() == columns);
}

#[test]
fn the_table_and_the_record_hold_every_row() {
    let config = read(&file("int8wo, uintx-4-64", "[4, 32, 8]", "float32", "linear")).unwrap();
    let rows = rows(&config, &mut |_| {});
    let table = csv::text(&config, &rows);
    assert_eq!(table.lines().count(), 4);
    assert!(table.starts_with(
        "name,quantization,sparsity,m,k,n,high_precision_dtype,use_torch_compile,torch_compile_mode,device,"
    ));
    assert!(table.lines().skip(1).all(|line| line.split(',').count() == 21 + 12));
    let now = jiff::Timestamp::now();
    let run = record::suite_run(&rows, now, now);
    assert_eq!((run.benchmarks[0].metrics.len(), run.benchmarks[0].warnings.len()), (2, 1));
}

/// What fuzzing started from is read, or refused with a line.
#[test]
fn seeds_of_fuzzing_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/microbench");
    let mut read_well = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        match read(&text) {
            Ok(config) => {
                read_well += 1;
                assert!(!config.models[0].shapes.is_empty());
            }
            Err(error) => assert!(error.line > 0),
        }
    }
    assert_eq!(read_well, 1);
}
