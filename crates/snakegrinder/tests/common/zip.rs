//! Zip files whose members are stored as they are, written piece by piece.

/// A zip being written: gives what goes around the members' bytes.
#[derive(Default)]
pub(crate) struct Zip {
    at: u32,
    count: u16,
    directory: Vec<u8>,
}

impl Zip {
    /// What goes before the bytes of the next member.
    pub(crate) fn header(&mut self, name: &str, crc: u32, size: u32) -> Vec<u8> {
        let offset = self.at;
        // Version, flags, method, time and date; then what identifies the bytes.
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        common.extend(crc.to_le_bytes());
        common.extend([size.to_le_bytes(), size.to_le_bytes()].concat());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        self.directory.extend(b"PK\x01\x02\x14\x00");
        self.directory.extend(&common);
        self.directory.extend([0; 10]);
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        let header = [b"PK\x03\x04", common.as_slice(), name.as_bytes()].concat();
        self.at += header.len() as u32 + size;
        self.count += 1;
        header
    }

    /// What goes after the last member.
    pub(crate) fn end(&self) -> Vec<u8> {
        let mut end = self.directory.clone();
        end.extend(b"PK\x05\x06\0\0\0\0");
        end.extend([self.count.to_le_bytes(), self.count.to_le_bytes()].concat());
        end.extend([(self.directory.len() as u32).to_le_bytes(), self.at.to_le_bytes()].concat());
        end.extend([0, 0]);
        end
    }
}
