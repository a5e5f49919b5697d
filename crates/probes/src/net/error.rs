//! Why a network could not be measured.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::wire::{PATIENCE, VERSION};

/// Why a network could not be measured. The message is whole: it includes what the system said, which is therefore not
/// chained as a source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The text does not name a host and port.
    #[error("`{text}` is not a host: write NAME, NAME:PORT, ADDRESS:PORT or [IPV6]:PORT")]
    BadHost {
        /// What was given.
        text: String,
    },
    /// The name is unknown.
    #[error("cannot find the host `{text}`: {cause}")]
    UnknownHost {
        /// What was given.
        text: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The server's address cannot be used.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// Nobody answers.
    #[error("cannot connect to {address}: {cause}; run `warpt serve --listen {address}` there")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// The peer says something that is not this protocol.
    #[error("the other side does not speak warpt's protocol: {found}")]
    Foreign {
        /// What it said instead.
        found: String,
    },
    /// The peer speaks another version of the protocol.
    #[error(
        "the other side speaks version {theirs} of the protocol, this side {VERSION}: use the same warpt on both"
    )]
    Version {
        /// The peer's version.
        theirs: u16,
    },
    /// The peer asks for something that is not allowed.
    #[error("bad request: {reason}")]
    BadRequest {
        /// What is wrong with it.
        reason: String,
    },
    /// The server does not want to.
    #[error("the server refused: {message}")]
    Refused {
        /// What it said.
        message: String,
    },
    /// The peer went away or fell silent.
    #[error("the other side went away while {during}: {cause}")]
    Lost {
        /// What was going on.
        during: &'static str,
        /// What the system said.
        cause: io::Error,
    },
    /// The two sides do not agree on how much was sent.
    #[error("{sent} bytes were sent but {received} arrived")]
    Miscounted {
        /// The sender's count.
        sent: u64,
        /// The receiver's count.
        received: u64,
    },
    /// A call to the system failed.
    #[error("cannot {what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        cause: io::Error,
    },
}

impl NetError {
    /// An input or output on a connection failed; a time-out is put into words.
    pub(super) fn lost(during: &'static str) -> impl Fn(io::Error) -> Self {
        move |cause| {
            let timed_out = matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
            let cause = if timed_out { silence(PATIENCE) } else { cause };
            Self::Lost { during, cause }
        }
    }
}

fn silence(time: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("nothing moved for {} s", time.as_secs()))
}
