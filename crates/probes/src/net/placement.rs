//! Where the two ends of a connection run when both are on this machine.

use std::path::Path;

use crate::affinity;

/// A processor for each end, on different cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// The processor of the asking side.
    pub client: usize,
    /// The processor of the server.
    pub server: usize,
}

impl Placement {
    /// The first processor of this process and the first that is not a sibling of it on the same core, or any second
    /// one if all are. `None` if there is only one, or the system does not report it.
    #[must_use]
    pub fn on_different_cores() -> Option<Self> {
        Self::choose(&affinity::allowed().ok()?, Path::new("/sys"))
    }

    fn choose(cpus: &[usize], sysfs: &Path) -> Option<Self> {
        let (&client, others) = cpus.split_first()?;
        let path = format!("devices/system/cpu/cpu{client}/topology/thread_siblings_list");
        let siblings = std::fs::read_to_string(sysfs.join(path)).unwrap_or_default();
        let is_sibling = |cpu: usize| ranges(&siblings).any(|(first, last)| (first..=last).contains(&cpu));
        let server = others.iter().find(|&&cpu| !is_sibling(cpu)).or(others.first());
        server.map(|&server| Self { client, server })
    }
}

/// The ranges of a list of processors such as `0,4-7`.
fn ranges(list: &str) -> impl Iterator<Item = (usize, usize)> {
    list.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.parse().ok()?, last.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_are_avoided_where_there_is_a_choice() {
        let sysfs = tempfile::tempdir().unwrap();
        let folder = sysfs.path().join("devices/system/cpu/cpu2/topology");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("thread_siblings_list"), "2-3,18\n").unwrap();
        let choose =
            |cpus: &[usize]| Placement::choose(cpus, sysfs.path()).map(|place| (place.client, place.server));
        assert_eq!(choose(&[2, 3, 4, 18]), Some((2, 4)));
        assert_eq!(choose(&[2, 18]), Some((2, 18)));
        assert_eq!(choose(&[5, 6]), Some((5, 6)));
        assert_eq!(choose(&[2]), None);
        assert_eq!(choose(&[]), None);
    }
}
