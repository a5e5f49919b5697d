//! `warpt microbench` from the file to the results.

use serde_json::Value;

use crate::warpt::Warpt;

const FILE: &str = "benchmark_mode: inference\nquantization_config_recipe_names: [int8dq]\noutput_dir: results\nrepeat_n: 2\n\
                    model_params:\n  name: a/b\n  matrix_shapes:\n    - name: custom\n      shapes: [[4, 64, 32]]\n  \
                    high_precision_dtype: torch.float32\n  device: cpu\n  model_type: ln_linear_gelu\n  enable_profiler: true\n  \
                    enable_memory_profiler: true\n";

fn cells(line: &str) -> Vec<String> {
    // The only quoted cells are those of JSON.
    let mut cells = Vec::new();
    let (mut cell, mut quoted) = (String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells
}

#[test]
fn traces_and_memory_timelines_are_written_where_the_columns_say() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("config.yml"), FILE).unwrap();
    let done = warpt.run(&["microbench", "--config", "config.yml"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let text = std::fs::read_to_string(warpt.path("results/results.csv")).unwrap();
    let mut lines = text.lines();
    let heads = cells(lines.next().unwrap());
    let rows: Vec<Vec<String>> = lines.map(cells).collect();
    assert_eq!(rows.len(), 2, "{text}");
    for row in &rows {
        let cell = |name: &str| row[heads.iter().position(|head| head == name).unwrap()].clone();
        let read = |name: &str| {
            let path = warpt.path(&cell(name));
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let trace: Value = serde_json::from_str(&read("profiler_json_path")).unwrap();
        assert!(trace["traceEvents"].as_array().unwrap().iter().any(|event| event["cat"] == "kernel"));
        let memory: Value = serde_json::from_str(&read("memory_profile_path")).unwrap();
        let peak = memory["stats"]["peak_bytes"].as_u64().unwrap();
        // Weights of 64x32 in 8 bits at least, and not more than everything together.
        assert!(peak >= 2048 && peak <= cell("peak_bytes").parse().unwrap(), "{memory}");
        let kinds = memory["allocations"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap());
        let kinds: Vec<&str> = kinds.collect();
        assert!(kinds.contains(&"weights") && kinds.contains(&"output"), "{kinds:?}");
        assert!(read("memory_visualization_path").contains("<svg"));
        assert!(cell("memory_stats").contains("peak_bytes"), "{text}");
    }
    assert_ne!(rows[0][..], rows[1][..]);
}

#[test]
fn nothing_is_written_where_nothing_is_asked_for() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("config.yml"), FILE.replace(": true", ": false")).unwrap();
    let done = warpt.run(&["microbench", "--config", "config.yml"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let written: Vec<_> = std::fs::read_dir(warpt.path("results")).unwrap().collect();
    assert_eq!(written.len(), 1, "{written:?}");
}

#[test]
fn training_shows_each_pass_and_writes_a_trace_of_both() {
    let warpt = Warpt::new();
    let file = FILE.replace("inference", "training").replace("int8dq", "float8dq-row");
    std::fs::write(warpt.path("config.yml"), file).unwrap();
    let done = warpt.run(&["microbench", "--config", "config.yml"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let head = done.stdout.lines().next().unwrap();
    for column in ["forward ms", "backward ms", "total ms", "speedup", "scaling"] {
        assert!(head.contains(column), "{head}");
    }
    assert!(done.stdout.contains("dynamic dynamic dynamic rowwise"), "{}", done.stdout);
    let written = |folder: &str| std::fs::read_dir(warpt.path(&format!("results/{folder}"))).unwrap().count();
    // The row of float8 has no speed on a CPU, and so no trace.
    assert_eq!((written("profiler"), written("memory_profiler")), (1, 2));
}

#[test]
fn rows_of_one_title_have_files_of_their_own() {
    let warpt = Warpt::new();
    let file = FILE.replace("[[4, 64, 32]]", "[[4, 64, 32], [4, 64, 32]]");
    std::fs::write(warpt.path("config.yml"), file).unwrap();
    let done = warpt.run(&["microbench", "--config", "config.yml", "--recommend"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(std::fs::read_dir(warpt.path("results/profiler")).unwrap().count(), 4);
    let chosen: Vec<&str> = done.stdout.lines().filter(|line| line.starts_with("  a/b ")).collect();
    assert_eq!(chosen.len(), 2, "{}", done.stdout);
}

#[test]
fn dry_runs_say_what_bounds_a_shape_and_what_is_not_known() {
    let warpt = Warpt::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/tests/data/microbench");
    for name in ["inference.yml", "training.yml"] {
        let path = format!("{data}/{name}");
        let done = warpt.run(&["microbench", "--config", &path, "--dry-run"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert_eq!(done.stdout.matches("not known for cuda").count(), 3, "{}", done.stdout);

        let text = std::fs::read_to_string(&path).unwrap().replace("cuda\"", "cpu\"");
        std::fs::write(warpt.path("cpu.yml"), text).unwrap();
        let done = warpt.run(&["microbench", "--config", "cpu.yml", "--dry-run", "--json"]);
        let listed: Value = serde_json::from_str(&done.stdout).unwrap();
        for shape in listed["shapes"].as_array().unwrap() {
            assert!(shape["predicted_seconds"].as_f64().unwrap() > 0.0, "{shape}");
            assert!(
                ["arithmetic", "memory"].contains(&shape["bound_by"]["baseline"].as_str().unwrap()),
                "{shape}"
            );
        }
    }
}
