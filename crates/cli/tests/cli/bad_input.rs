//! Mistakes: each gets an error that says what and where, and loses nothing.

use std::net::TcpListener;

use crate::warpt::Warpt;

/// Runs a command that must fail, and returns its message.
fn refused(warpt: &Warpt, arguments: &[&str], code: i32) -> String {
    let done = warpt.run(arguments);
    assert_eq!(done.code, code, "{arguments:?}: {}", done.stderr);
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    assert_eq!(done.stdout, "", "{arguments:?} printed data");
    done.stderr
}

#[test]
fn unknown_names_name_the_nearest() {
    let warpt = Warpt::new();
    let cases = [
        (&["benchmark", "run", "--suite", "micor"][..], "did you mean `micro`?"),
        (&["benchmark", "run", "--benchmark", "cpu_flop"], "did you mean `cpu_flops`?"),
        (&["benchmark", "run", "--component", "storag"], "did you mean `storage`?"),
        (&["benchmark", "list", "--component", "gppu"], "did you mean `gpu`?"),
        (&["benchmark", "describe", "--benchmark", "mem_latncy"], "did you mean `mem_latency`?"),
        (&["benchmark", "run", "--component", "cpu", "--param", "thread=1"], "did you mean `threads`?"),
    ];
    for (arguments, hint) in cases {
        let message = refused(&warpt, arguments, 2);
        assert!(message.contains(hint), "{arguments:?}: {message}");
    }
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let warpt = Warpt::new();
    for option in [
        "--duration=0",
        "--duration=-1",
        "--duration=inf",
        "--duration=x",
        "--rounds=0",
        "--burnin-seconds=NaN",
    ] {
        refused(&warpt, &["benchmark", "run", "--component", "cpu", option], 2);
    }
    let message = refused(&warpt, &["benchmark", "run", "--component", "cpu", "--param", "threads=many"], 2);
    assert!(message.contains("`threads`") && message.contains("`many`"), "{message}");
    refused(&warpt, &["benchmark", "run", "--component", "cpu", "--param", "threads"], 2);
    refused(&warpt, &["benchmark", "run", "--component", "cpu", "--param", "disk_io.threads=1"], 2);
}

#[test]
fn a_time_beyond_the_bound_says_the_bound() {
    let warpt = Warpt::new();
    let message = refused(&warpt, &["benchmark", "run", "--component", "cpu", "--duration=1e9"], 2);
    assert!(message.contains("above 0, up to 86400"), "{message}");
}

#[test]
fn causes_are_said_once_and_without_names_of_types() {
    let warpt = Warpt::new();
    let message = refused(&warpt, &["benchmark", "compare", "none.json", "none.json"], 2);
    assert_eq!(message.matches("No such file").count(), 1, "{message}");
    std::fs::write(warpt.path("odd.json"), "[1]").unwrap();
    let message = refused(&warpt, &["benchmark", "compare", "odd.json", "odd.json"], 2);
    assert!(message.contains("odd.json") && !message.contains("BenchmarkSuiteRun"), "{message}");
    assert!(!message.contains("struct"), "{message}");
}

#[test]
fn an_export_is_refused_before_the_run_where_no_file_can_be_made() {
    let warpt = Warpt::new();
    // Nobody makes files there, not even root.
    let mut command = warpt.command(&["benchmark", "run", "--benchmark", "cpu_flops", "--export"]);
    let began = std::time::Instant::now();
    let done = crate::warpt::finished(command.current_dir("/proc/self").output().unwrap());
    assert_eq!((done.code, done.stdout.as_str()), (3, ""), "{}", done.stderr);
    assert!(done.stderr.contains("cannot write"), "{}", done.stderr);
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "it measured first");
}

#[test]
fn a_result_that_could_not_be_written_is_found_before_the_run() {
    let warpt = Warpt::new();
    for path in ["missing/result.json", "cache"] {
        let message = refused(&warpt, &["benchmark", "run", "--component", "cpu", "--export-file", path], 3);
        assert!(message.contains(path), "{message}");
    }
}

