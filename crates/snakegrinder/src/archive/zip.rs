//! Zip archives whose members are stored as they are: what PyTorch writes, and nothing beyond it.
//!
//! The reader gives each member's bytes in place. It holds these rules, because the file comes from a stranger:
//!
//! - the end record ends the file, and the directory ends where the end record says;
//! - one disk, no encryption, no compression (so a small file cannot unfold into a large one);
//! - names are relative paths of plain segments, each once;
//! - a member's local header agrees with the directory, its bytes lie before the directory, and no two members share
//!   bytes.

use std::collections::HashMap;
use std::ops::Range;

use crate::Error;

const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const LOCAL: u32 = 0x0403_4b50;

const END_SIZE: usize = 22;
const LOCATOR_64_SIZE: usize = 20;
const CENTRAL_SIZE: usize = 46;
const LOCAL_SIZE: usize = 30;

/// Bits of the flags that mean encryption: of the data, strong, of the directory.
const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;

/// A member of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The whole name, with `/` between the segments.
    pub(crate) name: String,
    /// Where its bytes are in the file.
    pub(crate) data: Range<usize>,
    /// The checksum that the directory has.
    pub(crate) crc: u32,
}

/// The directory of an archive.
#[derive(Debug)]
pub(crate) struct Directory {
    members: Vec<Member>,
    by_name: HashMap<String, usize>,
}

impl Directory {
    /// Reads the directory of a file.
    pub(crate) fn read(file: &[u8]) -> Result<Self, Error> {
        let end = EndRecord::find(file)?;
        let mut cursor = Cursor { file, at: end.directory.start };
        let mut members = Vec::with_capacity(end.count);
        let mut headers = Vec::with_capacity(end.count);
        for _ in 0..end.count {
            let (member, header) = central_entry(&mut cursor, &end)?;
            // A folder has no bytes of its own; archivers differ in whether they list them.
            if let Some(member) = member {
                headers.push(header..member.data.end);
                members.push(member);
            }
        }
        if cursor.at != end.directory.end {
            return Err(bad("the directory is longer than its entries", cursor.at));
        }
        refuse_overlaps(headers)?;
        let mut by_name = HashMap::with_capacity(members.len());
        for (at, member) in members.iter().enumerate() {
            if by_name.insert(member.name.clone(), at).is_some() {
                return Err(entry(&member.name, "the name is in the directory twice"));
            }
        }
        Ok(Self { members, by_name })
    }

    /// All members, in the directory's order.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The member of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&Member> {
        self.members.get(*self.by_name.get(name)?)
    }
}

/// What the record at the end of the file says.
struct EndRecord {
    count: usize,
    directory: Range<usize>,
}

impl EndRecord {
    fn find(file: &[u8]) -> Result<Self, Error> {
        let latest =
            file.len().checked_sub(END_SIZE).ok_or_else(|| bad("the file is too short", file.len()))?;
        let earliest = latest.saturating_sub(usize::from(u16::MAX));
        let at = (earliest..=latest)
            .rev()
            .find(|&at| {
                let cursor = Cursor { file, at };
                cursor.peek_u32() == Some(END) && comment_end(file, at) == Some(file.len())
            })
            .ok_or_else(|| {
                bad("no end record at the end of the file: it was cut off or is no zip", latest)
            })?;
        let mut cursor = Cursor { file, at: at + 4 };
        let disks = (cursor.u16()?, cursor.u16()?);
        let counts = (cursor.u16()?, cursor.u16()?);
        let (size, offset) = (cursor.u32()?, cursor.u32()?);
        if let Some(record) = Self::find_64(file, at)? {
            return Ok(record);
        }
        if counts.0 == u16::MAX || size == u32::MAX || offset == u32::MAX {
            return Err(bad("the end record points to a 64-bit one that is not there", at));
        }
        if disks != (0, 0) || counts.0 != counts.1 {
            return Err(bad("archives of several files are not read", at));
        }
        Self::checked(u64::from(counts.0), u64::from(size), u64::from(offset), at)
    }

