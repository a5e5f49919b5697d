//! The messages between LoadGen's process and the engine; `driver.py` has the other side.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::super::system::Answer;

const QUERY: u32 = 1;
const LOAD: u32 = 2;
const UNLOAD: u32 = 3;
const END: u32 = 4;
const RUN: u32 = 5;
const DONE: u32 = 6;
const FIRST: u32 = 7;

const HEAD: usize = 8;
const WORD: usize = 8;
/// Longer messages are no messages.
const LONGEST: usize = 1 << 30;
/// How long a wait for a message takes at most, so that the user's wish to stop is seen.
const WAIT: Duration = Duration::from_millis(50);

/// What LoadGen's process says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Samples to answer.
    Query(Query),
    /// Something that needs no work, and must be sent back.
    Echo(u32),
    /// The end of the test, to be sent back too.
    End,
}

/// A query of LoadGen.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Query {
    /// When LoadGen issued it, in nanoseconds of a clock of its process.
    pub(super) issued: u64,
    /// LoadGen's names of the samples' answers.
    pub(super) ids: Vec<u64>,
    /// The samples.
    pub(super) samples: Vec<usize>,
}

/// The engine's end of the socket.
pub(super) struct Connection {
    stream: UnixStream,
    buffer: Vec<u8>,
    /// Whether a read waits.
    waits: bool,
}

impl Connection {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(WAIT))?;
        Ok(Self { stream, buffer: Vec::new(), waits: true })
    }

    /// The next message. `None` where there is none yet: at once, or after a while where it waits.
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] where the process is gone, [`ErrorKind::InvalidData`] where it speaks another language.
    pub(super) fn next(&mut self, wait: bool) -> io::Result<Option<Message>> {
        if wait != self.waits {
            self.stream.set_nonblocking(!wait)?;
            self.waits = wait;
        }
        let mut part = [0; 1 << 14];
        loop {
            if let Some(message) = self.taken()? {
                return Ok(Some(message));
            }
            match self.stream.read(&mut part) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.buffer.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A message that has come whole.
    fn taken(&mut self) -> io::Result<Option<Message>> {
        let word = |at: usize| -> Option<u32> {
            Some(u32::from_le_bytes(self.buffer.get(4 * at..4 * at + 4)?.try_into().ok()?))
        };
        let (Some(kind), Some(length)) = (word(0), word(1)) else { return Ok(None) };
        let end = HEAD + length as usize;
        if length as usize > LONGEST {
            return Err(ErrorKind::InvalidData.into());
        }
        let Some(body) = self.buffer.get(HEAD..end) else { return Ok(None) };
        let message = parsed(kind, body).ok_or(ErrorKind::InvalidData)?;
        self.buffer.drain(..end);
        Ok(Some(message))
    }

    /// Asks for a test.
    pub(super) fn ask(&mut self, settings: &str) -> io::Result<()> {
        self.send(RUN, settings.as_bytes())
    }

    /// Sends a message back.
    pub(super) fn echo(&mut self, message: &Message) -> io::Result<()> {
        match message {
            Message::Echo(kind) => self.send(*kind, &[]),
            Message::End => self.send(END, &[]),
            Message::Query(_) => Ok(()),
        }
    }

    /// Sends answers to the ids; with `data` or their sizes in tokens alone. `first` are those that are not whole yet.
    pub(super) fn answer(
        &mut self,
        ids: &[u64],
        answers: &[Answer],
        first: bool,
        data: bool,
    ) -> io::Result<()> {
        let bytes = |answer: &Answer| if data { answer.data.len() } else { 0 };
        let mut body = Vec::with_capacity(WORD + 2 * WORD * ids.len());
        body.extend((ids.len() as u64).to_le_bytes());
        for (id, answer) in ids.iter().zip(answers) {
            body.extend(id.to_le_bytes());
            body.extend(answer.tokens.to_le_bytes());
            body.extend((bytes(answer) as u32).to_le_bytes());
        }
        for answer in answers {
            body.extend_from_slice(&answer.data[..bytes(answer)]);
        }
        self.send(if first { FIRST } else { DONE }, &body)
    }

    fn send(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        if !self.waits {
            self.stream.set_nonblocking(false)?;
            self.waits = true;
        }
        let mut message = Vec::with_capacity(HEAD + body.len());
        message.extend(kind.to_le_bytes());
        message.extend((body.len() as u32).to_le_bytes());
        message.extend_from_slice(body);
        self.stream.write_all(&message)
    }
}

fn parsed(kind: u32, body: &[u8]) -> Option<Message> {
    let words = || body.chunks_exact(WORD).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
    match kind {
        LOAD | UNLOAD => Some(Message::Echo(kind)),
        END => Some(Message::End),
        QUERY if body.len().is_multiple_of(WORD) => {
            let count = (body.len() / WORD).checked_sub(1)?;
            let issued = words().next()?;
            let ids: Vec<u64> = words().skip(1).take(count / 2).collect();
            let samples = words().skip(1 + count / 2).map(|sample| usize::try_from(sample).ok());
            let samples: Vec<usize> = samples.collect::<Option<_>>()?;
            (ids.len() == samples.len()).then_some(Message::Query(Query { issued, ids, samples }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u32, words: &[u64]) -> Vec<u8> {
        let mut bytes = [kind.to_le_bytes(), (8 * words.len() as u32).to_le_bytes()].concat();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    #[test]
    fn messages_come_in_parts_and_together() {
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(ours).unwrap();
        assert_eq!(connection.next(false).unwrap(), None);
        let query = message(QUERY, &[77, 1001, 1002, 5, 6]);
        theirs.write_all(&query[..21]).unwrap();
        assert_eq!(connection.next(true).unwrap(), None);
        theirs.write_all(&query[21..]).unwrap();
        theirs.write_all(&message(UNLOAD, &[1, 2, 3])).unwrap();
        theirs.write_all(&message(END, &[])).unwrap();
        let found = connection.next(true).unwrap();
        assert_eq!(
            found,
            Some(Message::Query(Query { issued: 77, ids: vec![1001, 1002], samples: vec![5, 6] }))
        );
        assert_eq!(connection.next(false).unwrap(), Some(Message::Echo(UNLOAD)));
        assert_eq!(connection.next(false).unwrap(), Some(Message::End));
        drop(theirs);
        assert_eq!(connection.next(true).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn another_language_is_refused() {
        for wrong in [message(99, &[]), message(QUERY, &[]), message(QUERY, &[1, 2]), vec![255; 8]] {
            let (mut theirs, ours) = UnixStream::pair().unwrap();
            theirs.write_all(&wrong).unwrap();
            let error = Connection::new(ours).unwrap().next(true).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{wrong:?}");
        }
    }

    #[test]
    fn answers_have_data_only_where_it_is_asked_for() {
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(ours).unwrap();
        let answers = [Answer { data: vec![1, 2], tokens: 3 }, Answer { data: vec![9], tokens: 0 }];
        connection.answer(&[11, 12], &answers, false, true).unwrap();
        connection.answer(&[11, 12], &answers, true, false).unwrap();
        drop(connection);
        let mut found = Vec::new();
        theirs.read_to_end(&mut found).unwrap();
        let whole = HEAD + 8 + 32 + 3;
        assert_eq!(found.len(), whole + HEAD + 8 + 32);
        assert_eq!(found[..4], DONE.to_le_bytes());
        assert_eq!(found[whole - 3..whole], [1, 2, 9]);
        assert_eq!(found[whole..whole + 4], FIRST.to_le_bytes());
    }
}
