//! Requests and answers of HTTP/1.1, as far as the page and curl use it: a connection has one request.

use std::io::{self, Read, Write};

/// A head may be so long.
const HEAD_BYTES_MAX: usize = 16_384;
/// Headers of a head.
const HEADERS_MAX: usize = 64;
/// What is read and written at once: a TLS record's most.
pub(super) const PIECE_BYTES: usize = 16_384;

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// Before the question mark.
    pub(super) path: String,
    /// Behind it.
    query: String,
    /// Of the body, where one is announced.
    pub(super) body_bytes: Option<u64>,
    /// By what name the client reached this server, without the port.
    pub(super) host: Option<String>,
    /// Whether the client waits to be told to go on.
    pub(super) waits: bool,
    /// Of the body, what came with the head.
    pub(super) begun: Vec<u8>,
}

impl Request {
    /// Reads a head; `None` where the client left before it said anything.
    ///
    /// # Errors
    ///
    /// Where the connection fails, or what came is no head that is understood.
    pub(super) fn read(stream: &mut impl Read) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        let mut piece = [0; PIECE_BYTES];
        loop {
            let length = stream.read(&mut piece)?;
            if length == 0 {
                return if bytes.is_empty() { Ok(None) } else { Err(wrong("a head that ends early")) };
            }
            bytes.extend_from_slice(&piece[..length]);
            if let Some(request) = Self::parse(&bytes)? {
                return Ok(Some(request));
            }
            if bytes.len() > HEAD_BYTES_MAX {
                return Err(wrong("a head that is too long"));
            }
        }
    }

    /// `None` where there is more to come.
    fn parse(bytes: &[u8]) -> io::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        let status = parsed.parse(bytes).map_err(|_| wrong("what is no HTTP"))?;
        let httparse::Status::Complete(head) = status else { return Ok(None) };
        let (Some(method), Some(target)) = (parsed.method, parsed.path) else { return Ok(None) };
        let header = |name: &str| {
            let found = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(found.value).ok().map(str::trim)
        };
        let body_bytes = header("content-length").map(str::parse).transpose();
        let body_bytes = body_bytes.map_err(|_| wrong("a length that is no number"))?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Ok(Some(Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            body_bytes,
            host: header("host").and_then(host_name).map(str::to_owned),
            waits: header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")),
            begun: bytes[head..].to_vec(),
        }))
    }

    /// A value of the query, as it stands there.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find_map(|(key, value)| (key == name).then_some(value))
    }
}

/// A host without its port; `None` where it has letters that no name has.
fn host_name(host: &str) -> Option<&str> {
    let port = host.rfind(':').filter(|&at| host[at + 1..].bytes().all(|byte| byte.is_ascii_digit()));
    let name = &host[..port.unwrap_or(host.len())];
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    (!name.is_empty() && name.bytes().all(is_of_names)).then_some(name)
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it sent {what}"))
}

/// Writes the head of an answer. Pages of the other end may read all answers (CORS), with all times.
pub(super) fn write_head(
    stream: &mut impl Write,
    status: &str,
    kind: &str,
    bytes: u64,
    more: &str,
) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nAccess-Control-Allow-Origin: *\r\nTiming-Allow-Origin: *\r\n{more}\r\n"
    );
    stream.write_all(head.as_bytes())
}

/// Tells a client that waits to go on.
pub(super) fn write_continue(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_whatever_its_pieces_are() {
        let text = b"POST /up?id=7&bytes=9 HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\nabc";
        let whole = Request::read(&mut &text[..]).unwrap().unwrap();
        assert_eq!((whole.method.as_str(), whole.path.as_str()), ("POST", "/up"));
        assert_eq!((whole.value("id"), whole.value("bytes"), whole.value("i")), (Some("7"), Some("9"), None));
        assert_eq!((whole.body_bytes, whole.waits, &whole.begun[..]), (Some(9), true, &b"abc"[..]));
        let mut pieces = text[..20].chain(&text[20..]);
        assert_eq!(Request::read(&mut pieces).unwrap().unwrap(), whole);
    }

    #[test]
    fn a_host_is_a_name_without_its_port_and_nothing_else() {
        let names = ["localhost:8443", "192.168.0.7:1", "[::1]:443", "x", "a b:1", "x;script-src *", ":1"];
        let read = names.map(host_name);
        assert_eq!(read[..4], [Some("localhost"), Some("192.168.0.7"), Some("[::1]"), Some("x")]);
        assert_eq!(read[4..], [None; 3]);
    }

    #[test]
    fn what_is_no_request_is_told_and_silence_is_none() {
        assert_eq!(Request::read(&mut &b""[..]).unwrap(), None);
        for text in ["\x16\x03\x01 no", "GET / HTTP/1.1\r\nHo", "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"]
        {
            let error = Request::read(&mut text.as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with("it sent"), "{error}");
        }
        let endless = format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(40_000));
        assert!(Request::read(&mut endless.as_bytes()).unwrap_err().to_string().contains("too long"));
    }
}
