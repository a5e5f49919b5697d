//! Reading the small text files of `/proc` and `/sys`.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::str::FromStr;

/// No file of `/proc` or `/sys` that is read here is larger; what lies behind this is not read.
const LARGEST_FILE: u64 = 16 << 20;

/// The most CPUs or nodes a list such as `0-3,8` may name: far above what Linux can be built for.
const LONGEST_LIST: usize = 1 << 16;

/// The trimmed text of a file, or `None` if it cannot be read or is empty.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    let text = head(path, LARGEST_FILE)?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// At most the first `limit` bytes of a file, as text; bytes that are no UTF-8 are replaced.
pub(crate) fn head(path: impl AsRef<Path>, limit: u64) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The number in a file.
pub(crate) fn number<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

/// The number in a file, where the kernel writes zero or less for "not known".
pub(crate) fn positive(path: impl AsRef<Path>) -> Option<u64> {
    number(path).filter(|&value: &u64| value > 0)
}

/// The hexadecimal number in a file, with or without `0x`.
pub(crate) fn hex(path: impl AsRef<Path>) -> Option<u32> {
    let text = text(path)?;
    u32::from_str_radix(text.strip_prefix("0x").unwrap_or(&text), 16).ok()
}

/// The last part of what a link points to, such as a device's driver.
pub(crate) fn link_name(path: impl AsRef<Path>) -> Option<String> {
    let target = std::fs::read_link(path).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}

/// The names in a folder, sorted; empty if it cannot be read.
pub(crate) fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The names in a folder that are `prefix` and a number, by that number: `cpu0`, `cpu1`, … `cpu10`.
pub(crate) fn numbered(folder: impl AsRef<Path>, prefix: &str) -> Vec<(u32, String)> {
    let mut found: Vec<_> = names(folder)
        .into_iter()
        .filter_map(|name| Some((name.strip_prefix(prefix)?.parse().ok()?, name)))
        .collect();
    found.sort();
    found
}

/// The numbers of a list such as `0-3,8,10-11`; `None` if it is not one.
pub(crate) fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut list = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last < first || (last - first) as usize >= LONGEST_LIST - list.len() {
            return None;
        }
        list.extend(first..=last);
    }
    Some(list)
}

/// A size such as `48K` or `32M`, in bytes.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_hostile_ones_refused() {
        assert_eq!(parse_list("0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(parse_list(""), Some(vec![]));
        assert_eq!(parse_list("3-1"), None);
        assert_eq!(parse_list("0-4294967295"), None);
        assert_eq!(parse_list("0-x"), None);
    }

    #[test]
    fn sizes_are_bytes_and_never_overflow() {
        assert_eq!(parse_size("48K"), Some(48 << 10));
        assert_eq!(parse_size("2M\n"), Some(2 << 20));
        assert_eq!(parse_size("18446744073709551615G"), None);
        assert_eq!(parse_size("K"), None);
        assert_eq!(parse_size(""), None);
    }

    #[test]
    fn numbered_names_are_in_numeric_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["cpu10", "cpu2", "cpufreq", "cpu0"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let numbers: Vec<_> = numbered(folder.path(), "cpu").into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [0, 2, 10]);
    }

    #[test]
    fn unreadable_empty_and_negative_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("speed");
        assert_eq!(text(&path), None);
        std::fs::write(&path, "\n").unwrap();
        assert_eq!(text(&path), None);
        std::fs::write(&path, "-1\n").unwrap();
        assert_eq!(positive(&path), None);
        std::fs::write(&path, [0xff, b'1', 0x00]).unwrap();
        assert_eq!(number::<u32>(&path), None);
    }
}
