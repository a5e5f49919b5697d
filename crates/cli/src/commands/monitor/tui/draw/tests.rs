//! Whole screens of made-up machines, as text.

use std::time::Duration;

use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use warpforge_inventory::live::{
    CoreUsage, DiskUsage, GpuUsage, NetworkUsage, PowerUsage, ProcessUsage, Temperature, TimelineRecord,
};

use super::draw;
use crate::commands::monitor::feed::Sample;
use crate::commands::monitor::tui::programs::Programs;
use crate::commands::monitor::tui::state::State;
use crate::commands::monitor::tui::theme::Theme;

const GIB: u64 = 1 << 30;

fn machine(cores: u32) -> TimelineRecord {
    TimelineRecord {
        timestamp: Timestamp::from_second(1_764_943_201).unwrap(),
        cpu_utilization_percent: Some(43.7),
        total_memory_bytes: Some(64 * GIB),
        memory_used_bytes: Some(16 * GIB),
        memory_available_bytes: Some(48 * GIB),
        memory_utilization_percent: Some(25.0),
        swap_total_bytes: Some(8 * GIB),
        swap_used_bytes: Some(2 * GIB),
        load_average: Some([1.5, 1.25, 1.0]),
        cpu_steal_percent: Some(0.3),
        cores: (0..cores)
            .map(|index| CoreUsage {
                index,
                utilization_percent: Some(f64::from(index % 5) * 25.0),
                mhz: None,
            })
            .collect(),
        disks: vec![DiskUsage {
            name: "nvme0n1".to_owned(),
            read_bytes_per_second: Some(12.5 * 1024.0 * 1024.0),
            write_bytes_per_second: Some(2048.0),
            busy_percent: Some(37.0),
            ..DiskUsage::default()
        }],
        networks: vec![NetworkUsage {
            name: "eth0".to_owned(),
            receive_bytes_per_second: Some(5.0 * 1024.0),
            transmit_bytes_per_second: Some(300.0),
            ..NetworkUsage::default()
        }],
        ..TimelineRecord::default()
    }
}

fn gpu(index: u32) -> GpuUsage {
    GpuUsage {
        index,
        model: Some("NVIDIA H200".to_owned()),
        utilization_percent: Some(84.0),
        memory_utilization_percent: Some(65.0),
        memory_used_bytes: Some(91 * GIB),
        memory_total_bytes: Some(140 * GIB),
        power_watts: Some(310.4 + f64::from(index)),
        power_limit_watts: Some(700.0),
        temperature_celsius: Some(61.0),
        graphics_mhz: Some(1980.0),
        ..GpuUsage::default()
    }
}

fn programs(count: u32) -> Vec<ProcessUsage> {
    (0..count)
        .map(|index| ProcessUsage {
            pid: 1000 + index,
            name: format!("program-{index}"),
            user: Some("alice".to_owned()),
            cpu_percent: 99.5 - f64::from(index),
            memory_bytes: u64::from(index) << 20,
            parent: index.checked_sub(1).map(|index| 1000 + index),
            command: Some(format!("/usr/bin/program-{index} --verbose")),
            gpu_memory_bytes: None,
        })
        .collect()
}

fn state(record: TimelineRecord) -> State {
    let mut state = State::new("forge".to_owned(), Duration::from_secs(1), None);
    state.take(Sample { record, processes: Some(programs(50)) });
    state
}

fn screen(state: &mut State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, &Theme::new(true))).unwrap();
    terminal.backend().to_string()
}

fn assert_shows(screen: &str, texts: &[&str]) {
    for text in texts {
        assert!(screen.contains(text), "no `{text}` on\n{screen}");
    }
}

#[test]
fn a_small_screen_shows_every_section() {
    let text = screen(&mut state(machine(4)), 80, 24);
    assert_shows(
        &text,
        &[
            "warpt monitor · forge · 4 cores",
            "every 1 s",
            "CPU 43.7%",
            "load 1.50 1.25 1.00 · steal 0.3%",
            "25%",
            "48.0 GiB free",
            "RAM  █▌···· 16.0/64.0 GiB",
            "Swap █▌···· 2.00/8.00 GiB",
            "read  12.5 MiB/s",
            "write 2.00 KiB/s",
            "37% busy",
            "in    5.00 KiB/s",
            "out   300 B/s",
            "1-9 of 50",
            "program-0",
            "alice",
            "99.5",
            "q  leave",
        ],
    );
}

