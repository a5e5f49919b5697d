//! Just enough of HTTP/1.1 to be scraped: one request, one answer, connection closed.

use std::io::{self, Read};
use std::time::Instant;

/// A request longer than this is refused; a scraper's is a few hundred bytes.
const MOST_REQUEST_BYTES: usize = 8 * 1024;

/// What a client may ask for, or why it may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// The metrics; only the head of the answer if `head_only`.
    Metrics { head_only: bool },
    /// Something that does not exist.
    NotFound,
    /// A method other than GET and HEAD.
    MethodNotAllowed,
    /// Not HTTP.
    Bad,
    /// A head without an end.
    TooLong,
}

impl Request {
    /// Reads the head of a request, which must arrive before the deadline.
    pub(super) fn read(stream: &mut impl Read, deadline: Instant) -> io::Result<Self> {
        let mut head = Vec::new();
        let mut chunk = [0; 1024];
        while !has_end(&head) {
            if head.len() > MOST_REQUEST_BYTES {
                return Ok(Self::TooLong);
            }
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match stream.read(&mut chunk)? {
                0 if head.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
                0 => return Ok(Self::Bad),
                count => head.extend_from_slice(&chunk[..count]),
            }
        }
        Ok(std::str::from_utf8(&head).map_or(Self::Bad, Self::parse))
    }

    fn parse(head: &str) -> Self {
        let mut lines = head.lines();
        let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let &[method, target, version] = words.as_slice() else { return Self::Bad };
        let is_token = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        let has_host =
            lines.any(|line| line.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case("host")));
        let version_is_good = version == "HTTP/1.0" || (version == "HTTP/1.1" && has_host);
        if !is_token || !version_is_good {
            return Self::Bad;
        }
        match (path(target), method) {
            ("/metrics", "GET") => Self::Metrics { head_only: false },
            ("/metrics", "HEAD") => Self::Metrics { head_only: true },
            ("/metrics", _) => Self::MethodNotAllowed,
            _ => Self::NotFound,
        }
    }

    /// The status line, extra headers, content type and body of the answer.
    pub(super) fn answer(self, metrics: impl FnOnce() -> String) -> Vec<u8> {
        let plain = "text/plain; charset=utf-8";
        let (status, extra, kind, body) = match self {
            Self::Metrics { .. } => {
                ("200 OK", "", "application/openmetrics-text; version=1.0.0; charset=utf-8", metrics())
            }
            Self::NotFound => ("404 Not Found", "", plain, "The metrics are at /metrics\n".to_owned()),
            Self::MethodNotAllowed => {
                ("405 Method Not Allowed", "Allow: GET, HEAD\r\n", plain, "Only GET and HEAD\n".to_owned())
            }
            Self::Bad => ("400 Bad Request", "", plain, "Not an HTTP/1.1 request\n".to_owned()),
            Self::TooLong => {
                ("431 Request Header Fields Too Large", "", plain, "Request too long\n".to_owned())
            }
        };
        let mut answer = format!(
            "HTTP/1.1 {status}\r\n{extra}Content-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        if self != (Self::Metrics { head_only: true }) {
            answer.push_str(&body);
        }
        answer.into_bytes()
    }
}

fn has_end(head: &[u8]) -> bool {
    head.windows(4).any(|bytes| bytes == b"\r\n\r\n")
}

/// The path of `/path?query` and of `http://host/path`.
fn path(target: &str) -> &str {
    let target =
        target.strip_prefix("http://").map_or(target, |rest| &rest[rest.find('/').unwrap_or(rest.len())..]);
    target.split('?').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(mut request: &[u8]) -> io::Result<Request> {
        Request::read(&mut request, Instant::now() + Duration::from_secs(60))
    }

    fn ask(line: &str) -> Request {
        read(format!("{line}\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap()
    }

    #[test]
    fn requests_are_told_apart() {
        let metrics = Request::Metrics { head_only: false };
        assert_eq!(ask("GET /metrics HTTP/1.1"), metrics);
        assert_eq!(ask("GET /metrics?name=x HTTP/1.0"), metrics);
        assert_eq!(ask("GET http://localhost:9100/metrics HTTP/1.1"), metrics);
        assert_eq!(ask("HEAD /metrics HTTP/1.1"), Request::Metrics { head_only: true });
        assert_eq!(ask("POST /metrics HTTP/1.1"), Request::MethodNotAllowed);
        assert_eq!(ask("GET / HTTP/1.1"), Request::NotFound);
        assert_eq!(ask("GET /metricsx HTTP/1.1"), Request::NotFound);
        assert_eq!(ask("GET http://localhost HTTP/1.1"), Request::NotFound);
    }

    #[test]
    fn what_is_not_http_is_refused() {
        for line in [
            "",
            "GET",
            "GET /metrics",
            "GET  /metrics HTTP/1.1",
            "get /metrics HTTP/1.1",
            "GET /metrics HTTP/3",
        ] {
            assert_eq!(ask(line), Request::Bad, "{line}");
        }
        assert_eq!(read(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap(), Request::Bad, "no host");
        assert_eq!(read(b"GET /metrics HTTP/1.1\r\nHost: x").unwrap(), Request::Bad, "cut off");
        assert_eq!(read(b"\xff\xfe\r\n\r\n").unwrap(), Request::Bad);
        assert_eq!(read(&[b'a'; 100_000]).unwrap(), Request::TooLong);
        assert!(read(b"").is_err(), "nobody to answer");
    }

    #[test]
    fn a_slow_client_runs_out_of_time() {
        let error = Request::read(&mut io::repeat(b'a').take(10), Instant::now()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn answers_carry_type_length_and_only_asked_for_bodies() {
        let text =
            |request: Request| String::from_utf8(request.answer(|| "x 1\n# EOF\n".to_owned())).unwrap();
        let full = text(Request::Metrics { head_only: false });
        assert!(full.starts_with("HTTP/1.1 200 OK\r\n") && full.ends_with("\r\n\r\nx 1\n# EOF\n"));
        assert!(
            full.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n")
        );
        let head = text(Request::Metrics { head_only: true });
        assert!(head.contains("Content-Length: 10\r\n") && head.ends_with("\r\n\r\n"));
        assert!(text(Request::MethodNotAllowed).contains("\r\nAllow: GET, HEAD\r\n"));
        assert!(text(Request::NotFound).starts_with("HTTP/1.1 404 "));
    }
}