    fn find_64(file: &[u8], end_at: usize) -> Result<Option<Self>, Error> {
        let Some(locator_at) = end_at.checked_sub(LOCATOR_64_SIZE) else { return Ok(None) };
        let mut cursor = Cursor { file, at: locator_at };
        if cursor.u32()? != LOCATOR_64 {
            return Ok(None);
        }
        let disk = cursor.u32()?;
        let at = to_usize(cursor.u64()?, locator_at)?;
        let disks = cursor.u32()?;
        if disk != 0 || disks > 1 {
            return Err(bad("archives of several files are not read", locator_at));
        }
        let mut cursor = Cursor { file, at };
        if at >= locator_at || cursor.u32()? != END_64 {
            return Err(bad("the 64-bit end record is not where its locator says", locator_at));
        }
        let _size_of_record = cursor.u64()?;
        let _versions = (cursor.u16()?, cursor.u16()?);
        let disks = (cursor.u32()?, cursor.u32()?);
        let counts = (cursor.u64()?, cursor.u64()?);
        let (size, offset) = (cursor.u64()?, cursor.u64()?);
        if disks != (0, 0) || counts.0 != counts.1 {
            return Err(bad("archives of several files are not read", at));
        }
        Self::checked(counts.0, size, offset, at).map(Some)
    }

    fn checked(count: u64, size: u64, offset: u64, end: usize) -> Result<Self, Error> {
        let (start, size) = (to_usize(offset, end)?, to_usize(size, end)?);
        let stop = start.checked_add(size).filter(|&stop| stop <= end);
        let stop = stop.ok_or_else(|| bad("the directory reaches beyond the end record", end))?;
        let count = to_usize(count, end)?;
        // Every entry takes at least its fixed part, so the count cannot make us reserve more than the file justifies.
        if count > size / CENTRAL_SIZE {
            return Err(bad("the end record counts more entries than the directory has room for", end));
        }
        Ok(Self { count, directory: start..stop })
    }
}

fn comment_end(file: &[u8], at: usize) -> Option<usize> {
    let length = file.get(at + 20..at + 22)?;
    Some(at + END_SIZE + usize::from(u16::from_le_bytes([length[0], length[1]])))
}

/// Reads one entry of the directory and the local header it points to. Folders give no member.
fn central_entry(cursor: &mut Cursor<'_>, end: &EndRecord) -> Result<(Option<Member>, usize), Error> {
    let at = cursor.at;
    if cursor.u32()? != CENTRAL {
        return Err(bad("no directory entry where one must be", at));
    }
    let _versions = (cursor.u16()?, cursor.u16()?);
    let (flags, method) = (cursor.u16()?, cursor.u16()?);
    let _time = cursor.u32()?;
    let crc = cursor.u32()?;
    let (packed, size) = (cursor.u32()?, cursor.u32()?);
    let (name_length, extra_length, comment_length) = (cursor.u16()?, cursor.u16()?, cursor.u16()?);
    let (disk, _attributes) = (cursor.u16()?, cursor.bytes(6)?);
    let offset = cursor.u32()?;
    let raw_name = cursor.bytes(usize::from(name_length))?;
    let extra = cursor.bytes(usize::from(extra_length))?;
    cursor.bytes(usize::from(comment_length))?;
    if cursor.at > end.directory.end {
        return Err(bad("a directory entry reaches beyond the directory", at));
    }
    let name = std::str::from_utf8(raw_name).map_err(|_| bad("an entry's name is not UTF-8", at))?;
    check_name(name)?;
    let wide = Wide::read(extra, size, packed, offset).ok_or_else(|| entry(name, "bad 64-bit sizes"))?;
    if flags & ENCRYPTED != 0 {
        return Err(entry(name, "the member is encrypted"));
    }
    if method != 0 {
        let what = format!(
            "the member is compressed (method {method}); weights are used in place, so an archive must be as \
             `torch.export.save` writes it"
        );
        return Err(entry(name, &what));
    }
    if disk != 0 {
        return Err(entry(name, "the member is in another file"));
    }
    if wide.size != wide.packed {
        return Err(entry(name, "a stored member has two different sizes"));
    }
    let header = to_usize(wide.offset, at)?;
    let size = to_usize(wide.size, at)?;
    let start = local_data(cursor.file, header, raw_name, flags, name)?;
    let data = start..start.checked_add(size).ok_or_else(|| entry(name, "the member's size overflows"))?;
    if data.end > end.directory.start {
        return Err(entry(
            name,
            &format!("its {size} bytes at {start} reach beyond the members' part of the file"),
        ));
    }
    let folder = name.ends_with('/');
    if folder && size != 0 {
        return Err(entry(name, "a folder with bytes of its own"));
    }
    Ok(((!folder).then(|| Member { name: name.to_owned(), data, crc }), header))
}

