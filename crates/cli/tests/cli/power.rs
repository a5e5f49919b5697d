//! `warpt power` on machines made of files.

use std::path::Path;

use crate::warpt::Warpt;

/// Writes a file of a made-up machine.
pub(crate) fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A machine with one processor package, its cores and its memory, which have used some energy before.
pub(crate) fn machine(warpt: &Warpt) -> String {
    let root = warpt.path("machine");
    for (zone, name) in
        [("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core"), ("intel-rapl:0:1", "dram")]
    {
        let folder = format!("sys/class/powercap/{zone}");
        write(&root, &format!("{folder}/name"), name);
        write(&root, &format!("{folder}/energy_uj"), "90000000");
        write(&root, &format!("{folder}/max_energy_range_uj"), "262143328850");
    }
    write(&root, "proc/stat", "cpu 100 0 0 1000\ncpu0 100 0 0 1000\n");
    write(&root, "proc/self/stat", "1 (warpt) S 1 1 1 0 -1 0 0 0 0 0 0 0 10 0 20 0");
    root.to_str().unwrap().to_owned()
}

/// A command that uses 150 J in the package, 20 J in the memory and a quarter of the busy time.
pub(crate) const WORK: &str = "cd \"$0\"
    echo 240000000 > sys/class/powercap/intel-rapl:0/energy_uj
    echo 110000000 > sys/class/powercap/intel-rapl:0:1/energy_uj
    echo 'cpu 300 0 0 1200' > proc/stat
    echo '1 (warpt) S 1 1 1 0 -1 0 0 0 0 0 0 0 60 0 20 0' > proc/self/stat";

#[test]
fn a_commands_energy_is_that_of_the_counters_from_start_to_end() {
    let warpt = Warpt::new();
    let root = machine(&warpt);
    let report = warpt.json(&[
        "power",
        "--root",
        &root,
        "--json",
        "--no-processes",
        "--interval",
        "60",
        "--",
        "sh",
        "-c",
        WORK,
        &root,
    ]);
    assert_eq!(report["total_joules"], 170.0, "the package and its memory, not its cores again: {report}");
    assert_eq!(report["command"]["exit_code"], 0);
    assert_eq!(report["command"]["cpu_share"], 0.25, "{report}");
    assert_eq!(report["command"]["attributed_joules"], 42.5, "{report}");
    let sources = report["sources"].as_array().unwrap();
    let of = |name: &str| sources.iter().find(|source| source["source"] == name).unwrap();
    assert_eq!(of("package-0")["joules"], 150.0);
    assert_eq!(of("package-0/core")["joules"], 0.0);
    assert_eq!(of("package-0/core")["counted"], false);
    assert!(report["processes"].is_null() && report["processes_reason"].is_null());
}

#[test]
fn a_counter_that_starts_again_at_zero_is_followed() {
    let warpt = Warpt::new();
    let root = machine(&warpt);
    // 30 J below its range, then 20 J above zero.
    write(Path::new(&root), "sys/class/powercap/intel-rapl:0/energy_uj", "262113328850");
    let work = "echo 20000000 > \"$0/sys/class/powercap/intel-rapl:0/energy_uj\"";
    let report =
        warpt.json(&["power", "--root", &root, "--json", "--interval", "60", "--", "sh", "-c", work, &root]);
    assert_eq!(report["total_joules"], 50.0, "{report}");
}

#[test]
fn a_counter_that_cannot_be_read_makes_the_total_null_with_the_reason() {
    let warpt = Warpt::new();
    let root = machine(&warpt);
    write(Path::new(&root), "sys/class/powercap/intel-rapl:0/energy_uj", "not for you");
    let report = warpt.json(&["power", "--root", &root, "--json", "--duration", "0.01"]);
    assert!(report["total_joules"].is_null());
    assert!(report["reason"].as_str().unwrap().contains("package-0: the counter is there"), "{report}");
    assert!(
        report["processes"].is_null() && report["processes_reason"].as_str().unwrap().contains("not known")
    );
}

#[test]
fn a_machine_that_reports_nothing_says_so() {
    let warpt = Warpt::new();
    std::fs::create_dir(warpt.path("empty")).unwrap();
    // It does not wait for what will not come.
    let began = std::time::Instant::now();
    let done = warpt.run(&["power", "--root", "empty", "--duration", "3000"]);
    assert_eq!(done.code, 3);
    assert!(done.stdout.starts_with("this machine reports no power"), "{}", done.stdout);
    assert!(began.elapsed().as_secs() < 1000);
    let done = warpt.run(&["power", "--root", "empty", "--sources"]);
    assert_eq!(done.code, 3);
    assert!(done.stdout.contains("reports no power"), "{}", done.stdout);
    // A command is run all the same.
    let report = warpt.json(&["power", "--root", "empty", "--json", "--", "true"]);
    assert!(report["total_joules"].is_null() && report["command"]["attributed_joules"].is_null());
}

#[test]
fn sources_are_listed_with_how_they_are_known() {
    let warpt = Warpt::new();
    let root = machine(&warpt);
    write(Path::new(&root), "sys/class/hwmon/hwmon0/name", "power_meter");
    write(Path::new(&root), "sys/class/hwmon/hwmon0/power1_average", "345000000");
    let sources = warpt.json(&["power", "--root", &root, "--sources", "--json"]);
    let known: Vec<_> = sources
        .as_array()
        .unwrap()
        .iter()
        .map(|source| {
            (source["source"].as_str().unwrap(), source["method"].as_str().unwrap(), &source["counted"])
        })
        .collect();
    assert_eq!(
        known,
        [
            ("package-0", "counter", &false.into()),
            ("package-0/core", "counter", &false.into()),
            ("package-0/dram", "counter", &false.into()),
            ("system", "sampled", &true.into()),
        ]
    );
}

#[test]
fn a_command_that_fails_or_does_not_exist_is_said() {
    let warpt = Warpt::new();
    let root = machine(&warpt);
    let done = warpt.run(&["power", "--root", &root, "--no-processes", "--", "sh", "-c", "exit 7"]);
    assert_eq!(done.code, 1);
    assert!(done.stdout.contains("exit code 7"), "{}", done.stdout);
    let done = warpt.run(&["power", "--root", &root, "--", "no-such-program"]);
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    assert!(done.stderr.contains("no-such-program"), "{}", done.stderr);
    assert_eq!(warpt.run(&["power", "--interval", "0.01"]).code, 2);
}

#[test]
fn json_is_alone_on_standard_output() {
    let warpt = Warpt::new();
    let root = machine(&warpt);
    for command in [&["power"][..], &["carbon", "run"]] {
        let arguments =
            [command, &["--root", &root, "--json", "--", "sh", "-c", "echo said; echo aside >&2"]].concat();
        let done = warpt.run(&arguments);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(serde_json::from_str::<serde_json::Value>(&done.stdout).is_ok(), "{}", done.stdout);
        assert!(done.stderr.contains("said\n") && done.stderr.contains("aside\n"), "{}", done.stderr);
        // Text stands below what the command said.
        let arguments = [command, &["--root", &root, "--", "echo", "said"]].concat();
        assert!(warpt.run(&arguments).stdout.starts_with("said\n"));
    }
}
