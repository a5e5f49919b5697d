//! `warpt list`.

use serde_json::Value;

use crate::warpt::Warpt;

/// Every number in the inventory, with the path to it.
fn numbers(value: &Value, path: &str, found: &mut Vec<(String, f64)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                numbers(value, &format!("{path}.{name}"), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|v| numbers(v, path, found)),
        Value::Number(number) => found.push((path.to_owned(), number.as_f64().unwrap())),
        _ => {}
    }
}

#[test]
fn the_inventory_agrees_with_the_kernel() {
    let list = Warpt::new().json(&["list", "--json"]);
    let hardware = &list["hardware"];
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let threads = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    assert_eq!(hardware["cpu"]["threads"], threads);
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    let kibibytes: u64 = total.trim().trim_end_matches("kB").trim().parse().unwrap();
    assert_eq!(hardware["memory"]["total_bytes"], kibibytes * 1024);
    for part in ["cpu", "memory", "storage", "network", "gpus"] {
        assert!(hardware.get(part).is_some(), "{part} is missing");
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(list["software"].to_string().contains(release.trim()), "{}", list["software"]);
}

#[test]
fn sizes_clocks_and_speeds_are_numbers_above_zero_or_null() {
    let list = Warpt::new().json(&["list", "--json"]);
    let mut found = Vec::new();
    numbers(&list["hardware"], "hardware", &mut found);
    assert!(found.len() > 5);
    for (path, number) in found {
        let is_size = ["capacity_bytes", "total_bytes", "_mhz", "_mbps", "_watts"]
            .iter()
            .any(|end| path.ends_with(end));
        // A machine without swap has zero bytes of it; that is known, not unknown.
        assert!(!is_size || number > 0.0 || path.contains("swap"), "{path} is {number}");
    }
}

#[test]
fn exports_go_where_they_are_asked_for() {
    let warpt = Warpt::new();
    assert_eq!(warpt.run(&["list", "--export"]).code, 0);
    let names = warpt.files();
    assert!(
        names.len() == 1 && names[0].starts_with("warpt_list_2") && names[0].ends_with(".json"),
        "{names:?}"
    );
    assert_eq!(warpt.run(&["list", "--export-file", "mine.json"]).code, 0);
    for name in [names[0].as_str(), "mine.json"] {
        let list: Value = serde_json::from_slice(&std::fs::read(warpt.path(name)).unwrap()).unwrap();
        assert!(list["hardware"].is_object() && list["software"].is_object());
    }
    let done = warpt.run(&["list", "--export-file", "no/such/folder/mine.json"]);
    assert_eq!(done.code, 3);
    assert!(done.stderr.contains("no/such/folder"), "{}", done.stderr);
}
