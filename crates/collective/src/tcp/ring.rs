//! The ring: each rank sends to the next and receives from the one before.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::ops::{AddAssign, Range};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use bytemuck::Pod;

use crate::Error;

/// Messages that wait to be sent.
const WAITING: usize = 4;

/// Before each message: which one it is, and its size.
const HEADER: usize = 12;

pub(super) struct Ring {
    rank: usize,
    size: usize,
    previous: TcpStream,
    next: TcpStream,
    /// To the thread that sends: all ranks send at once, so none may wait for its neighbour to receive.
    outgoing: Option<SyncSender<Vec<u8>>>,
    sender: Option<JoinHandle<()>>,
    /// How many messages were received and sent.
    received: u32,
    sent: u32,
    scratch: Vec<u8>,
}

impl Ring {
    pub(super) fn new(rank: usize, size: usize, next: TcpStream, previous: TcpStream) -> Result<Self, Error> {
        let (outgoing, messages) = sync_channel::<Vec<u8>>(WAITING);
        let broken = |error: std::io::Error| lost((rank + 1) % size, &error);
        let mut stream = next.try_clone().map_err(broken)?;
        let sender = move || {
            for message in messages {
                if stream.write_all(&message).is_err() {
                    return;
                }
            }
        };
        let sender = std::thread::Builder::new().name("ring".to_owned()).spawn(sender).map_err(broken)?;
        let (outgoing, sender) = (Some(outgoing), Some(sender));
        Ok(Self { rank, size, previous, next, outgoing, sender, received: 0, sent: 0, scratch: Vec::new() })
    }

    /// Both connections, so that somebody else can end them.
    pub(super) fn handles(&self) -> Result<[TcpStream; 2], Error> {
        let broken = |error: std::io::Error| lost(self.rank, &error);
        Ok([self.next.try_clone().map_err(broken)?, self.previous.try_clone().map_err(broken)?])
    }

    fn before(&self) -> usize {
        (self.rank + self.size - 1) % self.size
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut message = Vec::with_capacity(HEADER + bytes.len());
        message.extend_from_slice(&self.sent.to_le_bytes());
        message.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        message.extend_from_slice(bytes);
        self.sent = self.sent.wrapping_add(1);
        let next = (self.rank + 1) % self.size;
        let gone = || Error::Lost { rank: next, reason: "it takes no more values".to_owned() };
        let sent = self.outgoing.as_ref().map(|outgoing| outgoing.send(message).is_ok());
        if sent == Some(true) { Ok(()) } else { Err(gone()) }
    }

    /// Receives as many bytes into the scratch memory.
    fn receive(&mut self, size: usize) -> Result<(), Error> {
        let before = self.before();
        let broken = |error: std::io::Error| lost(before, &error);
        let mut header = [0; HEADER];
        self.previous.read_exact(&mut header).map_err(broken)?;
        let (number, length) = header.split_at(4);
        let number = u32::from_le_bytes(number.try_into().unwrap_or_default());
        let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
        if (number, length) != (self.received, size as u64) {
            return Err(Error::Apart {
                rank: before,
                expected: format!("message {} of {size} bytes", self.received),
                found: format!("message {number} of {length} bytes"),
            });
        }
        self.received = self.received.wrapping_add(1);
        self.scratch.resize(size, 0);
        self.previous.read_exact(&mut self.scratch).map_err(broken)
    }

    /// Adds up values over all ranks: a reduce-scatter and an all-gather of one part for each rank. The sum of an element is made
    /// in the same order for all ranks, by one of them.
    pub(super) fn all_reduce<T: Pod + AddAssign>(&mut self, values: &mut [T]) -> Result<(), Error> {
        let (count, ranks, width) = (values.len(), self.size, size_of::<T>());
        let part = |at: usize| -> Range<usize> { count * at / ranks..count * (at + 1) / ranks };
        for step in 0..ranks - 1 {
            let outgoing = part((self.rank + ranks - step) % ranks);
            self.send(bytemuck::cast_slice(&values[outgoing]))?;
            let incoming = part((self.rank + 2 * ranks - step - 1) % ranks);
            self.receive(incoming.len() * width)?;
            for (value, bytes) in values[incoming].iter_mut().zip(self.scratch.chunks_exact(width)) {
                *value += bytemuck::pod_read_unaligned::<T>(bytes);
            }
        }
        for step in 0..ranks - 1 {
            let outgoing = part((self.rank + 1 + ranks - step) % ranks);
            self.send(bytemuck::cast_slice(&values[outgoing]))?;
            let incoming = part((self.rank + ranks - step) % ranks);
            self.receive(incoming.len() * width)?;
            bytemuck::cast_slice_mut::<T, u8>(&mut values[incoming]).copy_from_slice(&self.scratch);
        }
        Ok(())
    }

    /// Gathers as many bytes of each rank, in the order of the ranks.
    pub(super) fn all_gather(&mut self, own: &[u8], all: &mut [u8]) -> Result<(), Error> {
        let (ranks, size) = (self.size, own.len());
        let part = |at: usize| -> Range<usize> { size * at..size * (at + 1) };
        all[part(self.rank)].copy_from_slice(own);
        for step in 0..ranks - 1 {
            self.send(&all[part((self.rank + ranks - step) % ranks)])?;
            self.receive(size)?;
            all[part((self.rank + 2 * ranks - step - 1) % ranks)].copy_from_slice(&self.scratch);
        }
        Ok(())
    }

    /// Hands the bytes of one rank around.
    pub(super) fn broadcast(&mut self, bytes: &mut [u8], root: usize) -> Result<(), Error> {
        if self.rank != root {
            self.receive(bytes.len())?;
            bytes.copy_from_slice(&self.scratch);
        }
        match (self.rank + 1) % self.size == root {
            true => Ok(()),
            false => self.send(bytes),
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // What was given to be sent is sent before.
        self.outgoing = None;
        if let Some(sender) = self.sender.take() {
            let _ = sender.join();
        }
        let _ = self.next.shutdown(Shutdown::Write);
    }
}

fn lost(rank: usize, error: &std::io::Error) -> Error {
    let reason = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        _ => error.to_string(),
    };
    Error::Lost { rank, reason }
}