#[test]
fn a_machine_without_sensors_says_so_once_a_section() {
    let text = screen(&mut state(machine(4)), 80, 24);
    assert_eq!(text.matches("not available on this machine").count(), 4, "{text}");
    assert_shows(&text, &["Power", "Temperature", "Clocks", "GPUs"]);
    assert!(!text.contains("0.0 W") && !text.contains("0 °C") && !text.contains("0 MHz"), "{text}");
}

#[test]
fn a_machine_that_tells_nothing_shows_no_number() {
    let record =
        TimelineRecord { timestamp: Timestamp::from_second(1).unwrap(), ..TimelineRecord::default() };
    let mut state = state(record);
    state.programs = Programs::default();
    let text = screen(&mut state, 80, 24);
    let panels: String = text.lines().skip(1).collect();
    assert!(!panels.contains(|character: char| character.is_ascii_digit()), "{text}");
    assert_eq!(text.matches("not available on").count(), 9, "once a section: {text}");
}

#[test]
fn sixteen_cores_have_bars_and_256_have_marks() {
    let text = screen(&mut state(machine(16)), 80, 24);
    assert_shows(&text, &[" 0 ·····   0%", " 4 █████ 100%", "12 ██▌··  50%", "15 ·····   0%"]);
    let text = screen(&mut state(machine(256)), 80, 24);
    assert_shows(&text, &["256 cores", "  0 ·▂▄▆█·▂▄▆█"]);
    let text = screen(&mut state(machine(256)), 200, 60);
    assert_shows(&text, &["  0 ·▂▄▆█", "247 ▄▆█·▂▄▆█·"]);
    let text = screen(&mut state(machine(1024)), 80, 24);
    assert_shows(&text, &["5 cores a mark", "1024 cores"]);
}

#[test]
fn two_gpus_have_a_line_each_and_their_power_is_summed() {
    let record = TimelineRecord { gpu_usage: vec![gpu(0), gpu(1)], ..machine(4) };
    let text = screen(&mut state(record.clone()), 80, 24);
    assert_shows(&text, &["2 GPUs", "622 W together", " 0 NVIDIA", " 1 NVIDIA", "84%", "91.0/140 GiB"]);
    assert_shows(&text, &["310/700 W", "311/700 W", "61 °C", "1.98 GHz", "program-0"]);
    assert_eq!(text.matches("not available on this machine").count(), 3, "GPUs are there: {text}");
    let text = screen(&mut state(record), 120, 40);
    assert_shows(&text, &["NVIDIA H200", "91.0/140 GiB"]);
}

#[test]
fn sensors_show_power_heat_and_clocks() {
    let sensor = |label: &str, celsius| Temperature {
        id: label.to_owned(),
        chip: "coretemp".to_owned(),
        label: Some(label.to_owned()),
        celsius,
        is_cpu: true,
    };
    let mut record = machine(2);
    record.power = vec![
        PowerUsage { domain: "package-0".to_owned(), watts: Some(45.25), energy_joules: None },
        PowerUsage { domain: "package-1".to_owned(), watts: None, energy_joules: None },
    ];
    record.temperatures = vec![sensor("Core 0", 55.0), sensor("Package id 0", 61.4)];
    record.cores[0].mhz = Some(800.0);
    record.cores[1].mhz = Some(3200.0);
    record.throttle_events = Some(3);
    let text = screen(&mut state(record), 120, 40);
    assert_shows(&text, &["package-0", "45.2 W", "needs root to read", "coretemp Package id 0", "61 °C"]);
    assert_shows(&text, &["800 MHz to 3.20 GHz", "throttled since start", "2.00 GHz"]);
}

