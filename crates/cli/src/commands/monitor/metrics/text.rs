//! A record in the text formats of Prometheus and of OpenMetrics.

use std::fmt::Write as _;

use warpforge_inventory::live::{GpuUsage, TimelineRecord};

use super::http::Form;

/// The whole answer. What the record does not know has no sample; before the first record that is everything but the
/// program's version.
pub(super) fn render(record: Option<&TimelineRecord>, form: Form) -> String {
    let mut text = Exposition { form, text: String::new(), pending: Pending::default() };
    let version = env!("CARGO_PKG_VERSION");
    text.family("warpt_build", "info", "", "The program that answers.");
    text.sample("_info", &[("version", version)], Some(1.0));
    if let Some(record) = record {
        sample_time(&mut text, record);
        processor(&mut text, record);
        memory(&mut text, record);
        disks_and_networks(&mut text, record);
        power_and_heat(&mut text, record);
        gpus(&mut text, &record.gpu_usage);
    }
    match form {
        Form::Prometheus => text.text,
        Form::OpenMetrics => text.text + "# EOF\n",
    }
}

fn sample_time(text: &mut Exposition, record: &TimelineRecord) {
    let seconds = record.timestamp.as_millisecond() as f64 / 1000.0;
    text.gauge("warpt_sample_timestamp_seconds", "seconds", "When this sample was taken.", Some(seconds));
}

fn processor(text: &mut Exposition, record: &TimelineRecord) {
    text.gauge(
        "warpt_cpu_utilization_ratio",
        "ratio",
        "Time all cores spent working.",
        ratio(record.cpu_utilization_percent),
    );
    text.gauge(
        "warpt_cpu_steal_ratio",
        "ratio",
        "Time the hypervisor gave to other guests.",
        ratio(record.cpu_steal_percent),
    );
    text.family("warpt_core_utilization_ratio", "gauge", "ratio", "Time one core spent working.");
    for core in &record.cores {
        text.sample("", &[("core", &core.index.to_string())], ratio(core.utilization_percent));
    }
    text.family("warpt_core_frequency_hertz", "gauge", "hertz", "The clock of one core.");
    for core in &record.cores {
        text.sample("", &[("core", &core.index.to_string())], core.mhz.map(|mhz| mhz * 1e6));
    }
    text.family("warpt_load_average", "gauge", "", "Tasks running or waiting.");
    for (minutes, load) in ["1", "5", "15"].iter().zip(record.load_average.unwrap_or([f64::NAN; 3])) {
        text.sample("", &[("minutes", minutes)], Some(load).filter(|load| !load.is_nan()));
    }
    text.family(
        "warpt_cpu_throttle_events",
        "counter",
        "",
        "Times the firmware lowered a clock for heat or power.",
    );
    text.sample("_total", &[], record.throttle_events.map(|events| events as f64));
}

fn memory(text: &mut Exposition, record: &TimelineRecord) {
    let gauges = [
        ("warpt_memory_size_bytes", "Memory installed.", record.total_memory_bytes),
        ("warpt_memory_available_bytes", "Memory programs can still have.", record.memory_available_bytes),
        ("warpt_memory_used_bytes", "Memory in use.", record.memory_used_bytes),
        ("warpt_swap_size_bytes", "Swap space.", record.swap_total_bytes),
        ("warpt_swap_used_bytes", "Swap space in use.", record.swap_used_bytes),
    ];
    for (name, help, value) in gauges {
        text.gauge(name, "bytes", help, value.map(|bytes| bytes as f64));
    }
}

fn disks_and_networks(text: &mut Exposition, record: &TimelineRecord) {
    text.family("warpt_disk_read_bytes", "counter", "bytes", "Bytes read from a disk.");
    for disk in &record.disks {
        text.sample("_total", &[("device", &disk.name)], Some(disk.read_bytes_total as f64));
    }
    text.family("warpt_disk_written_bytes", "counter", "bytes", "Bytes written to a disk.");
    for disk in &record.disks {
        text.sample("_total", &[("device", &disk.name)], Some(disk.write_bytes_total as f64));
    }
    text.family("warpt_disk_busy_ratio", "gauge", "ratio", "Time a disk had a request in flight.");
    for disk in &record.disks {
        text.sample("", &[("device", &disk.name)], ratio(disk.busy_percent));
    }
    text.family("warpt_network_receive_bytes", "counter", "bytes", "Bytes an interface received.");
    for network in &record.networks {
        text.sample("_total", &[("interface", &network.name)], Some(network.receive_bytes_total as f64));
    }
    text.family("warpt_network_transmit_bytes", "counter", "bytes", "Bytes an interface sent.");
    for network in &record.networks {
        text.sample("_total", &[("interface", &network.name)], Some(network.transmit_bytes_total as f64));
    }
}