/// Where the data of a member starts, after its local header, which must agree with the directory.
fn local_data(file: &[u8], header: usize, name: &[u8], flags: u16, shown: &str) -> Result<usize, Error> {
    let mut cursor = Cursor { file, at: header };
    if cursor.u32()? != LOCAL {
        return Err(entry(shown, &format!("no local header at byte {header}")));
    }
    let _version = cursor.u16()?;
    let (local_flags, method) = (cursor.u16()?, cursor.u16()?);
    cursor.bytes(LOCAL_SIZE - 14)?;
    let (name_length, extra_length) = {
        let mut lengths = Cursor { file, at: header + LOCAL_SIZE - 4 };
        (lengths.u16()?, lengths.u16()?)
    };
    cursor.at = header + LOCAL_SIZE;
    let local_name = cursor.bytes(usize::from(name_length))?;
    cursor.bytes(usize::from(extra_length))?;
    if local_name != name || method != 0 || (local_flags ^ flags) & ENCRYPTED != 0 {
        return Err(entry(shown, "its local header contradicts the directory"));
    }
    Ok(cursor.at)
}

/// Sizes and offset, with what the 64-bit extra field has in place of the saturated 32-bit values.
struct Wide {
    size: u64,
    packed: u64,
    offset: u64,
}

impl Wide {
    fn read(extra: &[u8], size: u32, packed: u32, offset: u32) -> Option<Self> {
        let mut wide = [u64::from(size), u64::from(packed), u64::from(offset)];
        if wide.iter().all(|&value| value != u64::from(u32::MAX)) {
            return Some(Self { size: wide[0], packed: wide[1], offset: wide[2] });
        }
        let mut rest = extra;
        let mut field = loop {
            let (header, after) = rest.split_at_checked(4)?;
            let id = u16::from_le_bytes([header[0], header[1]]);
            let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
            let (body, after) = after.split_at_checked(length)?;
            if id == 1 {
                break body;
            }
            rest = after;
        };
        for value in &mut wide {
            if *value == u64::from(u32::MAX) {
                let (bytes, after) = field.split_first_chunk::<8>()?;
                *value = u64::from_le_bytes(*bytes);
                field = after;
            }
        }
        Some(Self { size: wide[0], packed: wide[1], offset: wide[2] })
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let path = name.strip_suffix('/').unwrap_or(name);
    let plain = |segment: &str| {
        !segment.is_empty() && segment != "." && segment != ".." && !segment.contains(['\\', '\0', ':'])
    };
    if path.split('/').all(plain) {
        return Ok(());
    }
    Err(entry(name, "the name is not a plain relative path"))
}

fn refuse_overlaps(mut ranges: Vec<Range<usize>>) -> Result<(), Error> {
    ranges.sort_by_key(|range| range.start);
    match ranges.windows(2).find(|pair| pair[0].end > pair[1].start) {
        Some(pair) => Err(bad("two members share bytes", pair[1].start)),
        None => Ok(()),
    }
}

struct Cursor<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(count);
        let found = end.and_then(|end| self.file.get(self.at..end));
        let found = found.ok_or_else(|| bad("the file ends inside a record", self.at))?;
        self.at += count;
        Ok(found)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut out = [0; N];
        out.copy_from_slice(self.bytes(N)?);
        Ok(out)
    }

    fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    fn peek_u32(&self) -> Option<u32> {
        let bytes = self.file.get(self.at..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*bytes))
    }
}

fn bad(what: &str, at: usize) -> Error {
    Error::Zip { what: what.to_owned(), offset: at as u64 }
}

fn entry(name: &str, what: &str) -> Error {
    // Names come from the file and end up on terminals: control characters are shown escaped.
    Error::Entry { entry: name.escape_default().to_string(), what: what.to_owned() }
}

fn to_usize(value: u64, at: usize) -> Result<usize, Error> {
    usize::try_from(value).map_err(|_| bad("a size or offset is beyond the address space", at))
}