#[test]
fn a_disk_folder_that_is_not_there_or_has_no_space_is_refused() {
    let warpt = Warpt::new();
    let disk = ["benchmark", "run", "--benchmark", "disk_io", "--param"];
    let message = refused(&warpt, &[&disk[..], &["directory=/no/such/folder"]].concat(), 2);
    assert!(message.contains("/no/such/folder"), "{message}");
    let done = warpt.run(&[&disk[..], &["file_bytes=4000000000000000000"]].concat());
    assert!([2, 3].contains(&done.code), "{}", done.code);
    assert!((done.stderr + &done.stdout).contains("free"), "it should say how much is free");
}

#[test]
fn malformed_results_are_refused_with_their_place() {
    let warpt = Warpt::new();
    let cases = [
        ("cut.json", "{\"suite\": \"micro\", \"compo", "line 1"),
        ("other.json", "{\"hello\": 1}", "missing field"),
        ("newer.json", "{\"schema_version\": 999}", "use a newer warpt"),
        ("empty.json", "", "line 1"),
    ];
    for (name, text, expected) in cases {
        std::fs::write(warpt.path(name), text).unwrap();
        let message = refused(&warpt, &["benchmark", "compare", name, name], 2);
        assert!(message.contains(name) && message.contains(expected), "{message}");
        assert_eq!(std::fs::read_to_string(warpt.path(name)).unwrap(), text);
    }
    std::fs::write(warpt.path("binary.json"), [0xff, 0xfe, 0x00]).unwrap();
    refused(&warpt, &["benchmark", "compare", "binary.json", "binary.json"], 2);
    let message = refused(&warpt, &["benchmark", "compare", "absent.json", "cut.json"], 2);
    assert!(message.contains("absent.json"), "{message}");
}

#[test]
fn a_port_in_use_is_named() {
    let warpt = Warpt::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in [&["serve"][..], &["monitor", "--json", "--duration", "1"]] {
        let message = refused(&warpt, &[command, &["--listen", &address]].concat(), 3);
        assert!(message.contains(&address), "{message}");
    }
}

/// Each function calls the one before twice: a small file whose calls add up to 2^41 operations.
#[test]
fn calls_that_double_are_refused_before_anything_is_inlined() {
    let warpt = Warpt::new();
    let ty = "tensor<f32>";
    let mut text = format!(
        "func.func private @f0(%x: {ty}) -> {ty} {{\n  %0 = stablehlo.add %x, %x : {ty}\n  return %0 : {ty}\n}}\n"
    );
    for at in 1..=41 {
        let name = if at == 41 { "main".to_owned() } else { format!("f{at}") };
        let callee = format!("f{}", at - 1);
        text += &format!(
            "func.func @{name}(%x: {ty}) -> {ty} {{\n  %0 = call @{callee}(%x) : ({ty}) -> {ty}\n  %1 = call @{callee}(%0) : ({ty}) -> {ty}\n  return %1 : {ty}\n}}\n"
        );
    }
    let file = warpt.path("double.mlir");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    for command in [
        &["run", file, "--seed", "1"][..],
        &["opt", file, "--emit", "fusion"],
        &["opt", file, "--emit", "fusion", "--device", "cuda"],
        &["opt", file, "--emit", "kernels", "--device", "cuda"],
    ] {
        let message = refused(&warpt, command, 2);
        assert!(message.contains("add up to more than"), "{command:?}: {message}");
        assert!(message.contains("@main"), "{command:?}: {message}");
    }
}

