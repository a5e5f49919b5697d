//! An archive that PyTorch wrote, taken apart so that it can be put together wrongly.

use crate::zip::Zip;

const LINEAR: &[u8] = include_bytes!("../../../cli/tests/data/linear.pt2");

/// The members of an archive, by their names.
#[derive(Clone)]
pub(crate) struct Members(pub(crate) Vec<(String, Vec<u8>)>);

fn number<const N: usize>(at: usize) -> usize {
    LINEAR[at..at + N].iter().rev().fold(0, |sum, &byte| (sum << 8) | usize::from(byte))
}

impl Members {
    /// Those of a linear layer: a weight of 2x3, a bias of 2.
    pub(crate) fn linear() -> Self {
        let end = LINEAR.len() - 22;
        let (count, mut at) = (number::<2>(end + 10), number::<4>(end + 16));
        let mut members = Vec::new();
        for _ in 0..count {
            let (size, length) = (number::<4>(at + 24), number::<2>(at + 28));
            let name = String::from_utf8(LINEAR[at + 46..at + 46 + length].to_vec()).unwrap();
            let local = number::<4>(at + 42);
            let start = local + 30 + number::<2>(local + 26) + number::<2>(local + 28);
            members.push((name, LINEAR[start..start + size].to_vec()));
            at += 46 + length + number::<2>(at + 30) + number::<2>(at + 32);
        }
        Self(members)
    }

    /// The archive with one member's text changed.
    pub(crate) fn replaced(mut self, member: &str, from: &str, to: &str) -> Self {
        let (_, data) = self.0.iter_mut().find(|(name, _)| name == member).unwrap();
        let text = String::from_utf8(data.clone()).unwrap();
        assert!(text.contains(from), "{from} is not in {member}: {text}");
        *data = text.replacen(from, to, 1).into_bytes();
        self
    }

    /// The archive without a member.
    pub(crate) fn without(mut self, member: &str) -> Self {
        let before = self.0.len();
        self.0.retain(|(name, _)| name != member);
        assert_eq!(self.0.len() + 1, before);
        self
    }

    /// The archive with every name changed.
    pub(crate) fn renamed(mut self, change: impl Fn(&str) -> String) -> Self {
        for (name, _) in &mut self.0 {
            *name = change(name);
        }
        self
    }

    /// The archive with one more member.
    pub(crate) fn with(mut self, name: &str, data: &[u8]) -> Self {
        self.0.push((name.to_owned(), data.to_vec()));
        self
    }

    /// The file.
    pub(crate) fn zipped(&self) -> Vec<u8> {
        let (mut zip, mut file) = (Zip::default(), Vec::new());
        for (name, data) in &self.0 {
            file.extend(zip.header(name, crc32fast::hash(data), data.len() as u32));
            file.extend(data);
        }
        file.extend(zip.end());
        file
    }
}

/// The file as PyTorch wrote it.
pub(crate) fn untouched() -> Vec<u8> {
    LINEAR.to_vec()
}
