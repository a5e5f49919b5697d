//! The protocol: what the two sides say to each other on a connection besides payload.
//!
//! All numbers are big-endian. The client speaks first, with a request of 24 bytes:
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | the magic `warptnet` |
//! | 2 | the protocol's version, 1 |
//! | 1 | the service: 1 take data, 2 send data, 3 return what comes |
//! | 1 | 0 |
//! | 4 | the size of a block of payload, 1 to 16 MiB |
//! | 4 | milliseconds that the payload flows, at most an hour |
//! | 4 | 0 |
//!
//! The server replies with 16 bytes and a text, and closes the connection unless the status is 0:
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | the magic |
//! | 2 | the version |
//! | 2 | the status: 0 agreed, 1 another version, 2 bad request, 3 busy |
//! | 2 | the length of the text, at most 512 |
//! | 2 | 0 |
//!
//! Magic and version stay where they are in every version. What begins with anything else is answered in words, as
//! a response of HTTP, since a browser or a port scanner is the likely stranger.
//!
//! Then payload flows. For the services 1 and 2, one side sends whole blocks until the time is up, then a summary of
//! 24 bytes, and closes its direction; the other reads to the end, compares the sender's count with its own, and for
//! service 1 replies with its own summary. For service 3, the client sends blocks, each of which the server returns
//! before the next, until the client closes its direction. A summary:
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | the magic |
//! | 8 | bytes of payload, the summary not counted |
//! | 8 | nanoseconds that it took |

use std::io::{Read, Write};
use std::time::Duration;

use super::NetError;

/// The protocol's version.
pub const VERSION: u16 = 1;

/// The largest block of payload. It bounds the memory that a connection takes.
pub const MAX_BLOCK_BYTES: u32 = 16 << 20;

/// The longest time for payload to flow on one connection.
pub(super) const MAX_TIME: Duration = Duration::from_secs(3600);

/// How long either side waits for the other to take or give a byte.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

const MAGIC: [u8; 8] = *b"warptnet";
const MAX_TEXT: usize = 512;

/// Bytes of a summary.
pub(super) const SUMMARY_BYTES: usize = 24;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// The server takes what the client sends.
    Take = 1,
    /// The server sends.
    Send = 2,
    /// The server returns every block.
    Return = 3,
}

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) service: Service,
    pub(super) block_bytes: u32,
    pub(super) time: Duration,
}

impl Request {
    pub(super) fn write(&self, to: &mut impl Write) -> Result<(), NetError> {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[10] = self.service as u8;
        bytes[12..16].copy_from_slice(&self.block_bytes.to_be_bytes());
        let millis = u32::try_from(self.time.as_millis()).unwrap_or(u32::MAX);
        bytes[16..20].copy_from_slice(&millis.to_be_bytes());
        to.write_all(&bytes).map_err(NetError::lost("sending the request"))
    }

    /// Reads a request and checks every field of it.
    pub(super) fn read(from: &mut impl Read) -> Result<Self, NetError> {
        // Guests of other protocols may send less than a request and wait: look at the magic first.
        read_head(from, "reading the request")?;
        let mut bytes = [0; 14];
        from.read_exact(&mut bytes).map_err(NetError::lost("reading the request"))?;
        let bad = |reason: String| Err(NetError::BadRequest { reason });
        let service = match bytes[0] {
            1 => Service::Take,
            2 => Service::Send,
            3 => Service::Return,
            other => return bad(format!("there is no service {other}")),
        };
        let block_bytes = u32_at(&bytes, 2);
        if !(1..=MAX_BLOCK_BYTES).contains(&block_bytes) {
            return bad(format!("blocks of {block_bytes} bytes; 1 to {MAX_BLOCK_BYTES} are served"));
        }
        let time = Duration::from_millis(u32_at(&bytes, 6).into());
        if time > MAX_TIME {
            return bad(format!(
                "{} s of payload; at most {} s are served",
                time.as_secs(),
                MAX_TIME.as_secs()
            ));
        }
        if bytes[1] != 0 || u32_at(&bytes, 10) != 0 {
            return bad("a reserved field is not 0".to_owned());
        }
        Ok(Self { service, block_bytes, time })
    }
}

/// What a server answers to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Agreed = 0,
    OtherVersion = 1,
    BadRequest = 2,
    Busy = 3,
}

/// Writes a reply with a text for people.
pub(super) fn write_reply(to: &mut impl Write, status: Status, text: &str) -> Result<(), NetError> {
    let text = &text.as_bytes()[..text.len().min(MAX_TEXT)];
    let mut bytes = Vec::with_capacity(16 + text.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_be_bytes());
    bytes.extend((status as u16).to_be_bytes());
    bytes.extend((text.len() as u16).to_be_bytes());
    bytes.extend([0; 2]);
    bytes.extend(text);
    to.write_all(&bytes).map_err(NetError::lost("sending the reply"))
}

/// Reads a reply; anything but an agreement is an error.
pub(super) fn read_reply(from: &mut impl Read) -> Result<(), NetError> {
    let during = "reading the reply";
    read_head(from, during)?;
    let mut bytes = [0; 6];
    from.read_exact(&mut bytes).map_err(NetError::lost(during))?;
    let status = u16::from_be_bytes([bytes[0], bytes[1]]);
    let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
    if length > MAX_TEXT {
        return Err(NetError::Foreign {
            found: format!("a reply of {length} bytes, {MAX_TEXT} are allowed"),
        });
    }
    let mut text = vec![0; length];
    from.read_exact(&mut text).map_err(NetError::lost(during))?;
    if status == Status::Agreed as u16 {
        return Ok(());
    }
    Err(NetError::Refused { message: String::from_utf8_lossy(&text).into_owned() })
}