/// Types of this program are nothing that a user knows.
#[test]
fn messages_show_no_names_of_types() {
    let warpt = Warpt::new();
    let record = |params: &str, metrics: &str| {
        format!(
            r#"{{"schema_version": 1, "run_id": "a", "tool_version": "0", "suite": "micro", "components": ["cpu"],
                "metadata": null, "benchmarks": [{{"spec": {{"id": {{"suite": "micro", "name": "x"}},
                "components": ["cpu"], "kind": "synthetic", "description": null,
                "default_duration_seconds": null, "external_tool": null, "params": {params}}},
                "metrics": [{metrics}], "success": true, "error_message": null,
                "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z", "system": null}}]}}"#
        )
    };
    for (text, said, not_said) in [
        ("5".to_owned(), "expected an object", "BenchmarkSuiteRun"),
        (record(r#"{"a": [1]}"#, ""), "a value of a kind that is not known here", "ParamValue"),
        (record("null", r#"{"name": "a", "value": "x"}"#), "expected a number", "f64"),
        (record("null", "7"), "expected an object", "BenchmarkMetric"),
    ] {
        std::fs::write(warpt.path("bad.json"), &text).unwrap();
        let done = warpt.run(&["benchmark", "history", "show", "bad.json"]);
        assert_eq!(done.code, 2, "{}", done.stdout);
        assert!(done.stderr.contains(said) && !done.stderr.contains(not_said), "{text}: {}", done.stderr);
        assert!(done.stderr.contains("bad.json") && done.stderr.contains("line "), "{}", done.stderr);
    }
}

/// A name that was made up for a moment tells nobody anything.
#[test]
fn a_missing_place_for_temporary_files_is_named_and_nothing_else() {
    let warpt = Warpt::new();
    let arguments = ["benchmark", "run", "--benchmark", "kmer_count", "--rounds", "1", "--burnin-seconds=0"];
    let mut command = warpt.command(&arguments);
    let done = crate::warpt::finished(command.env("TMPDIR", "/no/such/folder").output().unwrap());
    let text = done.stdout + &done.stderr;
    assert!(text.contains("/no/such/folder") && text.contains("TMPDIR"), "{text}");
    assert!(!text.contains(".tmp"), "{text}");
}

#[test]
fn a_duration_that_is_too_long_says_how_long_is_allowed() {
    let warpt = Warpt::new();
    for (arguments, said) in [
        (&["benchmark", "run", "--duration", "1e9"][..], "up to 86400"),
        (&["monitor", "--json", "--duration", "1e9"], "no more than a year"),
    ] {
        let done = warpt.run(arguments);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""));
        assert!(done.stderr.contains("1e9") && done.stderr.contains(said), "{}", done.stderr);
    }
}

#[test]
fn values_that_do_not_fit_say_what_would() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("m.mlir"), "func.func @main() { func.return }").unwrap();
    for (arguments, said) in [
        (&["run", "m.mlir", "--repeat", "0"][..], "'--repeat <N>': expected a whole number above 0"),
        (&["run", "m.mlir", "--threads", "0"], "expected a whole number above 0"),
        (&["run", "m.mlir", "--seed", "x"], "'--seed <N>': expected a whole number, 0 or more"),
        (&["run", "m.mlir", "--seed", "-5"], "expected a whole number, 0 or more"),
        (&["run", "m.mlir", "--warmup", "99999999999999999999"], "expected at most 18446744073709551615"),
        (&["stress", "cpu", "--duration", "-5"], "expected a number of seconds above 0"),
        (&["benchmark", "history", "list", "--limit", "0"], "expected a whole number above 0"),
        (&["carbon", "history", "--limit", "0"], "expected a whole number above 0"),
        (&["run", "m.mlir", "--outputs", "o.json"], "outputs are written as .safetensors"),
        (&["opt", "m.mlir", "-o", "plan.svg"], "--emit fusion writes those"),
        (&["run", "m.mlir", "--inputs", "x.npy"], "give it as --input NAME=x.npy"),
    ] {
        let message = refused(&warpt, arguments, 2);
        assert!(message.contains(said), "{arguments:?}: {message}");
        assert!(!message.contains("tip: to pass"), "{arguments:?}: {message}");
    }
}

/// Files of another kind are named as what they are.
#[test]
fn files_that_are_no_models_say_what_they_are() {
    let warpt = Warpt::new();
    std::fs::write(warpt.path("m.mlir"), "func.func @main() { func.return }").unwrap();
    std::fs::write(warpt.path("t.safetensors"), b"\x08\0\0\0\0\0\0\0{}      ").unwrap();
    std::fs::write(warpt.path("t.npy"), b"\x93NUMPY\x01\0v\0{}").unwrap();
    for (arguments, said) in [
        (&["import", "m.mlir", "-o", "out.mlir"][..], "m.mlir: not a PyTorch archive"),
        (&["run", "t.safetensors", "--seed", "1"], "t.safetensors: a file of tensors, no model"),
        (&["check", "t.npy"], "t.npy: a file of tensors, no model"),
        (&["validate", "--golden", "cache", "--candidate", "m.mlir"], "m.mlir: a file; a run is a folder"),
        (&["import", "nosuch", "-o", "out.mlir"], "nosuch: No such file"),
    ] {
        let message = refused(&warpt, arguments, 2);
        assert!(message.contains(said), "{arguments:?}: {message}");
        assert_eq!(message.matches("nosuch").count(), usize::from(said.contains("nosuch")), "{message}");
    }
}

