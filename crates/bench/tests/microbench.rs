//! `warpt microbench` without a terminal: small files run as a whole.

use warpforge_bench::microbench::config::{Config, Entry, MODELS, Mode, read};
use warpforge_bench::microbench::row::Row;
use warpforge_bench::microbench::run::{recommended, rows};
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

/// The cells of a line of CSV by column; JSON is quoted.
fn cells(table: &str, line: usize) -> Vec<(String, String)> {
    let split = |line: &str| {
        let (mut cells, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                c => cells.last_mut().unwrap().push(c),
            }
        }
        cells
    };
    let mut lines = table.lines();
    let heads = split(lines.next().unwrap());
    let cells = split(lines.nth(line).unwrap());
    assert_eq!(heads.len(), cells.len());
    heads.into_iter().zip(cells).collect()
}

fn cell(table: &str, line: usize, name: &str) -> String {
    cells(table, line).into_iter().find(|(head, _)| head == name).unwrap().1
}

#[test]
fn every_model_is_trained_and_float8_has_its_accuracy() {
    for model_type in MODELS {
        let file = file("float8dq-tensor, float8dq-row, int8wo", "[32, 64, 48]", "bfloat16", model_type);
        let config = read(&format!("benchmark_mode: training\n{file}")).unwrap();
        let rows = rows(&config, &mut |_| {});
        let baseline = &rows[0];
        assert!(baseline.times_ms.len() == 3 && baseline.backward_ms.len() == 3, "{baseline:?}");
        assert!(baseline.speedup() == Some(1.0) && baseline.sqnr_db > Some(25.0), "{baseline:?}");
        for row in &rows[1..3] {
            assert!(row.verdict == "SKIPPED" && row.total().is_none(), "{row:?}");
            assert!(row.reason.as_ref().unwrap().contains("accuracy by emulation"), "{row:?}");
            assert!(row.sqnr_db > Some(12.0) && row.sqnr_db < baseline.sqnr_db, "{row:?}");
        }
        assert!(rows[3].reason.as_ref().unwrap().contains("no backward pass"));
    }
}

#[test]
fn rows_of_training_have_the_columns_of_the_original_and_every_pass() {
    let file = file("float8dq-row", "[32, 64, 48]", "float32", "ln_linear_gelu");
    let file = format!("{file}  enable_profiler: true\n  enable_memory_profiler: true\n");
    let config = read(&format!("benchmark_mode: training\n{file}")).unwrap();
    let rows = rows(&config, &mut |_| {});
    let table = csv::text(&config, &rows);
    let heads: Vec<String> = cells(&table, 0).into_iter().map(|(head, _)| head).collect();
    let wanted = "model_inference_time_in_ms,profiler_json_path,memory_profile_path,memory_visualization_path,memory_stats,\
                  scaling_type_input,scaling_type_weight,scaling_type_grad_output,scaling_granularity,use_fast_accum,repeat_n,\
                  forward_time_ms,backward_time_ms,total_time_ms,reference_forward_time_ms,reference_backward_time_ms,\
                  reference_total_time_ms,speedup,scaling_repr,ci_low";
    assert_eq!(heads[14..34].join(","), wanted);
    assert_eq!(cell(&table, 0, "scaling_granularity"), "tensorwise");
    assert_eq!(cell(&table, 1, "scaling_granularity"), "rowwise");
    assert!(cell(&table, 0, "total_time_ms").parse::<f64>().unwrap() > 0.0);

    // One trace and one timeline of both passes: the gradient of the weights is as large as they are.
    let profile = rows[0].profile.as_ref().unwrap();
    assert!(profile.events.len() >= 3);
    let stats = rows[0].timeline.as_ref().unwrap().stats();
    assert!(stats["output_bytes"].as_u64().unwrap() >= 2 * 64 * 48 * 4, "{stats}");

    let now = jiff::Timestamp::now();
    let metrics = record::suite_run(&rows, now, now).benchmarks[0].metrics.clone();
    let value = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap().value;
    assert!(value("total") > value("forward") && value("total") > value("backward"));
    assert_eq!(recommended(&rows, 20.0)[0].quantization, "baseline");
}

#[test]
fn formats_without_kernels_have_their_accuracy() {
    for model_type in ["linear", "ln_linear_silu", "transformer_block"] {
        let file =
            file("mxfp8, nvfp4, uintx-2-32, uintx-7-32, int4wo-32", "[4, 64, 48]", "bfloat16", model_type);
        let rows = measured(&file);
        let db = |at: usize| rows[at].sqnr_db.unwrap();
        for row in &rows[1..5] {
            assert!(row.time().is_none() && row.verdict == "SKIPPED", "{row:?}");
            assert!(row.reason.as_ref().unwrap().contains("accuracy by emulation, no speed"), "{row:?}");
        }
        assert!(db(0) > db(1) && db(1) > db(2) && db(2) > 10.0, "{rows:?}");
        assert!(db(4) > db(5) && db(5) > db(3), "{rows:?}");
        let bytes = |at: usize| rows[at].weight_bytes.unwrap();
        assert!(bytes(2) < bytes(1) && bytes(3) < bytes(2));
    }
    let odd = measured(&file("nvfp4", "[4, 24, 8]", "float32", "linear"));
    assert!(
        odd[1].sqnr_db.is_none() && odd[1].reason.as_ref().unwrap().contains("do not divide the depth 24")
    );
}

