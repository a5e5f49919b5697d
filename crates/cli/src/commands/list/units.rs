//! Numbers as people read them.

/// Bytes in binary units, as in `23.5 GiB`.
pub(super) fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

/// A disk's bytes in the decimal units that disks are sold by, as in `1.0 TB`.
pub(super) fn disk_bytes(bytes: u64) -> String {
    scaled(bytes as f64, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// A clock, as in `2.10 GHz`.
pub(super) fn clock(mhz: f64) -> String {
    if mhz >= 1000.0 { format!("{:.2} GHz", mhz / 1000.0) } else { format!("{mhz:.0} MHz") }
}

/// A network's speed, as in `25 Gbit/s`.
pub(super) fn network_speed(mbps: u64) -> String {
    match mbps {
        0..1000 => format!("{mbps} Mbit/s"),
        _ if mbps.is_multiple_of(1000) => format!("{} Gbit/s", mbps / 1000),
        _ => format!("{:.1} Gbit/s", mbps as f64 / 1000.0),
    }
}

/// A count and its noun, as in `1 socket` and `2 sockets`.
pub(super) fn counted(count: u32, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let name = units[unit];
    if value.fract() < 0.05 || value >= 1000.0 {
        format!("{value:.0} {name}")
    } else {
        format!("{value:.1} {name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_that_fit() {
        assert_eq!(bytes(48 << 10), "48 KiB");
        assert_eq!(bytes(25_275_125_760), "23.5 GiB");
        assert_eq!(bytes(u64::MAX), "16384 PiB");
        assert_eq!(disk_bytes(1_024_209_543_168), "1 TB");
        assert_eq!((clock(2100.0), clock(300.0)), ("2.10 GHz".to_owned(), "300 MHz".to_owned()));
        assert_eq!(
            (network_speed(400_000), network_speed(2500)),
            ("400 Gbit/s".to_owned(), "2.5 Gbit/s".to_owned())
        );
        assert_eq!((counted(1, "core"), counted(2, "core")), ("1 core".to_owned(), "2 cores".to_owned()));
    }
}