/// The answer to a client of another protocol.
pub(super) const WORDS_FOR_STRANGERS: &[u8] = b"HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\
    Connection: close\r\n\r\nThis is the network benchmark of warpt; only warpt can talk to it.\r\n";

/// How much went one way, as one side counted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) payload_bytes: u64,
    pub(super) time: Duration,
}

impl Summary {
    pub(super) fn to_bytes(self) -> [u8; SUMMARY_BYTES] {
        let mut bytes = [0; SUMMARY_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.payload_bytes.to_be_bytes());
        let nanos = u64::try_from(self.time.as_nanos()).unwrap_or(u64::MAX);
        bytes[16..].copy_from_slice(&nanos.to_be_bytes());
        bytes
    }

    /// The summary in these bytes; `None` if they are none.
    pub(super) fn from_bytes(bytes: &[u8; SUMMARY_BYTES]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (payload, rest) = rest.split_first_chunk::<8>()?;
        let nanos = rest.first_chunk::<8>()?;
        (*magic == MAGIC).then(|| Self {
            payload_bytes: u64::from_be_bytes(*payload),
            time: Duration::from_nanos(u64::from_be_bytes(*nanos)),
        })
    }
}

/// Reads the magic and the version, which every message begins with.
fn read_head(from: &mut impl Read, during: &'static str) -> Result<(), NetError> {
    let mut magic = [0; 8];
    let mut known = 0;
    while known < magic.len() {
        let count = match from.read(&mut magic[known..]) {
            Ok(0) => return Err(NetError::lost(during)(std::io::ErrorKind::UnexpectedEof.into())),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            outcome => outcome.map_err(NetError::lost(during))?,
        };
        known += count;
        if magic[..known] != MAGIC[..known] {
            return Err(NetError::Foreign {
                found: format!("it begins with \"{}\"", magic[..known].escape_ascii()),
            });
        }
    }
    let mut version = [0; 2];
    from.read_exact(&mut version).map_err(NetError::lost(during))?;
    match u16::from_be_bytes(version) {
        VERSION => Ok(()),
        theirs => Err(NetError::Version { theirs }),
    }
}

fn u32_at(bytes: &[u8; 14], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: Request =
        Request { service: Service::Send, block_bytes: 131_072, time: Duration::from_millis(1500) };

    fn request() -> Vec<u8> {
        let mut bytes = Vec::new();
        REQUEST.write(&mut bytes).unwrap();
        bytes
    }

    /// The request with one byte changed.
    fn changed(at: usize, value: u8) -> Result<Request, NetError> {
        let mut bytes = request();
        bytes[at] = value;
        Request::read(&mut bytes.as_slice())
    }

    #[test]
    fn a_request_arrives_as_it_was_written() {
        assert_eq!(request().len(), 24);
        assert_eq!(Request::read(&mut request().as_slice()).unwrap(), REQUEST);
    }

    #[test]
    fn requests_with_a_mistake_are_refused() {
        assert!(matches!(changed(0, b'G'), Err(NetError::Foreign { .. })));
        assert!(matches!(changed(9, 2), Err(NetError::Version { theirs: 2 })));
        for (at, value, reason) in [
            (10, 0, "no service 0"),
            (10, 9, "no service 9"),
            (11, 1, "reserved"),
            (12, 255, "16777216 are served"),
            (16, 255, "at most 3600 s"),
            (23, 1, "reserved"),
        ] {
            let error = changed(at, value).unwrap_err();
            assert!(matches!(error, NetError::BadRequest { .. }), "{error}");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn a_message_cut_short_is_an_error_at_every_length() {
        for length in 0..24 {
            let error = Request::read(&mut &request()[..length]).unwrap_err();
            assert!(matches!(error, NetError::Lost { .. }), "{length}: {error}");
        }
        let mut reply = Vec::new();
        write_reply(&mut reply, Status::Busy, "come later").unwrap();
        for length in 0..reply.len() {
            let error = read_reply(&mut &reply[..length]).unwrap_err();
            assert!(matches!(error, NetError::Lost { .. }), "{length}: {error}");
        }
    }

    #[test]
    fn a_refusal_carries_its_text_and_a_huge_one_is_not_believed() {
        let mut reply = Vec::new();
        write_reply(&mut reply, Status::Busy, &"x".repeat(9999)).unwrap();
        let error = read_reply(&mut reply.as_slice()).unwrap_err();
        assert!(matches!(&error, NetError::Refused { message } if message.len() == MAX_TEXT), "{error}");
        reply[12] = 255;
        assert!(matches!(read_reply(&mut reply.as_slice()), Err(NetError::Foreign { .. })));
        let error = read_reply(&mut b"HTTP/1.1 200 OK".as_slice()).unwrap_err().to_string();
        assert!(error.contains("begins with \"HTTP"), "{error}");
    }

    #[test]
    fn a_summary_is_recognised_and_other_bytes_are_not() {
        let summary = Summary { payload_bytes: u64::MAX, time: Duration::from_nanos(17) };
        assert_eq!(Summary::from_bytes(&summary.to_bytes()), Some(summary));
        assert_eq!(Summary::from_bytes(&[0; SUMMARY_BYTES]), None);
    }
}
