//! How much memory the process has used.

/// The most memory that this process had in use at once, in bytes; `None` where the system does not tell.
///
/// Pages of mapped files that were touched count, as they do for the operating system.
#[must_use]
pub fn process_peak_bytes() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read() {
        assert_eq!(parse("Name:\tx\nVmHWM:\t  1204 kB\nVmRSS:\t 1 kB\n"), Some(1204 * 1024));
        assert_eq!(parse("Name:\tx\n"), None);
        assert_eq!(parse("VmHWM:\t many kB"), None);
        if cfg!(target_os = "linux") {
            assert!(process_peak_bytes() > Some(1 << 16));
        }
    }
}
