//! `warpt carbon` on a machine made of files.

use crate::power::{WORK, machine};
use crate::warpt::{Finished, Warpt};

fn run(warpt: &Warpt, root: &str, options: &[&str]) -> Finished {
    let arguments = [
        &["carbon", "run", "--interval", "60", "--root", root][..],
        options,
        &["--", "sh", "-c", WORK, root],
    ]
    .concat();
    warpt.run(&arguments)
}

fn record(warpt: &Warpt, root: &str, options: &[&str]) -> serde_json::Value {
    let done = run(warpt, root, &[options, &["--json"]].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    serde_json::from_str(&done.stdout).unwrap()
}

#[test]
fn carbon_is_the_measured_energy_times_the_named_grid() {
    let warpt = Warpt::new();
    let record = record(&warpt, &machine(&warpt), &["--grid", "germany", "--price", "0.36"]);
    assert_eq!(record["energy_joules"], 170.0);
    assert_eq!(record["energy_source"], "measured");
    assert_eq!(record["energy_of"], serde_json::json!(["package-0", "package-0/dram"]));
    let factor = &record["factor"];
    assert_eq!((factor["grid"].as_str(), factor["grams_per_kwh"].as_f64()), (Some("DEU"), Some(381.0)));
    assert!(factor["year"].is_u64() && factor["source"].as_str().unwrap().contains("Ember"), "{factor}");
    let near = |value: &serde_json::Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-9;
    assert!(near(&record["carbon_grams"], 170.0 / 3.6e6 * 381.0), "{record}");
    assert!(near(&record["cost"], 170.0 / 3.6e6 * 0.36), "{record}");
}

#[test]
fn without_a_grid_there_is_energy_and_the_way_to_carbon() {
    let warpt = Warpt::new();
    let done = run(&warpt, &machine(&warpt), &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        done.stdout.contains("energy: 170.00 J (measured: package-0, package-0/dram)"),
        "{}",
        done.stdout
    );
    assert!(done.stdout.contains("carbon: not known; carbon needs --grid"), "{}", done.stdout);
}

#[test]
fn the_configuration_file_can_name_the_grid() {
    let warpt = Warpt::new();
    let root = machine(&warpt);
    std::fs::create_dir_all(warpt.path("config/warpt")).unwrap();
    std::fs::write(warpt.path("config/warpt/config.toml"), "[carbon]\ngrid = 'FRA'\n").unwrap();
    assert_eq!(record(&warpt, &root, &[])["factor"]["grid"], "FRA");
    // A flag beats the file, whichever of the two it is.
    for (file, flag, grid) in
        [("intensity = 5", ["--grid", "DEU"], "DEU"), ("grid = 'FRA'", ["--intensity", "100"], "--intensity")]
    {
        std::fs::write(warpt.path("config/warpt/config.toml"), format!("[carbon]\n{file}\n")).unwrap();
        assert_eq!(record(&warpt, &root, &flag)["factor"]["grid"], grid, "{file}");
    }
    let warpt = Warpt::new();
    let root = machine(&warpt);
    let before =
        warpt.json(&["carbon", "--intensity", "100", "run", "--root", &root, "--json", "--", "true"]);
    assert_eq!(before["factor"]["source"], "given by the user");
}

#[test]
fn where_nothing_is_measured_an_estimate_is_named_as_one() {
    let warpt = Warpt::new();
    std::fs::create_dir(warpt.path("empty")).unwrap();
    let unknown = warpt.json(&["carbon", "run", "--root", "empty", "--grid", "FRA", "--json", "--", "true"]);
    assert!(unknown["energy_joules"].is_null() && unknown["carbon_grams"].is_null(), "{unknown}");
    assert!(unknown["reason"].as_str().unwrap().contains("reports no power"));
    let done =
        warpt.run(&["carbon", "run", "--root", "empty", "--grid", "FRA", "--watts", "100", "--", "true"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        done.stdout.contains("your estimate of 100 W; not measured: this machine reports"),
        "{}",
        done.stdout
    );
    // Measured energy beats an estimate.
    let measured = record(&warpt, &machine(&warpt), &["--watts", "1"]);
    assert!(measured["estimated_watts"].is_null() && measured["energy_joules"] == 170.0, "{measured}");
}

#[test]
fn what_is_kept_is_listed_and_added_up() {
    let warpt = Warpt::new();
    assert!(warpt.json(&["carbon", "history", "--json"]).as_array().unwrap().is_empty());
    for arguments in [["carbon", "history"], ["carbon", "summary"]] {
        let done = warpt.run(&arguments);
        assert_eq!((done.code, done.stdout.as_str()), (0, ""));
        assert!(done.stderr.contains("nothing was kept"), "{}", done.stderr);
    }
    let first = record(&warpt, &machine(&warpt), &["--grid", "FRA", "--keep"]);
    record(&warpt, &machine(&warpt), &["--grid", "FRA"]);
    let second = record(&warpt, &machine(&warpt), &["--keep"]);
    let history = warpt.json(&["carbon", "history", "--json"]);
    assert_eq!(history, serde_json::json!([second, first]), "newest first, and only what was kept");
    let summary = warpt.json(&["carbon", "summary", "--json"]);
    assert_eq!((summary["commands"].as_u64(), summary["without_factor"].as_u64()), (Some(2), Some(1)));
    assert_eq!(summary["energy_joules"], 340.0);
    assert!(summary["cost"].is_null() && summary["without_price"] == 2, "no price was given: {summary}");
    assert_eq!(summary["carbon_grams"], first["carbon_grams"]);
    // A file that is no record is named and left out.
    std::fs::write(warpt.path("data/warpt/carbon/broken.json"), "{").unwrap();
    let done = warpt.run(&["carbon", "summary"]);
    assert_eq!(done.code, 0);
    assert!(done.stderr.contains("broken.json") && done.stdout.starts_with("commands: 2"), "{}", done.stdout);
    assert!(done.stdout.contains("cost: not known; 2 with energy, without a price"), "{}", done.stdout);
}

#[test]
fn grids_have_publishers_and_years_and_unknown_ones_are_refused() {
    let warpt = Warpt::new();
    let grids = warpt.json(&["carbon", "grids", "--json"]);
    for grid in grids.as_array().unwrap() {
        assert!(
            grid["source"].is_string() && grid["year"].is_u64() && grid["grams_per_kwh"].is_number(),
            "{grid}"
        );
    }
    let listed = warpt.run(&["carbon", "grids"]);
    assert!(listed.stdout.contains("DEU"), "{}", listed.stdout);
    for source in ["eGRID2022", "Our World in Data", "DESNZ", "Yearly Electricity Data"] {
        assert_eq!(listed.stdout.matches(source).count(), 1, "{source} in {}", listed.stdout);
    }
    let done = warpt.run(&["carbon", "run", "--grid", "Germny", "--", "true"]);
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    assert!(done.stderr.contains("did you mean `Germany`?"), "{}", done.stderr);
    for bad in [&["--intensity", "0"][..], &["--grid", "FRA", "--intensity", "5"], &["--price", "-1"]] {
        assert_eq!(warpt.run(&[&["carbon", "run"][..], bad, &["--", "true"]].concat()).code, 2, "{bad:?}");
    }
    assert_eq!(warpt.run(&["carbon", "run"]).code, 2, "a command is needed");
}
