//! The firmware's tables (SMBIOS): the records of memory arrays (type 16) and memory devices (type 17).
//!
//! The tables come from the firmware and are not to be trusted: every read is checked against the record's length.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use super::modules::{Layout, MemoryModule, channel_of};

/// Larger tables are cut; real ones have some ten thousand bytes.
const LARGEST_TABLE: u64 = 4 << 20;

const MEMORY_ARRAY: u8 = 16;
const MEMORY_DEVICE: u8 = 17;
const END_OF_TABLE: u8 = 127;

/// The modules, or why they are not known.
pub(super) fn read(root: &Path) -> Result<Layout, String> {
    let path = "sys/firmware/dmi/tables/DMI";
    let mut table = Vec::new();
    let read = File::open(root.join(path)).and_then(|file| file.take(LARGEST_TABLE).read_to_end(&mut table));
    match read.map_err(|error| error.kind()) {
        Ok(_) => {
            let layout = parse(&table);
            if layout.modules.is_empty() {
                Err(format!("/{path} names no memory module"))
            } else {
                Ok(layout)
            }
        }
        Err(ErrorKind::PermissionDenied) => Err(format!("/{path} is readable by root only")),
        Err(ErrorKind::NotFound) => Err(format!("no firmware tables (/{path})")),
        Err(kind) => Err(format!("/{path} cannot be read: {kind}")),
    }
}

fn parse(table: &[u8]) -> Layout {
    let mut layout = Layout::default();
    for record in records(table) {
        match record.kind() {
            MEMORY_ARRAY if record.u8(0x05) == Some(3) => {
                let slots = record.u16(0x0d).map(u32::from);
                layout.slots = layout.slots.map_or(slots, |sum| Some(sum.saturating_add(slots.unwrap_or(0))));
                layout.ecc = match record.u8(0x06) {
                    Some(3) => Some(false),
                    Some(5..=7) => Some(true),
                    _ => layout.ecc,
                };
            }
            MEMORY_DEVICE => layout.modules.extend(module(&record)),
            _ => {}
        }
    }
    layout
}

/// A module that is present; the places without one have size zero.
fn module(record: &Record) -> Option<MemoryModule> {
    let size_bytes = match record.u16(0x0c)? {
        0 => return None,
        0xffff => None,
        0x7fff => record.u32(0x1c).map(|megabytes| u64::from(megabytes & 0x7fff_ffff) << 20),
        size if size & 0x8000 != 0 => Some(u64::from(size & 0x7fff) << 10),
        size => Some(u64::from(size) << 20),
    };
    let (bank, device) = (record.string(0x11), record.string(0x10));
    Some(MemoryModule {
        channel: channel_of(bank.as_deref(), device.as_deref()),
        locator: device,
        size_bytes,
        kind: record.u8(0x12).and_then(kind).map(str::to_owned),
        speed_mts: speed(record, 0x20, 0x58),
        max_speed_mts: speed(record, 0x15, 0x54),
        ranks: record.u8(0x1b).map(|attributes| u32::from(attributes & 0x0f)).filter(|&ranks| ranks > 0),
        manufacturer: record.string(0x17),
        part_number: record.string(0x1a),
    })
}

/// A speed of two bytes, or of four elsewhere where two are too few.
fn speed(record: &Record, short: usize, long: usize) -> Option<u32> {
    match record.u16(short)? {
        0 => None,
        0xffff => record.u32(long).map(|speed| speed & 0x7fff_ffff).filter(|&speed| speed > 0),
        speed => Some(u32::from(speed)),
    }
}

fn kind(code: u8) -> Option<&'static str> {
    Some(match code {
        0x12 => "DDR",
        0x13 | 0x14 => "DDR2",
        0x18 => "DDR3",
        0x1a => "DDR4",
        0x1b => "LPDDR",
        0x1c => "LPDDR2",
        0x1d => "LPDDR3",
        0x1e => "LPDDR4",
        0x20 => "HBM",
        0x21 => "HBM2",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        0x24 => "HBM3",
        _ => return None,
    })
}

/// A record: its formatted part, and its strings behind that.
struct Record<'a> {
    formatted: &'a [u8],
    strings: &'a [u8],
}