fn power_and_heat(text: &mut Exposition, record: &TimelineRecord) {
    text.family("warpt_power_watts", "gauge", "watts", "What a domain draws.");
    for power in &record.power {
        text.sample("", &[("domain", &power.domain)], power.watts);
    }
    text.family("warpt_energy_joules", "counter", "joules", "What a domain has used since sampling began.");
    for power in &record.power {
        text.sample("_total", &[("domain", &power.domain)], power.energy_joules);
    }
    text.family("warpt_temperature_celsius", "gauge", "celsius", "The temperature of a sensor.");
    for sensor in &record.temperatures {
        let label = sensor.label.as_deref().unwrap_or_default();
        let labels = [("sensor", sensor.id.as_str()), ("chip", &sensor.chip), ("label", label)];
        text.sample("", &labels, Some(sensor.celsius));
    }
}

/// One value of a GPU as a metric family: name, unit, help, value.
type GpuMetric = (&'static str, &'static str, &'static str, fn(&GpuUsage) -> Option<f64>);

const GPU_METRICS: [GpuMetric; 9] = [
    ("warpt_gpu_utilization_ratio", "ratio", "Time a GPU had a kernel running.", |gpu| {
        ratio(gpu.utilization_percent)
    }),
    ("warpt_gpu_memory_size_bytes", "bytes", "A GPU's memory.", |gpu| {
        gpu.memory_total_bytes.map(|bytes| bytes as f64)
    }),
    ("warpt_gpu_memory_used_bytes", "bytes", "A GPU's memory in use.", |gpu| {
        gpu.memory_used_bytes.map(|bytes| bytes as f64)
    }),
    ("warpt_gpu_power_watts", "watts", "What a GPU draws.", |gpu| gpu.power_watts),
    ("warpt_gpu_power_limit_watts", "watts", "What a GPU may draw.", |gpu| gpu.power_limit_watts),
    ("warpt_gpu_temperature_celsius", "celsius", "A GPU's temperature.", |gpu| gpu.temperature_celsius),
    ("warpt_gpu_core_frequency_hertz", "hertz", "The clock of a GPU's cores.", |gpu| {
        gpu.graphics_mhz.map(|mhz| mhz * 1e6)
    }),
    ("warpt_gpu_memory_frequency_hertz", "hertz", "The clock of a GPU's memory.", |gpu| {
        gpu.memory_mhz.map(|mhz| mhz * 1e6)
    }),
    ("warpt_gpu_throttled", "", "Whether a GPU's clocks are held down (1) or not (0).", |gpu| {
        gpu.throttle_reasons.as_ref().map(|reasons| f64::from(u8::from(!reasons.is_empty())))
    }),
];

fn gpus(text: &mut Exposition, gpus: &[GpuUsage]) {
    for (name, unit, help, value) in GPU_METRICS {
        text.family(name, "gauge", unit, help);
        for gpu in gpus {
            let index = gpu.index.to_string();
            let labels = [
                ("index", index.as_str()),
                ("model", gpu.model.as_deref().unwrap_or_default()),
                ("guid", gpu.guid.as_deref().unwrap_or_default()),
            ];
            text.sample("", &labels, value(gpu));
        }
    }
}

/// A percentage as a ratio, with the four decimals its two leave.
fn ratio(percent: Option<f64>) -> Option<f64> {
    percent.map(|percent| (percent * 100.0).round() / 10_000.0)
}

/// Text under construction: families in the order they are begun, each followed by its samples.
struct Exposition {
    form: Form,
    text: String,
    pending: Pending,
}

/// A family that gets its head when its first sample comes, so that one without any leaves no trace.
#[derive(Default)]
struct Pending {
    name: &'static str,
    head: String,
}

impl Exposition {
    fn family(&mut self, name: &'static str, kind: &str, unit: &str, help: &str) {
        let head = match self.form {
            Form::OpenMetrics => {
                let unit = if unit.is_empty() { String::new() } else { format!("# UNIT {name} {unit}\n") };
                format!("# TYPE {name} {kind}\n{unit}# HELP {name} {help}\n")
            }
            // A family goes by the name of its samples, units are not told and there is no kind for facts.
            Form::Prometheus => {
                let (suffix, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    kind => ("", kind),
                };
                format!("# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n")
            }
        };
        self.pending = Pending { name, head };
    }

    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: Option<f64>) {
        let Some(value) = value else { return };
        self.text.push_str(&std::mem::take(&mut self.pending.head));
        self.text.push_str(self.pending.name);
        self.text.push_str(suffix);
        for (index, (key, value)) in labels.iter().enumerate() {
            let opening = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{opening}{key}=\"{}\"", escape(value));
        }
        let closing = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{closing} {value}");
    }

    fn gauge(&mut self, name: &'static str, unit: &str, help: &str, value: Option<f64>) {
        self.family(name, "gauge", unit, help);
        self.sample("", &[], value);
    }
}

fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use warpforge_inventory::live::{CoreUsage, DiskUsage, PowerUsage, Temperature};

    use super::*;

    fn record() -> TimelineRecord {
        let sensor = |id: &str| Temperature {
            id: id.to_owned(),
            chip: "nvme".to_owned(),
            label: Some("Composite".to_owned()),
            celsius: 38.5,
            is_cpu: false,
        };
        TimelineRecord {
            cpu_utilization_percent: Some(6.12),
            memory_available_bytes: Some(4096),
            load_average: Some([0.5, 0.25, 0.125]),
            cores: vec![CoreUsage { index: 3, utilization_percent: None, mhz: Some(2400.0) }],
            disks: vec![DiskUsage {
                name: "a\"b\\c".to_owned(),
                read_bytes_total: 512,
                ..DiskUsage::default()
            }],
            power: vec![PowerUsage { domain: "package-0".to_owned(), watts: None, energy_joules: Some(2.5) }],
            temperatures: vec![sensor("hwmon1/temp1"), sensor("hwmon2/temp1")],
            gpu_usage: vec![GpuUsage { power_watts: Some(310.5), ..GpuUsage::default() }],
            ..TimelineRecord::default()
        }
    }

    #[test]
    fn values_have_base_units_and_labels_are_escaped() {
        let text = render(Some(&record()), Form::OpenMetrics);
        for line in [
            "warpt_cpu_utilization_ratio 0.0612",
            "warpt_memory_available_bytes 4096",
            "warpt_core_frequency_hertz{core=\"3\"} 2400000000",
            "warpt_load_average{minutes=\"15\"} 0.125",
            "warpt_disk_read_bytes_total{device=\"a\\\"b\\\\c\"} 512",
            "warpt_energy_joules_total{domain=\"package-0\"} 2.5",
            "warpt_gpu_power_watts{index=\"0\",model=\"\",guid=\"\"} 310.5",
        ] {
            assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
        }
    }

    #[test]
    fn what_is_unknown_is_absent_together_with_its_head() {
        let text = render(Some(&record()), Form::OpenMetrics);
        for name in
            ["warpt_power_watts", "warpt_core_utilization_ratio", "warpt_swap", "warpt_gpu_throttled", "NaN"]
        {
            assert!(!text.contains(name), "{name} in\n{text}");
        }
    }

    #[test]
    fn the_text_keeps_the_formats_rules() {
        let text = render(Some(&record()), Form::OpenMetrics);
        assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1);
        let (mut families, mut series) = (HashSet::new(), HashSet::new());
        let mut current = (String::new(), String::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(families.insert(name.to_owned()), "{name} comes twice");
                current = (name.to_owned(), kind.to_owned());
            } else if let Some(rest) = line.strip_prefix("# UNIT ") {
                let (name, unit) = rest.split_once(' ').unwrap();
                assert!(name.ends_with(&format!("_{unit}")), "{name} does not end with its unit {unit}");
            } else if !line.starts_with('#') {
                let (name, _) = line.rsplit_once(' ').unwrap();
                assert!(series.insert(name.to_owned()), "{name} comes twice");
                let bare = name.split('{').next().unwrap();
                let suffix = match current.1.as_str() {
                    "counter" => "_total",
                    "info" => "_info",
                    _ => "",
                };
                assert_eq!(bare, format!("{}{suffix}", current.0));
            }
        }
        assert!(series.len() > 10);
    }

    #[test]
    fn prometheus_has_its_own_heads_and_the_same_samples() {
        let of = |form| render(Some(&record()), form);
        let (prometheus, open) = (of(Form::Prometheus), of(Form::OpenMetrics));
        let samples = |text: &str| {
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(samples(&prometheus), samples(&open));
        assert!(!prometheus.contains("# UNIT") && !prometheus.contains("# EOF"), "{prometheus}");
        for head in ["# TYPE warpt_disk_read_bytes_total counter", "# TYPE warpt_build_info gauge"] {
            assert!(prometheus.lines().any(|line| line == head), "no `{head}` in\n{prometheus}");
        }
    }
}
