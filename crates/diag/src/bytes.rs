//! Sizes for people.

/// A number of bytes in the largest binary unit that leaves at least one of it.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let step = (count.max(1).ilog2() / 10) as usize;
    let value = count as f64 / (1u64 << (10 * step)) as f64;
    let digits = if value.fract() == 0.0 { 0 } else { 1 };
    format!("{value:.digits$} {}", UNITS[step])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_in_binary_units() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (4096, "4 KiB"),
            (11584, "11.3 KiB"),
            (1 << 30, "1 GiB"),
            (u64::MAX, "16 EiB"),
        ];
        for (count, expected) in cases {
            assert_eq!(bytes(count), expected);
        }
    }
}