impl Record<'_> {
    fn kind(&self) -> u8 {
        self.formatted.first().copied().unwrap_or(END_OF_TABLE)
    }

    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.formatted.get(at..)?.first_chunk().copied()
    }

    fn u8(&self, at: usize) -> Option<u8> {
        self.formatted.get(at).copied()
    }

    fn u16(&self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    fn u32(&self, at: usize) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    /// The string whose number is in the byte at `at`, unless it is one of the phrases for "none".
    fn string(&self, at: usize) -> Option<String> {
        let number = usize::from(self.u8(at)?).checked_sub(1)?;
        let bytes = self.strings.split(|&byte| byte == 0).nth(number)?;
        let text = String::from_utf8_lossy(bytes).trim().to_owned();
        let none = ["", "Not Specified", "Unknown", "NO DIMM", "None", "To Be Filled By O.E.M."];
        (!none.contains(&text.as_str()) && !text.chars().any(char::is_control)).then_some(text)
    }
}

/// The records up to the end of the table or the first that is malformed.
fn records(table: &[u8]) -> impl Iterator<Item = Record<'_>> {
    let mut rest = table;
    std::iter::from_fn(move || {
        let length = usize::from(*rest.get(1)?);
        if length < 4 {
            return None;
        }
        let formatted = rest.get(..length)?;
        let tail = &rest[length..];
        let end = tail.windows(2).position(|pair| pair == [0, 0])?;
        rest = &tail[end + 2..];
        (formatted[0] != END_OF_TABLE).then_some(Record { formatted, strings: &tail[..end] })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, length: u8, fields: &[(usize, &[u8])], strings: &str) -> Vec<u8> {
        let mut bytes = vec![0; usize::from(length)];
        bytes[..2].copy_from_slice(&[kind, length]);
        for (at, value) in fields {
            bytes[*at..at + value.len()].copy_from_slice(value);
        }
        bytes.extend(strings.bytes());
        bytes.extend([0, 0]);
        bytes
    }

    fn table() -> Vec<u8> {
        let array = record(16, 0x17, &[(0x05, &[3, 6]), (0x0d, &[4, 0])], "");
        let module = record(
            17,
            0x5c,
            &[
                (0x0c, &[0xff, 0x7f]),
                (0x10, &[1, 2, 0x22]),
                (0x15, &[0xc0, 0x12]),
                (0x17, &[3]),
                (0x1a, &[4, 2]),
                (0x1c, &65536u32.to_le_bytes()),
                (0x20, &[0xff, 0xff]),
                (0x58, &8800u32.to_le_bytes()),
            ],
            "DIMM 0\0P0 CHANNEL A\0Samsung\0M321R8GA0BB0",
        );
        let empty = record(17, 0x22, &[(0x12, &[2])], "");
        let end = record(127, 4, &[], "");
        let behind = record(17, 0x22, &[(0x0c, &[1, 0])], "");
        [array, module, empty, end, behind].concat()
    }

    #[test]
    fn a_large_module_with_long_fields() {
        let layout = parse(&table());
        assert_eq!((layout.slots, layout.ecc), (Some(4), Some(true)));
        let [module] = layout.modules.as_slice() else { panic!("{layout:?}") };
        assert_eq!(module.size_bytes, Some(64 << 30));
        assert_eq!((module.kind.as_deref(), module.ranks), (Some("DDR5"), Some(2)));
        assert_eq!((module.speed_mts, module.max_speed_mts), (Some(8800), Some(4800)));
        assert_eq!((module.channel.as_deref(), module.locator.as_deref()), (Some("P0 A"), Some("DIMM 0")));
        assert_eq!(module.part_number.as_deref(), Some("M321R8GA0BB0"));
    }

    #[test]
    fn tables_cut_or_changed_anywhere_are_read_without_a_panic() {
        let table = table();
        for end in 0..table.len() {
            parse(&table[..end]);
        }
        for at in 0..table.len() {
            for value in [0, 1, 3, 0x7f, 0xff] {
                let mut changed = table.clone();
                changed[at] = value;
                parse(&changed);
            }
        }
    }

    #[test]
    fn a_short_record_has_fewer_fields() {
        let table = record(17, 0x15, &[(0x0c, &[0x00, 0x10])], "");
        let layout = parse(&table);
        assert_eq!(layout.modules[0].size_bytes, Some(4 << 30));
        assert_eq!((layout.modules[0].speed_mts, layout.modules[0].manufacturer.clone()), (None, None));
    }
}
