//! Where the processes of a parallel run meet.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard};

use warpforge_ir::OpId;

use crate::Value;
use crate::error::{ErrorKind, Result};

/// The place of a process in the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId {
    /// Its replica.
    pub replica: usize,
    /// Its partition.
    pub partition: usize,
}

/// The grid of processes and what they exchange.
pub(crate) struct Mesh {
    pub(crate) replicas: usize,
    pub(crate) partitions: usize,
    state: Mutex<State>,
    changed: Condvar,
}

/// One meeting: the operation, how often the processes have been there, and who takes part.
type Meeting = (OpId, u64, Vec<ProcessId>);

struct State {
    meetings: HashMap<Meeting, HashMap<ProcessId, Vec<Value>>>,
    /// Processes that still have to fetch the outcome of a complete meeting.
    leaving: HashMap<Meeting, usize>,
    channels: HashMap<i64, VecDeque<Vec<Value>>>,
    /// Processes that neither wait nor have finished.
    active: usize,
    /// Processes that wait.
    waiting: usize,
    /// Counts the changes.
    version: u64,
    /// Waiting processes that have looked since the last change.
    in_vain: usize,
    failure: Option<Failure>,
}

#[derive(Clone, Copy)]
enum Failure {
    Deadlock,
    Peer,
}

impl Failure {
    fn kind(self) -> ErrorKind {
        match self {
            Self::Deadlock => ErrorKind::Deadlock,
            Self::Peer => ErrorKind::PeerFailed,
        }
    }
}

impl Mesh {
    pub(crate) fn new(replicas: usize, partitions: usize) -> Self {
        let state = State {
            meetings: HashMap::new(),
            leaving: HashMap::new(),
            channels: HashMap::new(),
            active: replicas * partitions,
            waiting: 0,
            version: 0,
            in_vain: 0,
            failure: None,
        };
        Self { replicas, partitions, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A process that panicked has left the state as it was before or after one step; both are usable.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A process has finished, well or not.
    pub(crate) fn leave(&self, failed: bool) {
        let mut state = self.lock();
        state.active -= 1;
        if failed && state.failure.is_none() {
            state.failure = Some(Failure::Peer);
        }
        self.change(&mut state);
    }

    /// Waits until `ready` gives something, noticing when nobody is left who could make it so.
    fn wait<T>(&self, mut ready: impl FnMut(&mut State) -> Option<T>) -> Result<T> {
        let mut state = self.lock();
        state.active -= 1;
        state.waiting += 1;
        let mut seen = None;
        let outcome = loop {
            if let Some(found) = ready(&mut state) {
                self.change(&mut state);
                break Ok(found);
            }
            if seen != Some(state.version) {
                seen = Some(state.version);
                state.in_vain += 1;
            }
            if state.active == 0 && state.in_vain == state.waiting && state.failure.is_none() {
                state.failure = Some(Failure::Deadlock);
                self.changed.notify_all();
            }
            if let Some(failure) = state.failure {
                break Err(failure.kind().into());
            }
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        };
        state.active += 1;
        state.waiting -= 1;
        outcome
    }

    /// Something has changed: whoever waits has to look again.
    fn change(&self, state: &mut State) {
        state.version += 1;
        state.in_vain = 0;
        self.changed.notify_all();
    }
}

/// A process and how often it has been at each operation.
pub(crate) struct Process<'s> {
    pub(crate) mesh: &'s Mesh,
    pub(crate) id: ProcessId,
    visits: HashMap<OpId, u64>,
}

impl<'s> Process<'s> {
    pub(crate) fn new(mesh: &'s Mesh, id: ProcessId) -> Self {
        Self { mesh, id, visits: HashMap::new() }
    }

    /// Gives `values` to the group and takes what each member gave, in the order of the group.
    pub(crate) fn exchange(
        &mut self,
        op: OpId,
        group: &[ProcessId],
        values: Vec<Value>,
    ) -> Result<Vec<Vec<Value>>> {
        let visit = self.visits.entry(op).or_default();
        *visit += 1;
        let meeting: Meeting = (op, *visit, group.to_vec());
        {
            let mut state = self.mesh.lock();
            let given = state.meetings.entry(meeting.clone()).or_default();
            given.insert(self.id, values);
            if given.len() == group.len() {
                state.leaving.insert(meeting.clone(), group.len());
            }
            self.mesh.change(&mut state);
        }
        self.mesh.wait(|state| {
            let given = state.meetings.get(&meeting)?;
            let all: Option<Vec<Vec<Value>>> =
                group.iter().map(|member| given.get(member).cloned()).collect();
            let all = all?;
            let left = state.leaving.get_mut(&meeting)?;
            *left -= 1;
            if *left == 0 {
                state.leaving.remove(&meeting);
                state.meetings.remove(&meeting);
            }
            Some(all)
        })
    }

    /// Puts values into a channel.
    pub(crate) fn send(&mut self, channel: i64, values: Vec<Value>) {
        let mut state = self.mesh.lock();
        state.channels.entry(channel).or_default().push_back(values);
        self.mesh.change(&mut state);
    }

    /// Takes values from a channel, waiting for them.
    pub(crate) fn receive(&mut self, channel: i64) -> Result<Vec<Value>> {
        self.mesh.wait(|state| state.channels.get_mut(&channel).and_then(VecDeque::pop_front))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(mesh: &Mesh, replica: usize) -> Process<'_> {
        Process::new(mesh, ProcessId { replica, partition: 0 })
    }

    #[test]
    fn a_wait_that_nobody_can_end_is_an_error() {
        let mesh = Mesh::new(2, 1);
        std::thread::scope(|scope| {
            let threads = [0, 1].map(|replica| {
                let mesh = &mesh;
                scope.spawn(move || {
                    let mut process = process(mesh, replica);
                    // Both send to channel 1 and wait for channel 2.
                    process.send(1, vec![Value::Token]);
                    let outcome = process.receive(2);
                    mesh.leave(outcome.is_err());
                    outcome.is_err()
                })
            });
            for thread in threads {
                assert!(thread.join().expect("no panic"));
            }
        });
    }

    #[test]
    fn what_is_sent_arrives_in_order() {
        let mesh = Mesh::new(2, 1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut sender = process(&mesh, 0);
                sender.send(7, vec![]);
                sender.send(7, vec![Value::Token]);
                mesh.leave(false);
            });
            let mut receiver = process(&mesh, 1);
            assert!(receiver.receive(7).is_ok_and(|values| values.is_empty()));
            assert!(receiver.receive(7).is_ok_and(|values| values.len() == 1));
            assert!(receiver.receive(7).is_err(), "the other process has finished");
            mesh.leave(false);
        });
    }
}
