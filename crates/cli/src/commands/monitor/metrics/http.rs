//! Just enough of HTTP/1.1 to be scraped: one request, one answer, connection closed.

use std::io::{self, Read};

/// A request longer than this is refused; a scraper's is a few hundred bytes.
const MOST_REQUEST_BYTES: usize = 8 * 1024;

/// The text format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The text format of Prometheus, which every scraper reads.
    Prometheus,
    /// OpenMetrics, for those that ask for it.
    OpenMetrics,
}

impl Form {
    fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// What a client wants more, by its `Accept`.
    fn accepted(accept: &str) -> Self {
        let mut weights = [None; 2];
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts.find_map(|part| part.strip_prefix("q=")).unwrap_or("1").parse::<f32>();
            let weight = weight.unwrap_or(0.0);
            let (form, is_exact) = match media.as_str() {
                "application/openmetrics-text" => (1, true),
                "text/plain" => (0, true),
                "text/*" | "*/*" => (0, false),
                _ => continue,
            };
            // What is named beats what a wildcard covers; of one named twice, the heavier.
            let known: Option<(bool, f32)> = weights[form];
            if known.is_none_or(|known| (is_exact, weight) > known) {
                weights[form] = Some((is_exact, weight));
            }
        }
        let weight = |form: usize| weights[form].map_or(0.0, |(_, weight)| weight);
        if weight(1) > 0.0 && weight(1) >= weight(0) { Self::OpenMetrics } else { Self::Prometheus }
    }
}

/// What a client may ask for, or why it may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// The metrics; only the head of the answer if `head_only`.
    Metrics { head_only: bool, form: Form },
    /// Something that does not exist.
    NotFound,
    /// A method other than GET and HEAD.
    MethodNotAllowed,
    /// Not HTTP.
    Bad,
    /// A head without an end.
    TooLong,
    /// Whatever it asks for, there are too many others.
    Full,
}

impl Request {
    /// Reads the head of a request.
    pub(super) fn read(stream: &mut impl Read) -> io::Result<Self> {
        let mut head = Vec::new();
        let mut chunk = [0; 1024];
        while !has_end(&head) {
            if head.len() > MOST_REQUEST_BYTES {
                return Ok(Self::TooLong);
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
        let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
        let named = |name: &'static str| {
            headers.iter().filter(move |(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
        };
        let version_is_good =
            version == "HTTP/1.0" || (version == "HTTP/1.1" && named("host").next().is_some());
        if !is_token || !version_is_good {
            return Self::Bad;
        }
        let form = Form::accepted(&named("accept").collect::<Vec<_>>().join(","));
        match (path(target), method) {
            ("/metrics", "GET") => Self::Metrics { head_only: false, form },
            ("/metrics", "HEAD") => Self::Metrics { head_only: true, form },
            ("/metrics", _) => Self::MethodNotAllowed,
            _ => Self::NotFound,
        }
    }

    /// The status line, extra headers, content type and body of the answer.
    pub(super) fn answer(self, metrics: impl FnOnce(Form) -> String) -> Vec<u8> {
        let plain = "text/plain; charset=utf-8";
        let (status, extra, kind, body) = match self {
            Self::Metrics { form, .. } => ("200 OK", "Vary: Accept\r\n", form.content_type(), metrics(form)),
            Self::NotFound => ("404 Not Found", "", plain, "The metrics are at /metrics\n".to_owned()),
            Self::MethodNotAllowed => {
                ("405 Method Not Allowed", "Allow: GET, HEAD\r\n", plain, "Only GET and HEAD\n".to_owned())
            }
            Self::Bad => ("400 Bad Request", "", plain, "Not an HTTP/1.1 request\n".to_owned()),
            Self::TooLong => {
                ("431 Request Header Fields Too Large", "", plain, "Request too long\n".to_owned())
            }
            Self::Full => {
                ("503 Service Unavailable", "Retry-After: 1\r\n", plain, "Too many clients\n".to_owned())
            }
        };
        let mut answer = format!(
            "HTTP/1.1 {status}\r\n{extra}Content-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        if !matches!(self, Self::Metrics { head_only: true, .. }) {
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
    use super::*;

    fn read(mut request: &[u8]) -> io::Result<Request> {
        Request::read(&mut request)
    }

    fn ask(line: &str) -> Request {
        read(format!("{line}\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap()
    }

    #[test]
    fn requests_are_told_apart() {
        let metrics = Request::Metrics { head_only: false, form: Form::Prometheus };
        assert_eq!(ask("GET /metrics HTTP/1.1"), metrics);
        assert_eq!(ask("GET /metrics?name=x HTTP/1.0"), metrics);
        assert_eq!(ask("GET http://localhost:9100/metrics HTTP/1.1"), metrics);
        assert_eq!(
            ask("HEAD /metrics HTTP/1.1"),
            Request::Metrics { head_only: true, form: Form::Prometheus }
        );
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
    fn the_form_is_the_one_that_the_client_wants_more() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;\
                          version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, expected) in [
            ("", Form::Prometheus),
            ("*/*", Form::Prometheus),
            ("text/html", Form::Prometheus),
            ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Form::Prometheus),
            ("application/openmetrics-text; version=1.0.0", Form::OpenMetrics),
            ("Application/OpenMetrics-Text, */*", Form::OpenMetrics),
            ("application/openmetrics-text;q=0.2, text/plain;q=0.9", Form::Prometheus),
            ("application/openmetrics-text;q=0", Form::Prometheus),
            ("application/openmetrics-text;q=nonsense", Form::Prometheus),
            (prometheus, Form::OpenMetrics),
        ] {
            assert_eq!(Form::accepted(accept), expected, "{accept}");
        }
        let request = b"GET /metrics HTTP/1.0\r\nACCEPT: application/openmetrics-text\r\n\r\n";
        assert_eq!(read(request).unwrap(), Request::Metrics { head_only: false, form: Form::OpenMetrics });
    }

    #[test]
    fn answers_carry_type_length_and_only_asked_for_bodies() {
        let text = |request: Request| String::from_utf8(request.answer(|_| "x 1\n".to_owned())).unwrap();
        let full = text(Request::Metrics { head_only: false, form: Form::OpenMetrics });
        assert!(full.starts_with("HTTP/1.1 200 OK\r\n") && full.ends_with("\r\n\r\nx 1\n"));
        assert!(
            full.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n")
        );
        let head = text(Request::Metrics { head_only: true, form: Form::Prometheus });
        assert!(head.contains("Content-Length: 4\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(head.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{head}");
        assert!(text(Request::Full).starts_with("HTTP/1.1 503 "));
        assert!(text(Request::MethodNotAllowed).contains("\r\nAllow: GET, HEAD\r\n"));
        assert!(text(Request::NotFound).starts_with("HTTP/1.1 404 "));
    }
}
