//! Payload in one direction of a connection, sent and received, counted by both sides.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::NetError;
use super::wire::{PATIENCE, SUMMARY_BYTES, Summary};

/// Sends blocks for some time, at least one, or until `halt` says so, then the summary, and closes this direction. `moved` grows
/// with every block.
pub(super) fn send(
    mut stream: &TcpStream,
    block_bytes: usize,
    time: Duration,
    halt: &dyn Fn() -> bool,
    moved: &AtomicU64,
) -> Result<Summary, NetError> {
    let lost = NetError::lost("sending data");
    let mut block = vec![0; block_bytes];
    // Links that compress must not look faster than they are.
    fastrand::fill(&mut block);
    let start = Instant::now();
    let mut payload_bytes = 0;
    // At least one block, however busy the machine is.
    while (payload_bytes == 0 || start.elapsed() < time) && !halt() {
        stream.write_all(&block).map_err(&lost)?;
        payload_bytes += block_bytes as u64;
        moved.fetch_add(block_bytes as u64, Ordering::Relaxed);
    }
    let summary = Summary { payload_bytes, time: start.elapsed() };
    stream.write_all(&summary.to_bytes()).map_err(&lost)?;
    stream.shutdown(Shutdown::Write).map_err(&lost)?;
    Ok(summary)
}

/// Receives until the other side closes its direction, which should be after the given time, and compares its summary
/// with what came. `moved` grows with every read.
pub(super) fn receive(
    mut stream: &TcpStream,
    block_bytes: usize,
    time: Duration,
    moved: &AtomicU64,
) -> Result<Summary, NetError> {
    let mut buffer = vec![0; block_bytes.max(SUMMARY_BYTES)];
    let mut tail = Tail::default();
    let start = Instant::now();
    let mut total = 0;
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                tail.push(&buffer[..count]);
                total += count as u64;
                moved.fetch_add(count as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(NetError::lost("receiving data")(error)),
        }
        // What the sender had in its buffers when the time was up is still to come, but not without end.
        if start.elapsed() > time + PATIENCE {
            return Err(NetError::BadRequest {
                reason: "data kept coming after the time agreed upon".to_owned(),
            });
        }
    }
    let Some(claimed) = (total >= SUMMARY_BYTES as u64).then(|| Summary::from_bytes(&tail.bytes)).flatten()
    else {
        return Err(NetError::lost("receiving data")(ErrorKind::UnexpectedEof.into()));
    };
    let payload_bytes = total - SUMMARY_BYTES as u64;
    if claimed.payload_bytes != payload_bytes {
        return Err(NetError::Miscounted { sent: claimed.payload_bytes, received: payload_bytes });
    }
    Ok(Summary { payload_bytes, time: start.elapsed() })
}

/// The last bytes of a stream, where the summary is.
#[derive(Default)]
struct Tail {
    bytes: [u8; SUMMARY_BYTES],
}

impl Tail {
    /// Adds what came next.
    fn push(&mut self, next: &[u8]) {
        let next = &next[next.len().saturating_sub(SUMMARY_BYTES)..];
        self.bytes.copy_within(next.len().., 0);
        self.bytes[SUMMARY_BYTES - next.len()..].copy_from_slice(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_end_of_the_stream_however_it_is_cut() {
        let stream: Vec<u8> = (0..200).collect();
        for size in 1..=200 {
            let mut tail = Tail::default();
            stream.chunks(size).for_each(|part| tail.push(part));
            assert_eq!(tail.bytes, stream[200 - SUMMARY_BYTES..], "{size}");
        }
    }
}
