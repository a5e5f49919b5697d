//! A fake collective library for tests: ranks are threads, device memory is host memory, and results are computed. Ranks that join
//! a communicator one by one wait for each other, as those of the real library do.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{note, note_event};
use crate::collectives::{Functions, UniqueId};
use crate::driver::{Address, Handle};

/// Rank 1 of a group fails to reduce so many elements.
pub(crate) const UNLUCKY: usize = 13;

/// Status for missing peers and for invalid arguments.
const GONE: i32 = 6;
const WRONG: i32 = 4;

/// Ranks that know each other.
#[derive(Default)]
struct Clique {
    size: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The operands of each rank, by collective.
    given: HashMap<u64, HashMap<i32, Vec<u8>>>,
    /// Messages in flight between ranks.
    sent: HashMap<(i32, i32), VecDeque<Vec<u8>>>,
    joined: usize,
    aborted: bool,
    told: Vec<(i32, String)>,
}

impl Clique {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a condition.
    fn wait<T>(&self, mut there: impl FnMut(&mut State) -> Option<T>) -> Result<T, i32> {
        let mut state = self.lock();
        loop {
            if let Some(found) = there(&mut state) {
                return Ok(found);
            }
            if state.aborted {
                return Err(GONE);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// One rank.
struct End {
    clique: Arc<Clique>,
    rank: i32,
    collectives: AtomicU64,
}

/// A call.
#[derive(Clone, Copy)]
enum Call {
    Reduce { to: Address, count: usize, element: i32, operation: i32, scattered: bool },
    Gather { to: Address, bytes: usize },
    Broadcast { to: Address, bytes: usize, root: i32 },
    Send { bytes: usize, peer: i32 },
    Receive { to: Address, bytes: usize, peer: i32 },
}

thread_local! {
    static MADE: RefCell<Vec<Arc<Clique>>> = const { RefCell::new(Vec::new()) };
    static REDUCED: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static GROUP: RefCell<Option<Vec<(usize, Address, Call)>>> = const { RefCell::new(None) };
}

static CLIQUES: Mutex<Vec<(u64, Arc<Clique>)>> = Mutex::new(Vec::new());

/// The calls of each communicator of this thread, by rank.
pub(crate) fn told() -> Vec<Vec<String>> {
    MADE.take()
        .iter()
        .map(|clique| {
            let mut told = std::mem::take(&mut clique.lock().told);
            told.sort_by_key(|(rank, _)| *rank);
            told.into_iter().map(|(rank, what)| format!("{rank}: {what}")).collect()
        })
        .collect()
}

/// What the all-reduces of this thread gave since the last query.
pub(crate) fn all_reduced() -> Vec<Vec<u8>> {
    REDUCED.take()
}

/// Bytes of an element type.
fn width(element: i32) -> usize {
    match element {
        0 | 1 => 1,
        6 | 9 => 2,
        4 | 5 | 8 => 8,
        _ => 4,
    }
}

fn bytes_at(address: Address, bytes: usize) -> Vec<u8> {
    // SAFETY: ranks give addresses of memory with so many bytes.
    unsafe { std::slice::from_raw_parts(address as *const u8, bytes) }.to_vec()
}

fn write_at(address: Address, bytes: &[u8]) {
    // SAFETY: as above, and nobody else has this memory.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
}

/// Decoding and encoding of a number.
type Coded<T, const N: usize> = (fn([u8; N]) -> T, fn(T) -> [u8; N]);

/// Addition and multiplication.
type Folds<T> = (fn(T, T) -> T, fn(T, T) -> T);

/// Reduces all operands elementwise, in rank order.
fn reduced(all: &[Vec<u8>], element: i32, operation: i32) -> Option<Vec<u8>> {
    fn fold<const N: usize, T: Copy + PartialOrd>(
        all: &[Vec<u8>],
        operation: i32,
        (from, to): Coded<T, N>,
        (add, multiply): Folds<T>,
    ) -> Option<Vec<u8>> {
        let with = |a: T, b: T| match operation {
            0 => add(a, b),
            1 => multiply(a, b),
            2 => {
                if a > b {
                    a
                } else {
                    b
                }
            }
            _ => {
                if a < b {
                    a
                } else {
                    b
                }
            }
        };
        let count = all.first()?.len() / N;
        let at = |one: &Vec<u8>, place: usize| -> Option<T> {
            Some(from(one.get(place * N..(place + 1) * N)?.try_into().ok()?))
        };
        let mut reduced = Vec::new();
        for place in 0..count {
            let mut sum = at(&all[0], place)?;
            for one in &all[1..] {
                sum = with(sum, at(one, place)?);
            }
            reduced.extend(to(sum));
        }
        Some(reduced)
    }
    match element {
        1 => fold(all, operation, (u8::from_ne_bytes, u8::to_ne_bytes), (u8::wrapping_add, u8::wrapping_mul)),
        2 => fold(
            all,
            operation,
            (i32::from_ne_bytes, i32::to_ne_bytes),
            (i32::wrapping_add, i32::wrapping_mul),
        ),
        4 => fold(
            all,
            operation,
            (i64::from_ne_bytes, i64::to_ne_bytes),
            (i64::wrapping_add, i64::wrapping_mul),
        ),
        8 => fold(all, operation, (f64::from_ne_bytes, f64::to_ne_bytes), (|a, b| a + b, |a, b| a * b)),
        7 => fold(all, operation, (f32::from_ne_bytes, f32::to_ne_bytes), (|a, b| a + b, |a, b| a * b)),
        _ => None,
    }
}

/// Contributes the operand of a call; returns the number of the collective.
fn give(end: &End, from: Address, call: Call) -> u64 {
    let size = end.clique.size;
    let (what, bytes) = match call {
        Call::Reduce { count, element, operation, scattered, .. } => {
            let (name, parts) = if scattered { ("reduce_scatter", size) } else { ("all_reduce", 1) };
            (format!("{name} {count} of {element} by {operation}"), Some(count * parts * width(element)))
        }
        Call::Gather { bytes, .. } => (format!("all_gather {bytes} bytes"), Some(bytes)),
        Call::Broadcast { bytes, root, .. } => (format!("broadcast {bytes} bytes of {root}"), Some(bytes)),
        Call::Send { bytes, peer } => (format!("send {bytes} bytes to {peer}"), None),
        Call::Receive { bytes, peer, .. } => (format!("receive {bytes} bytes from {peer}"), None),
    };
    let mut state = end.clique.lock();
    state.told.push((end.rank, what));
    let mut number = 0;
    if let Some(bytes) = bytes {
        number = end.collectives.fetch_add(1, Ordering::Relaxed);
        state.given.entry(number).or_default().insert(end.rank, bytes_at(from, bytes));
    }
    if let Call::Send { bytes, peer } = call {
        state.sent.entry((end.rank, peer)).or_default().push_back(bytes_at(from, bytes));
    }
    end.clique.changed.notify_all();
    number
}

/// Receives the result of a call.
fn take(end: &End, number: u64, call: Call) -> Result<(), i32> {
    let (size, rank) = (end.clique.size, end.rank);
    let all = || {
        end.clique.wait(|state| {
            let given = state.given.get(&number).filter(|given| given.len() == size)?;
            (0..size as i32).map(|rank| given.get(&rank).cloned()).collect::<Option<Vec<Vec<u8>>>>()
        })
    };
    match call {
        Call::Reduce { to, count, element, operation, scattered } => {
            let reduced = reduced(&all()?, element, operation).ok_or(WRONG)?;
            let part = count * width(element);
            let begin = if scattered { rank as usize * part } else { 0 };
            let own = reduced.get(begin..begin + part).ok_or(WRONG)?;
            write_at(to, own);
            REDUCED.with_borrow_mut(|reduced| reduced.push(own.to_vec()));
            Ok(())
        }
        Call::Gather { to, .. } => {
            write_at(to, &all()?.concat());
            Ok(())
        }
        Call::Broadcast { to, root, .. } => {
            write_at(to, all()?.get(root as usize).ok_or(WRONG)?);
            Ok(())
        }
        Call::Send { .. } => Ok(()),
        Call::Receive { to, bytes, peer } => {
            let got = end.clique.wait(|state| state.sent.get_mut(&(peer, rank))?.pop_front())?;
            if got.len() != bytes {
                return Err(WRONG);
            }
            write_at(to, &got);
            Ok(())
        }
    }
}

/// The rank of a handle.
fn end_of(handle: usize) -> &'static End {
    // SAFETY: handles are ends that were given away and never taken back: tests are short.
    unsafe { &*(handle as *const End) }
}

/// Runs grouped calls: all contribute before any receives.
fn run(calls: &[(usize, Address, Call)]) -> i32 {
    let unlucky = |call: &Call| matches!(call, Call::Reduce { count: UNLUCKY, .. });
    if calls.iter().any(|(end, _, call)| end_of(*end).rank == 1 && unlucky(call)) {
        return 1;
    }
    let numbers: Vec<u64> = calls.iter().map(|&(end, from, call)| give(end_of(end), from, call)).collect();
    let taken =
        calls.iter().zip(numbers).try_for_each(|(&(end, _, call), number)| take(end_of(end), number, call));
    taken.err().unwrap_or(0)
}

fn ask(handle: Handle, from: Address, call: Call) -> i32 {
    let waits = GROUP.with_borrow_mut(|group| match group {
        Some(calls) => {
            calls.push((handle as usize, from, call));
            true
        }
        None => false,
    });
    if waits { 0 } else { run(&[(handle as usize, from, call)]) }
}

pub(crate) fn functions() -> Functions {
    unsafe extern "C" fn version(to: *mut i32) -> i32 {
        // SAFETY: callers give the address of a variable.
        unsafe { *to = 22_803 };
        0
    }
    unsafe extern "C" fn unique_id(to: *mut UniqueId) -> i32 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { (&mut (*to).0)[..8].copy_from_slice(&number.to_ne_bytes()) };
        note("unique id")
    }
    unsafe extern "C" fn initialise(to: *mut Handle, size: i32, id: UniqueId, rank: i32) -> i32 {
        let number = u64::from_ne_bytes(id.0[..8].try_into().unwrap_or_default());
        let mut cliques = CLIQUES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = cliques.iter().find(|(known, _)| *known == number).map(|(_, clique)| Arc::clone(clique));
        let clique = known.unwrap_or_else(|| {
            let clique = Arc::new(Clique { size: usize::try_from(size).unwrap_or(0), ..Clique::default() });
            cliques.push((number, Arc::clone(&clique)));
            MADE.with_borrow_mut(|made| made.push(Arc::clone(&clique)));
            clique
        });
        drop(cliques);
        clique.lock().joined += 1;
        clique.changed.notify_all();
        let in_a_group = GROUP.with_borrow(Option::is_some);
        let all = |state: &mut State| (in_a_group || state.joined >= clique.size).then_some(());
        if let Err(code) = clique.wait(all) {
            return code;
        }
        let end = Box::new(End { clique, rank, collectives: AtomicU64::new(0) });
        // SAFETY: as above.
        unsafe { *to = Box::into_raw(end).cast() };
        note(format!("rank {rank} of {size}"))
    }
    unsafe extern "C" fn destroy(_: Handle) -> i32 {
        note("destroy")
    }
    unsafe extern "C" fn abort(handle: Handle) -> i32 {
        let clique = &end_of(handle as usize).clique;
        clique.lock().aborted = true;
        clique.changed.notify_all();
        note("abort")
    }
    unsafe extern "C" fn group_begin() -> i32 {
        GROUP.set(Some(Vec::new()));
        0
    }
    unsafe extern "C" fn group_end() -> i32 {
        run(&GROUP.take().unwrap_or_default())
    }
    unsafe extern "C" fn reduce<const SCATTERED: bool>(
        from: u64,
        to: u64,
        count: usize,
        element: i32,
        operation: i32,
        end: Handle,
        stream: Handle,
    ) -> i32 {
        note_event(format!("reduce {count} on {}", stream as usize));
        ask(end, from, Call::Reduce { to, count, element, operation, scattered: SCATTERED })
    }
    unsafe extern "C" fn all_gather(
        from: u64,
        to: u64,
        count: usize,
        element: i32,
        end: Handle,
        _: Handle,
    ) -> i32 {
        ask(end, from, Call::Gather { to, bytes: count * width(element) })
    }
    unsafe extern "C" fn broadcast(
        from: u64,
        to: u64,
        count: usize,
        element: i32,
        root: i32,
        end: Handle,
        _: Handle,
    ) -> i32 {
        ask(end, from, Call::Broadcast { to, bytes: count * width(element), root })
    }
    unsafe extern "C" fn send(
        from: u64,
        count: usize,
        element: i32,
        peer: i32,
        end: Handle,
        _: Handle,
    ) -> i32 {
        ask(end, from, Call::Send { bytes: count * width(element), peer })
    }
    unsafe extern "C" fn receive(
        to: u64,
        count: usize,
        element: i32,
        peer: i32,
        end: Handle,
        _: Handle,
    ) -> i32 {
        ask(end, 0, Call::Receive { to, bytes: count * width(element), peer })
    }
    Functions {
        version,
        unique_id,
        initialise,
        destroy,
        abort,
        group_begin,
        group_end,
        all_reduce: reduce::<false>,
        all_gather,
        reduce_scatter: reduce::<true>,
        broadcast,
        send,
        receive,
    }
}
