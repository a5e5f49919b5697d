//! Temperature sensors, from `/sys/class/hwmon` and, where that has none, `/sys/class/thermal`.

use std::path::{Path, PathBuf};

use super::record::{Temperature, rounded};
use crate::sysfs;

/// The drivers of sensors that sit in a processor.
const CPU_CHIPS: [&str; 9] = [
    "coretemp",
    "k10temp",
    "k8temp",
    "zenpower",
    "via_cputemp",
    "cpu_thermal",
    "cpu-thermal",
    "soc_thermal",
    "x86_pkg_temp",
];

/// Their readings are in the GPU's own record.
const GPU_CHIPS: [&str; 3] = ["amdgpu", "nouveau", "radeon"];

#[derive(Debug, Clone)]
struct Sensor {
    id: String,
    chip: String,
    label: Option<String>,
    input: PathBuf,
    is_cpu: bool,
}

/// The sensors found, so that a sample reads nothing but their values.
#[derive(Debug, Clone)]
pub(crate) struct Sensors(Vec<Sensor>);

impl Sensors {
    pub(crate) fn new(root: &Path) -> Self {
        let sensors = hwmon(root);
        Self(if sensors.is_empty() { thermal_zones(root) } else { sensors })
    }

    /// The processor's sensors; only the one of each whole package where there is one, because asking a core's own
    /// interrupts that core.
    pub(crate) fn of_cpu(root: &Path) -> Self {
        let mut sensors = Self::new(root).0;
        sensors.retain(|sensor| sensor.is_cpu);
        if sensors.iter().any(Sensor::is_whole_package) {
            sensors.retain(Sensor::is_whole_package);
        }
        Self(sensors)
    }

    pub(crate) fn read(&self) -> Vec<Temperature> {
        self.0.iter().filter_map(Sensor::read).collect()
    }

    pub(crate) fn hottest(&self) -> Option<f64> {
        self.read().iter().map(|sensor| sensor.celsius).reduce(f64::max)
    }
}

impl Sensor {
    fn new(id: String, chip: String, label: Option<String>, input: PathBuf) -> Self {
        let is_cpu = CPU_CHIPS.contains(&chip.as_str());
        Self { id, chip, label, input, is_cpu }
    }

    fn is_whole_package(&self) -> bool {
        self.label.as_deref().is_some_and(|label| label.starts_with("Package id") || label == "Tctl")
    }

    fn read(&self) -> Option<Temperature> {
        let celsius = rounded(sysfs::number::<f64>(&self.input)? / 1000.0);
        // A sensor that is not connected reads as one end of its scale.
        (-60.0..200.0).contains(&celsius).then(|| Temperature {
            id: self.id.clone(),
            chip: self.chip.clone(),
            label: self.label.clone(),
            celsius,
            is_cpu: self.is_cpu,
        })
    }
}

fn hwmon(root: &Path) -> Vec<Sensor> {
    let folder = root.join("sys/class/hwmon");
    let mut sensors = Vec::new();
    for chip in sysfs::names(&folder) {
        let folder = folder.join(&chip);
        let Some(name) = sysfs::text(folder.join("name")) else { continue };
        if GPU_CHIPS.contains(&name.as_str()) {
            continue;
        }
        let mut numbers: Vec<u32> = sysfs::names(&folder)
            .iter()
            .filter_map(|file| file.strip_prefix("temp")?.strip_suffix("_input")?.parse().ok())
            .collect();
        numbers.sort_unstable();
        sensors.extend(numbers.into_iter().map(|number| {
            let label = sysfs::text(folder.join(format!("temp{number}_label")));
            let id = format!("{chip}/temp{number}");
            Sensor::new(id, name.clone(), label, folder.join(format!("temp{number}_input")))
        }));
    }
    sensors
}

fn thermal_zones(root: &Path) -> Vec<Sensor> {
    let folder = root.join("sys/class/thermal");
    let zones = sysfs::names(&folder).into_iter().filter(|name| name.starts_with("thermal_zone"));
    zones
        .filter_map(|zone| {
            let chip = sysfs::text(folder.join(&zone).join("type"))?;
            let input = folder.join(&zone).join("temp");
            Some(Sensor::new(zone, chip, None, input))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::FakeRoot;
    use super::*;

    fn hwmon(root: &FakeRoot, index: u32, name: &str, temperatures: &[(u32, &str, &str)]) {
        let folder = format!("sys/class/hwmon/hwmon{index}");
        root.write(&format!("{folder}/name"), name);
        for (number, label, value) in temperatures {
            root.write(&format!("{folder}/temp{number}_input"), value);
            if !label.is_empty() {
                root.write(&format!("{folder}/temp{number}_label"), label);
            }
        }
    }

    #[test]
    fn every_sensor_but_the_gpus_is_read() {
        let root = FakeRoot::new();
        hwmon(
            &root,
            0,
            "coretemp",
            &[(1, "Package id 0", "61000"), (10, "Core 8", "59500"), (2, "Core 0", "70000")],
        );
        hwmon(&root, 1, "nvme", &[(1, "Composite", "38850"), (2, "", "garbage"), (3, "", "-128000")]);
        hwmon(&root, 2, "amdgpu", &[(1, "edge", "50000")]);
        let readings = Sensors::new(root.path()).read();
        let labels: Vec<_> = readings.iter().map(|sensor| sensor.label.as_deref().unwrap()).collect();
        assert_eq!(labels, ["Package id 0", "Core 0", "Core 8", "Composite"]);
        assert_eq!(readings[3].celsius, 38.85);
        assert_eq!(readings[2].id, "hwmon0/temp10");
        assert!(readings[0].is_cpu && !readings[3].is_cpu);
    }

    #[test]
    fn a_packages_sensor_speaks_for_its_cores() {
        let root = FakeRoot::new();
        hwmon(&root, 0, "coretemp", &[(1, "Package id 0", "61000"), (2, "Core 0", "70000")]);
        assert_eq!(Sensors::of_cpu(root.path()).hottest(), Some(61.0));
        assert_eq!(Sensors::of_cpu(FakeRoot::new().path()).hottest(), None);
    }

    #[test]
    fn thermal_zones_serve_where_hwmon_does_not() {
        let root = FakeRoot::new();
        root.write("sys/class/thermal/thermal_zone0/type", "cpu-thermal")
            .write("sys/class/thermal/thermal_zone0/temp", "45100")
            .write("sys/class/thermal/cooling_device0/type", "fan");
        assert_eq!(Sensors::of_cpu(root.path()).hottest(), Some(45.1));
    }
}