#[test]
fn pausing_scrolling_and_help_are_visible() {
    let mut state = state(machine(4));
    state.url = Some("http://127.0.0.1:9100/metrics".to_owned());
    state.paused = true;
    screen(&mut state, 120, 40);
    state.programs.move_by(isize::MAX);
    let text = screen(&mut state, 120, 40);
    assert_shows(&text, &["PAUSED", "http://127.0.0.1:9100/metrics", "of 50", "program-49"]);
    state.help = true;
    assert_shows(&screen(&mut state, 80, 24), &["Help", "sort by CPU time, memory", "Ctrl-C"]);
}

#[test]
fn a_narrow_header_gives_the_least_important_up_first() {
    let mut state = state(machine(4));
    state.url = Some("http://127.0.0.1:9100/metrics".to_owned());
    let text = screen(&mut state, 80, 24);
    let header = text.lines().next().unwrap();
    assert!(
        header.contains("forge · http://127.0.0.1:9100/metrics") && header.contains("every 1 s · "),
        "{header}"
    );
    assert!(!header.contains("2025-12-05"), "{header}");
    state.host = "a-machine-with-a-long-name.example".to_owned();
    let text = screen(&mut state, 80, 24);
    assert!(!text.contains("127.0.0.1") && text.contains("every 1 s"), "{text}");
}

#[test]
fn any_size_can_be_drawn() {
    let record = TimelineRecord { gpu_usage: (0..8).map(gpu).collect(), ..machine(96) };
    let mut state = state(record);
    for (width, height) in [(1, 1), (20, 5), (60, 18), (80, 24), (300, 20), (60, 100), (400, 120)] {
        screen(&mut state, width, height);
    }
    assert_shows(&screen(&mut state, 59, 17), &["This terminal is 59 by 17"]);
}

#[test]
fn before_the_first_sample_it_says_so() {
    let mut state = State::new("forge".to_owned(), Duration::from_secs(1), None);
    let text = screen(&mut state, 80, 24);
    // Processor, memory, disk, network, four kinds of sensors, programs.
    assert_eq!(text.matches("measuring …").count(), 9, "{text}");
    assert!(!text.contains("not available"), "{text}");
}

/// Numbers with their units, as they are on the smallest screen.
#[test]
fn the_smallest_screen_cuts_no_number() {
    let mut record = machine(4);
    record.disks[0].read_bytes_per_second = Some(999.0 * 1024.0 * 1024.0);
    record.networks[0].transmit_bytes_per_second = Some(123.0 * 1024.0 * 1024.0);
    let mut state = state(record.clone());
    let mut heavy = programs(3);
    heavy[0].pid = 4_194_303;
    heavy[0].cpu_percent = 25_600.0;
    heavy[0].memory_bytes = 987 << 20;
    heavy[0].gpu_memory_bytes = Some(123 * GIB);
    state.take(Sample { record, processes: Some(heavy) });
    let text = screen(&mut state, 60, 18);
    assert_shows(&text, &["4194303", "25600.0", "987 MiB", "123 GiB", "999 MiB/s", "123 MiB/s"]);
    assert_shows(&text, &["16.0 GiB", "2.00 GiB", "43.7%", "program-0", "q  leave"]);
    state.help = true;
    assert_shows(&screen(&mut state, 60, 18), &["SIGTERM", "this help"]);
}

#[test]
fn the_tree_the_filter_and_command_lines_are_visible() {
    let mut state = state(machine(4));
    state.programs.toggle_tree();
    state.programs.commands = true;
    let text = screen(&mut state, 120, 40);
    assert_shows(&text, &["COMMAND", "/usr/bin/program-0 --verbose", "  └ /usr/bin/program-2 --verbose"]);
    state.typing = true;
    state.programs.filter_by("program-1".to_owned());
    assert_shows(&screen(&mut state, 120, 40), &["Programs /program-1▏"]);
    assert!(!screen(&mut state, 120, 40).contains("GPU MEM"), "no program has any");
    state.note = Some("SIGTERM sent to 1001 (program-1)".to_owned());
    assert_shows(&screen(&mut state, 120, 40), &["SIGTERM sent to 1001"]);
}