/// Models that share a name keep their own settings, and shapes that are listed twice their own recommendation.
#[test]
fn models_of_one_name_are_told_apart() {
    let model = |dtype: &str, profiler: bool| {
        format!(
            "  - name: same\n    matrix_shapes: [{{shapes: [[4, 32, 8], [4, 32, 8]]}}]\n    high_precision_dtype: torch.{dtype}\n    \
             device: cpu\n    enable_profiler: {profiler}\n"
        )
    };
    let text = format!("repeat_n: 2\nmodel_params:\n{}{}", model("float32", true), model("bfloat16", false));
    let config = read(&text).unwrap();
    let rows = rows(&config, &mut |_| {});
    let table = csv::text(&config, &rows);
    let flags: Vec<String> = (0..4).map(|at| cell(&table, at, "enable_profiler")).collect();
    assert_eq!(flags, ["true", "true", "false", "false"]);
    assert_ne!(rows[0].title(), rows[2].title());
    assert_eq!(recommended(&rows, 20.0).len(), 4);
}

const SEEDS: [&str; 2] =
    [include_str!("data/microbench/inference.yml"), include_str!("data/microbench/training.yml")];

#[test]
fn the_examples_of_the_original_are_read_whole() {
    let [inference, training] = SEEDS.map(|text| read(text).unwrap());
    let names = |config: &Config| config.recipes.iter().map(Entry::name).collect::<Vec<_>>().join(" ");
    assert_eq!(names(&inference), "baseline int8wo float8wo float8dq-tensor");
    assert_eq!(names(&training), "baseline float8dq-tensor float8dq-row");
    assert_eq!(training.scaling, ["dynamic", "dynamic", "dynamic", "tensorwise", "true"]);
    assert_eq!((inference.mode, training.mode), (Mode::Inference, Mode::Training));
    assert_eq!((inference.repeat, training.repeat), (None, Some(100)));
    for config in [inference, training] {
        let model = &config.models[0];
        let sizes: Vec<[usize; 3]> = model.shapes.iter().map(|shape| [shape.m, shape.k, shape.n]).collect();
        assert_eq!(sizes, [[1024, 1024, 1024], [2048, 4096, 1024], [4096, 4096, 1024]]);
        assert!(model.device == "cuda" && model.model_type == "linear" && model.compile);
        assert!(model.enable_profiler && model.enable_memory_profiler);
    }
}

#[test]
fn the_examples_of_the_original_run_on_the_cpu() {
    for text in SEEDS {
        let mut small = text.replace("cuda\"", "cpu\"").replace("repeat_n: 100", "repeat_n: 2");
        for shape in ["[1024, 1024, 1024]", "[2048, 4096, 1024]", "[4096, 4096, 1024]"] {
            small = small.replace(shape, "[16, 32, 16]");
        }
        let config = read(&small).unwrap();
        let rows = rows(&config, &mut |_| {});
        assert_eq!(rows.len(), 3 * config.recipes.len());
        for row in &rows {
            assert!(row.sqnr_db.is_some(), "{row:?}");
            let emulated = row.quantization.starts_with("float8dq");
            assert_eq!((row.profile.is_none(), row.timeline.is_none()), (emulated, emulated), "{row:?}");
            assert!(
                row.timeline
                    .as_ref()
                    .is_none_or(|timeline| timeline.stats()["peak_bytes"].as_u64() > Some(0))
            );
        }
    }
}

/// What the original's unit tests run: a linear layer of 16×32×8 without quantization and in 8 bits, with sparsity, and each model.
#[test]
fn the_cases_of_the_originals_unit_tests_run() {
    for model_type in MODELS {
        let shape = "[16, 32, 8]";
        let text = format!(
            "sparsity_config_recipe_names: [None, semi-sparse, block]\n{}",
            file("baseline, int8wo, int4wo-32, int4wo-32-hqq, float8wo", shape, "bfloat16", model_type)
        );
        let rows = measured(&text);
        assert_eq!(rows.len(), 7);
        for row in &rows[..5] {
            assert!(row.time() > Some(0.0) && row.speedup() > Some(0.0), "{row:?}");
        }
        assert_eq!([rows[5].sparsity.as_str(), rows[6].sparsity.as_str()], ["semi-sparse", "block"]);
        assert!(rows[5..].iter().all(|row| row.verdict == "SKIPPED" && row.reason.is_some()));
    }
}

#[test]
fn the_table_and_the_record_hold_every_row() {
    let config = read(&file("int8wo, gemlitewo-4-64", "[4, 32, 8]", "float32", "linear")).unwrap();
    let rows = rows(&config, &mut |_| {});
    let table = csv::text(&config, &rows);
    assert_eq!(table.lines().count(), 4);
    assert!(table.starts_with(
        "name,quantization,sparsity,m,k,n,high_precision_dtype,use_torch_compile,torch_compile_mode,device,"
    ));
    assert!(table.lines().skip(1).all(|line| line.split(',').count() == 21 + 13));
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
