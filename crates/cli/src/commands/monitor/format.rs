//! Numbers for people.

use std::time::Duration;

const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// Bytes in the largest unit that keeps three digits: `3.10 GiB`.
pub(super) fn bytes(bytes: f64) -> String {
    let (value, unit) = scaled(bytes);
    format!("{value} {unit}")
}

/// Bytes a second: `12.3 MiB/s`.
pub(super) fn rate(bytes_per_second: f64) -> String {
    bytes(bytes_per_second) + "/s"
}

/// A part and its whole in the unit of the whole: `3.10/23.5 GiB`.
pub(super) fn part_of(part: u64, whole: u64) -> String {
    let (value, unit) = scaled(whole as f64);
    let power = UNITS.iter().position(|name| *name == unit).unwrap_or(0);
    format!("{}/{value} {unit}", digits(part as f64 / 1024_f64.powi(power as i32)))
}

/// A clock: `800 MHz`, `2.40 GHz`.
pub(super) fn clock(mhz: f64) -> String {
    if mhz < 1000.0 { format!("{mhz:.0} MHz") } else { format!("{:.2} GHz", mhz / 1000.0) }
}

/// A time in seconds without needless zeros: `1 s`, `0.25 s`.
pub(super) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// The value, or a dash where there is none.
pub(super) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

fn scaled(bytes: f64) -> (String, &'static str) {
    let mut value = bytes.max(0.0);
    let mut unit = 0;
    // 999.5 would show as 1000.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    (if unit == 0 { format!("{value:.0}") } else { digits(value) }, UNITS[unit])
}

/// Three digits.
fn digits(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_three_digits() {
        let cases = [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1000.0, "0.98 KiB"),
            (1024.0 * 9.996, "10.0 KiB"),
            (1024.0 * 1023.9, "1.00 MiB"),
            (1_288_490_188.8, "1.20 GiB"),
            (f64::MAX, "PiB"),
        ];
        for (value, expected) in cases {
            let text = bytes(value);
            assert!(text.ends_with(expected), "{value}: {text}");
        }
        assert_eq!(rate(2048.0), "2.00 KiB/s");
    }

    #[test]
    fn a_part_has_the_unit_of_its_whole() {
        assert_eq!(part_of(512 << 20, 24 << 30), "0.50/24.0 GiB");
        assert_eq!(part_of(0, 0), "0.00/0 B");
    }

    #[test]
    fn clocks_and_times_read_well() {
        assert_eq!(clock(800.4), "800 MHz");
        assert_eq!(clock(2400.0), "2.40 GHz");
        assert_eq!(seconds(Duration::from_millis(250)), "0.25 s");
        assert_eq!(seconds(Duration::from_secs(1)), "1 s");
    }
}
