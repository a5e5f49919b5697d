//! Deadlock check: each process blocks at its collectives, in order, until the rest of the group arrives.

use std::collections::VecDeque;

use warpforge_interp::ProcessId;
use warpforge_ir::OpId;

use super::communicators::Group;

/// A collective call as other processes identify it: operation and group.
pub(crate) type CollectiveCall = (Option<OpId>, Group);

/// Whether all processes finish. Otherwise the library would block forever.
pub(crate) fn is_deadlock_free(mut processes: Vec<(ProcessId, VecDeque<CollectiveCall>)>) -> bool {
    loop {
        let next = |processes: &[(ProcessId, VecDeque<CollectiveCall>)], who: ProcessId| {
            processes
                .iter()
                .find(|(process, _)| *process == who)
                .and_then(|(_, queue)| queue.front().cloned())
        };
        let ready = processes
            .iter()
            .filter_map(|(_, queue)| queue.front())
            .find(|call| call.1.iter().all(|&member| next(&processes, member).as_ref() == Some(*call)));
        let Some((_, group)) = ready.cloned() else {
            return processes.iter().all(|(_, queue)| queue.is_empty());
        };
        for (_, queue) in processes.iter_mut().filter(|(process, _)| group.contains(process)) {
            queue.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(replica: usize) -> ProcessId {
        ProcessId { replica, partition: 0 }
    }

    fn of(lists: &[&[&[usize]]]) -> bool {
        let queue = |groups: &[&[usize]]| {
            groups.iter().map(|group| (None, group.iter().map(|&at| process(at)).collect())).collect()
        };
        is_deadlock_free(lists.iter().enumerate().map(|(at, groups)| (process(at), queue(groups))).collect())
    }

    #[test]
    fn consistent_orders_are_deadlock_free() {
        assert!(of(&[&[], &[]]));
        assert!(of(&[&[&[0, 1], &[0]], &[&[0, 1]]]));
        assert!(of(&[&[&[0, 1], &[0, 2]], &[&[0, 1]], &[&[0, 2]]]));
        assert!(of(&[&[&[0, 1], &[0, 1, 2]], &[&[0, 1], &[0, 1, 2]], &[&[0, 1, 2]]]));
    }

    #[test]
    fn circular_waits_deadlock() {
        assert!(!of(&[&[&[0, 1]], &[]]));
        assert!(!of(&[&[&[0, 1], &[1, 0]], &[&[1, 0], &[0, 1]]]));
        assert!(!of(&[&[&[0, 1]], &[&[1, 2]], &[&[2, 0]]]));
    }
}
