//! How much memory the machine can spare.

/// The bytes that programs may still allocate without swapping, where the system says so.
#[must_use]
pub fn available_bytes() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn available_memory_is_read_in_bytes_or_is_unknown() {
        assert_eq!(parse("MemTotal: 9 kB\nMemAvailable:   1048576 kB\n"), Some(1 << 30));
        assert_eq!(parse("MemTotal: 9 kB\n"), None);
        assert_eq!(parse("MemAvailable: lots kB\n"), None);
        assert_eq!(parse("MemAvailable: 18446744073709551615 kB\n"), None);
    }
}
