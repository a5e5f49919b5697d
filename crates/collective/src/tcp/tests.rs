//! Ranks as threads of one process, on the loopback device.

use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::*;
use crate::{Buffer, Communicator, Engine, World};

fn quiet() -> Lost {
    Arc::new(|_| {})
}

/// The worlds of so many ranks.
fn worlds(size: usize) -> Vec<World> {
    let (first, others) = World::parent(size).unwrap();
    let of = |variables: &Vec<(&'static str, String)>| {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        World::from_variables(&|name| find(name).map(|(_, value)| value.clone())).unwrap().unwrap()
    };
    let others: Vec<World> = others.iter().map(of).collect();
    std::iter::once(first).chain(others).collect()
}

/// Runs a function as each of so many ranks.
fn ranks<T: Send + 'static>(size: usize, each: fn(Communicator) -> T) -> Vec<T> {
    let start = |world| std::thread::spawn(move || each(Communicator::open(world, quiet()).unwrap()));
    let threads: Vec<_> = worlds(size).into_iter().map(start).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn means_are_the_same_on_all_ranks_for_any_length() {
    for size in [2, 3, 5] {
        let means = ranks(size, |group| {
            let rank = group.rank() as f32;
            let mut all = Vec::new();
            // Also none, fewer than ranks, and more than the buffers of a connection.
            for length in [0usize, 1, 2, 7, 300_000] {
                let values = (0..length).map(|at| (at as f32).sin() * (rank + 1.0)).collect();
                let Buffer::F32(mean) = group.mean(Buffer::F32(values)).wait().unwrap() else { panic!() };
                all.push(mean);
            }
            let Buffer::F64(mean) = group.mean(Buffer::F64(vec![f64::from(rank)])).wait().unwrap() else {
                panic!()
            };
            assert_eq!(mean, [(group.size() - 1) as f64 / 2.0]);
            group.finish().unwrap();
            all
        });
        assert!(means.iter().all(|mean| *mean == means[0]), "the ranks agree bit for bit");
        let factor = (size + 1) as f32 / 2.0;
        let close = |(at, value): (usize, &f32)| (value - (at as f32).sin() * factor).abs() < 1e-5;
        assert!(means[0].iter().all(|list| list.iter().enumerate().all(close)));
    }
}

#[test]
fn one_rank_is_a_group_by_itself() {
    let group = Communicator::open(World::alone(), quiet()).unwrap();
    assert_eq!((group.rank(), group.size()), (0, 1));
    let values = Buffer::F32(vec![1.5, -2.0]);
    assert_eq!(group.mean(values.clone()).wait().unwrap(), values);
    assert_eq!(group.broadcast(vec![7], 0).unwrap(), [7]);
    group.finish().unwrap();
}

#[test]
fn bytes_of_all_ranks_are_gathered_in_their_order() {
    let gathered = |world: World| {
        let Engine::Tcp(meeting) = world.engine else { panic!() };
        let mut group = TcpGroup::open(world.rank, world.size, meeting, quiet()).unwrap();
        let mut all = [0; 6];
        group.all_gather(&[world.rank as u8, 9], &mut all).unwrap();
        group.finish().unwrap();
        all
    };
    let threads: Vec<_> =
        worlds(3).into_iter().map(|world| std::thread::spawn(move || gathered(world))).collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), [0, 9, 1, 9, 2, 9]);
    }
}

#[test]
fn bytes_of_any_rank_reach_all() {
    let found = ranks(3, |group| {
        let mut all = Vec::new();
        for root in 0..3 {
            let own = if group.rank() == root { vec![root as u8 + 7; 1000] } else { vec![0; 1000] };
            all.push(group.broadcast(own, root).unwrap());
        }
        group.finish().unwrap();
        all
    });
    assert!(found.iter().all(|all| (0..3).all(|root| all[root] == vec![root as u8 + 7; 1000])));
}

#[test]
fn collectives_that_were_started_end_in_order() {
    ranks(2, |group| {
        let pending: Vec<_> = (0..20).map(|at| group.mean(Buffer::F32(vec![at as f32; 5000]))).collect();
        for (at, pending) in pending.into_iter().enumerate() {
            assert_eq!(pending.wait().unwrap(), Buffer::F32(vec![at as f32; 5000]));
        }
        group.finish().unwrap();
    });
}

#[test]
fn a_rank_that_ends_is_named_to_all_others_at_once() {
    let begin = Instant::now();
    let errors = ranks(4, |group| {
        if group.rank() == 2 {
            return None;
        }
        group.mean(Buffer::F32(vec![1.0; 100])).wait().err()
    });
    assert!(begin.elapsed() < Duration::from_secs(10));
    for (rank, error) in errors.iter().enumerate().filter(|(rank, _)| *rank != 2) {
        assert!(matches!(error, Some(Error::Lost { rank: 2, .. })), "rank {rank}: {error:?}");
    }
}

#[test]
fn whoever_computes_is_told_of_a_loss_too() {
    let (tell, told) = channel();
    let mut worlds = worlds(2).into_iter();
    let (first, second) = (worlds.next().unwrap(), worlds.next().unwrap());
    let other = std::thread::spawn(move || drop(Communicator::open(second, quiet()).unwrap()));
    let tell = std::sync::Mutex::new(tell);
    let lost: Lost = Arc::new(move |error: &Error| drop(tell.lock().unwrap().send(error.to_string())));
    let group = Communicator::open(first, lost).unwrap();
    let (tell, listened) = channel();
    let listener =
        |tell: std::sync::mpsc::Sender<String>| move |error: &Error| drop(tell.send(error.to_string()));
    group.on_failure(listener(tell.clone()));
    let said = told.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(said.contains("rank 1 is gone"), "{said}");
    assert_eq!(group.failure().unwrap().to_string(), said);
    // Who listens later is told at once.
    group.on_failure(listener(tell));
    assert_eq!(listened.iter().collect::<Vec<_>>(), [said.clone(), said]);
    other.join().unwrap();
}

#[test]
fn ranks_at_different_operations_are_an_error() {
    let errors = ranks(2, |group| {
        let length = 10 + group.rank() * 10;
        group.mean(Buffer::F32(vec![1.0; length])).wait().err()
    });
    assert!(errors.iter().any(|error| matches!(error, Some(Error::Apart { .. }))), "{errors:?}");
    assert!(errors.iter().all(Option::is_some), "{errors:?}");
}

#[test]
fn strangers_are_left_alone_and_impostors_refused() {
    let mut all = worlds(2).into_iter();
    let (first, second) = (all.next().unwrap(), all.next().unwrap());
    let Engine::Tcp(meeting) = &second.engine else { panic!() };
    let mut stranger = TcpStream::connect((meeting.host.as_str(), meeting.port)).unwrap();
    std::io::Write::write_all(&mut stranger, b"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n").unwrap();
    let thread = std::thread::spawn(move || Communicator::open(first, quiet()).map(|group| group.finish()));
    let group = Communicator::open(second, quiet()).unwrap();
    group.finish().unwrap();
    thread.join().unwrap().unwrap().unwrap();

    let mut all = worlds(2).into_iter();
    let (first, mut second) = (all.next().unwrap(), all.next().unwrap());
    (second.rank, second.size) = (2, 3);
    let thread = std::thread::spawn(move || Communicator::open(first, quiet()).err().unwrap().to_string());
    assert!(Communicator::open(second, quiet()).is_err());
    let said = thread.join().unwrap();
    assert!(said.contains("rank 2 says that there are 3 ranks, not 2"), "{said}");
}
