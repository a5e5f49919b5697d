//! Processor time: how the kernel accounts for it in `/proc/stat` and `/proc/self/stat`, and the load average.

use std::path::Path;

use super::record::percent;
use crate::sysfs;

/// Processor time in the kernel's ticks, whose length cancels out in every share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    pub(crate) busy: u64,
    pub(crate) idle: u64,
    pub(crate) steal: u64,
}

impl Ticks {
    /// The ticks since an earlier reading. The kernel lets single counters step back a little; such a step is zero.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            idle: self.idle.saturating_sub(earlier.idle),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }

    pub(crate) fn total(self) -> u64 {
        self.busy + self.idle + self.steal
    }

    pub(crate) fn busy_percent(self) -> Option<f64> {
        percent(self.busy as f64, self.total() as f64)
    }

    pub(crate) fn steal_percent(self) -> Option<f64> {
        percent(self.steal as f64, self.total() as f64)
    }
}

/// The time of all cores together and of each core that is online.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    pub(crate) all: Ticks,
    pub(crate) cores: Vec<(u32, Ticks)>,
}

impl CpuTimes {
    pub(crate) fn read(root: &Path) -> Option<Self> {
        Self::parse(&sysfs::text(root.join("proc/stat"))?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut all = None;
        let mut cores = Vec::new();
        for line in text.lines().take_while(|line| line.starts_with("cpu")) {
            let Some((name, values)) = line.split_once(' ') else { continue };
            let Some(ticks) = ticks(values) else { continue };
            match name.strip_prefix("cpu") {
                Some("") => all = Some(ticks),
                Some(index) => cores.extend(index.parse().ok().map(|index| (index, ticks))),
                None => {}
            }
        }
        Some(Self { all: all?, cores })
    }

    /// The ticks of one core.
    pub(crate) fn core(&self, index: u32) -> Option<Ticks> {
        self.cores.iter().find(|(number, _)| *number == index).map(|(_, ticks)| *ticks)
    }
}

/// user nice system idle iowait irq softirq steal guest guest_nice; the last two are part of the first two.
fn ticks(values: &str) -> Option<Ticks> {
    let values: Vec<u64> = values.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let &[user, nice, system, idle, ref rest @ ..] = values.as_slice() else { return None };
    let rest = |index: usize| rest.get(index).copied().unwrap_or(0);
    let (iowait, irq, softirq, steal) = (rest(0), rest(1), rest(2), rest(3));
    Some(Ticks { busy: user + nice + system + irq + softirq, idle: idle + iowait, steal })
}

/// The ticks that this process and its children, once waited for, have used.
pub(crate) fn own_ticks(root: &Path) -> Option<u64> {
    let text = sysfs::text(root.join("proc/self/stat"))?;
    // The program's name is in parentheses and may itself hold spaces and parentheses.
    let (_, fields) = text.rsplit_once(')')?;
    let times: Vec<u64> =
        fields.split_whitespace().skip(11).take(4).map_while(|field| field.parse().ok()).collect();
    (times.len() == 4).then(|| times.iter().sum())
}

/// Tasks running or waiting, averaged over 1, 5 and 15 minutes.
pub(crate) fn load_average(root: &Path) -> Option<[f64; 3]> {
    let text = sysfs::text(root.join("proc/loadavg"))?;
    let mut values = text.split_whitespace().map_while(|value| value.parse().ok());
    Some([values.next()?, values.next()?, values.next()?])
}

#[cfg(test)]
mod tests {
    use super::super::testing::FakeRoot;
    use super::*;

    const BEFORE: &str = "cpu  100 10 20 1000 50 5 5 10 40 0\n\
                          cpu0 50 5 10 500 25 5 0 5 20 0\n\
                          cpu2 50 5 10 500 25 0 5 5 20 0\n\
                          intr 12345\n";

    #[test]
    fn guest_time_counts_once_and_waiting_is_not_work() {
        let times = CpuTimes::parse(BEFORE).unwrap();
        assert_eq!(times.all, Ticks { busy: 140, idle: 1050, steal: 10 });
        assert_eq!(times.cores.len(), 2);
        assert_eq!(times.core(2), Some(Ticks { busy: 70, idle: 525, steal: 5 }));
        assert_eq!(times.core(1), None, "an offline core has no time");
    }

    #[test]
    fn shares_are_differences_and_unknown_without_time_between() {
        let before = Ticks { busy: 100, idle: 100, steal: 0 };
        let after = Ticks { busy: 130, idle: 160, steal: 10 };
        assert_eq!(after.since(before).busy_percent(), Some(30.0));
        assert_eq!(after.since(before).steal_percent(), Some(10.0));
        assert_eq!(after.since(after).busy_percent(), None);
        let stepped_back = Ticks { idle: 90, ..after };
        assert_eq!(stepped_back.since(before).idle, 0);
    }

    #[test]
    fn old_kernels_and_malformed_text_do_not_hurt() {
        assert_eq!(CpuTimes::parse("cpu  1 2 3 4\n").unwrap().all, Ticks { busy: 6, idle: 4, steal: 0 });
        assert_eq!(CpuTimes::parse("cpu  1 2 x 4\ncpu0 1 1 1 1\n"), None);
        assert_eq!(CpuTimes::parse("cpu\n"), None);
        assert_eq!(CpuTimes::parse(""), None);
    }

    #[test]
    fn own_time_survives_a_name_with_spaces_and_parentheses() {
        let root = FakeRoot::new();
        root.write("proc/self/stat", "42 (a b) c) S 1 42 42 0 -1 4194304 10 0 0 0 7 3 20 10 20 0 1 0 100");
        assert_eq!(own_ticks(root.path()), Some(40));
        root.write("proc/self/stat", "42 (short) S 1 42");
        assert_eq!(own_ticks(root.path()), None);
    }

    #[test]
    fn a_child_that_was_waited_for_counts_as_our_own() {
        let root = Path::new("/");
        let before = own_ticks(root).unwrap();
        let work = "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done";
        let status = std::process::Command::new("sh").args(["-c", work]).status().unwrap();
        assert!(status.success());
        assert!(own_ticks(root).unwrap() > before);
    }

    #[test]
    fn load_average_needs_three_numbers() {
        let root = FakeRoot::new();
        assert_eq!(load_average(root.path()), None);
        root.write("proc/loadavg", "0.50 1.25 2.00 1/82 9595\n");
        assert_eq!(load_average(root.path()), Some([0.5, 1.25, 2.0]));
        root.write("proc/loadavg", "0.50 many\n");
        assert_eq!(load_average(root.path()), None);
    }
}