#[test]
fn a_value_of_the_configuration_file_is_refused_with_the_file() {
    let warpt = Warpt::new();
    std::fs::create_dir_all(warpt.path("config/warpt")).unwrap();
    for (text, said) in [
        ("[benchmark.run]\nrounds = 0", "`benchmark.run.rounds`: invalid value '0'"),
        ("[run]\ntier = 'fast'", "`run.tier`: invalid value 'fast'"),
        ("[run]\njson = 'yes'", "`run.json` is true or false"),
    ] {
        std::fs::write(warpt.path("config/warpt/config.toml"), text).unwrap();
        let message = refused(&warpt, &["benchmark", "list"], 2);
        assert!(message.contains("config.toml: ") && message.contains(said), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn a_parameter_that_no_benchmark_takes_is_refused_before_the_plan_and_described() {
    let warpt = Warpt::new();
    let plan = ["benchmark", "run", "--benchmark", "cpu_flops", "--dry-run", "--param"];
    let message = refused(&warpt, &[&plan[..], &["kernels=fmaa"]].concat(), 2);
    assert!(message.contains("kernels=fmaa") && message.contains("there are: all, fma, gemm"), "{message}");
    let described = warpt.run(&["benchmark", "describe", "--benchmark", "cpu_flops"]).stdout;
    assert!(described.contains("fma,gemm; takes a list of fma, gemm, or all"), "{described}");
    assert!(described.contains("1024; takes 1 to 16384"), "{described}");
}

/// Each of these took minutes or all memory once.
#[test]
fn input_without_an_end_in_sight_is_refused() {
    const DEEP: usize = 600_000;
    let warpt = Warpt::new();
    let (open, close, ones) = ("[".repeat(DEEP), "]".repeat(DEEP), "1x".repeat(70));
    for (name, text, said) in [
        (
            "literal.mlir",
            format!("%0 = stablehlo.constant dense<{open}1.0{close}> : tensor<1xf32>"),
            "literal.mlir:1:",
        ),
        (
            "attribute.mlir",
            format!("module attributes {{a = {open}1 : i32{close}}} {{}}"),
            "attribute.mlir:1:",
        ),
        ("rank.mlir", format!("func.func private @f(tensor<{ones}f32>)"), "more than 64 dimensions"),
    ] {
        std::fs::write(warpt.path(name), text).unwrap();
        for command in [&["check", name][..], &["run", name, "--seed", "1"]] {
            let message = refused(&warpt, command, 2);
            assert!(message.contains(said), "{name}: {}", &message[..message.len().min(2000)]);
        }
    }
    std::fs::write(warpt.path("m.mlir"), "func.func @main() { func.return }").unwrap();
    std::fs::create_dir(warpt.path("run")).unwrap();
    for command in [
        &["check", "/dev/zero"][..],
        &["run", "/dev/zero", "--seed", "1"],
        &["run", "m.mlir", "--machine", "/dev/zero"],
        &["run", "m.mlir", "--input", "x=/dev/zero"],
        &["benchmark", "compare", "/dev/zero", "/dev/zero"],
        &["benchmark", "history", "show", "/dev/zero"],
        &["validate", "--golden", "run", "--candidate", "run", "--tolerances", "/dev/zero"],
    ] {
        let message = refused(&warpt, command, 2);
        assert!(message.contains("no end in sight"), "{command:?}: {message}");
    }
    let message = refused(&warpt, &["validate", "--golden", "/dev/zero", "--candidate", "run"], 2);
    assert!(message.contains("/dev/zero: a file; a run is a folder"), "{message}");
    std::fs::create_dir_all(warpt.path("config/warpt")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", warpt.path("config/warpt/config.toml")).unwrap();
    let message = refused(&warpt, &["benchmark", "list"], 2);
    assert!(message.contains("config.toml: there are more than"), "{message}");
}
