//! Whether processes meet: each waits at its exchanges, in its order, for the others of the group.

use std::collections::VecDeque;

use warpforge_interp::ProcessId;
use warpforge_ir::OpId;

use super::world::Group;

/// An exchange as the others know it: the operation, and who takes part.
pub(crate) type Meeting = (Option<OpId>, Group);

/// Whether all processes come to their ends; without that, libraries would wait for ever.
pub(crate) fn meets(mut processes: Vec<(ProcessId, VecDeque<Meeting>)>) -> bool {
    loop {
        let next = |processes: &[(ProcessId, VecDeque<Meeting>)], who: ProcessId| {
            processes
                .iter()
                .find(|(process, _)| *process == who)
                .and_then(|(_, queue)| queue.front().cloned())
        };
        let ready = processes.iter().filter_map(|(_, queue)| queue.front()).find(|meeting| {
            meeting.1.iter().all(|&member| next(&processes, member).as_ref() == Some(*meeting))
        });
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
        meets(lists.iter().enumerate().map(|(at, groups)| (process(at), queue(groups))).collect())
    }

    #[test]
    fn those_who_come_in_one_order_meet() {
        assert!(of(&[&[], &[]]));
        assert!(of(&[&[&[0, 1], &[0]], &[&[0, 1]]]));
        assert!(of(&[&[&[0, 1], &[0, 2]], &[&[0, 1]], &[&[0, 2]]]));
        assert!(of(&[&[&[0, 1], &[0, 1, 2]], &[&[0, 1], &[0, 1, 2]], &[&[0, 1, 2]]]));
    }

    #[test]
    fn those_who_wait_for_each_other_do_not() {
        assert!(!of(&[&[&[0, 1]], &[]]));
        assert!(!of(&[&[&[0, 1], &[1, 0]], &[&[1, 0], &[0, 1]]]));
        assert!(!of(&[&[&[0, 1]], &[&[1, 2]], &[&[2, 0]]]));
    }
}
