//! A server of S3's interface for answers that no server of others' gives: it lists what it is told, in that order, and hands out what it is told,
//! without entity tags or without a look at conditions.

use std::io::{self, BufReader, Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::faults::Head;

/// An object in one state.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) key: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) tag: Option<&'static str>,
    /// The second at which it changed.
    pub(crate) second: u8,
}

impl Object {
    pub(crate) fn new(key: &'static str, bytes: Vec<u8>, tag: Option<&'static str>, second: u8) -> Self {
        Self { key, bytes, tag, second }
    }
}

/// What a server has.
pub(crate) struct Odd {
    /// What each listing has; the last one is listed from then on.
    pub(crate) listed: Vec<Vec<Object>>,
    /// What each request for an object finds, in the same way.
    pub(crate) read: Vec<Vec<Object>>,
}

impl Odd {
    /// Has always the same.
    pub(crate) fn of(objects: Vec<Object>) -> Self {
        Self { listed: vec![objects.clone()], read: vec![objects] }
    }

    /// Starts it; returns its port.
    pub(crate) fn start(self) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new((self, AtomicUsize::new(0), AtomicUsize::new(0)));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                // A client that goes away in the middle is none of a server's business.
                thread::spawn(move || serve(&shared.0, &shared.1, &shared.2, &client).ok());
            }
        });
        port
    }
}

/// Has a command use the server at a port.
pub(crate) fn to(port: u16, mut command: Command) -> Command {
    command.envs([("AWS_ACCESS_KEY_ID", "user"), ("AWS_SECRET_ACCESS_KEY", "a secret"), ("AWS_REGION", "r")]);
    command.env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")).env("AWS_ALLOW_HTTP", "true");
    command
}

fn serve(odd: &Odd, listings: &AtomicUsize, reads: &AtomicUsize, client: &TcpStream) -> io::Result<()> {
    let (mut requests, mut answers) = (BufReader::new(client), client);
    let next = |states: &'_ [Vec<Object>], count: &AtomicUsize| {
        states[count.fetch_add(1, Ordering::Relaxed).min(states.len() - 1)].clone()
    };
    while let Some(head) = Head::read(&mut requests)? {
        io::copy(&mut (&mut requests).take(head.length()), &mut io::sink())?;
        let text = String::from_utf8_lossy(&head.text).into_owned();
        let target = text.split(' ').nth(1).unwrap_or_default().replace("%2F", "/").replace("%21", "!");
        match target.split_once('?') {
            Some((_, query)) => list(&next(&odd.listed, listings), query, &mut answers)?,
            None => {
                let key = target.strip_prefix("/bucket/").unwrap_or_default();
                let objects = next(&odd.read, reads);
                give(objects.iter().find(|object| object.key == key), &head, &mut answers)?;
            }
        }
    }
    Ok(())
}

fn list(objects: &[Object], query: &str, to: &mut impl Write) -> io::Result<()> {
    let value = |name: &str| {
        let values = query.split('&').filter_map(|pair| pair.split_once('='));
        values.filter(|(own, _)| *own == name).map(|(_, value)| value.to_owned()).next().unwrap_or_default()
    };
    let (prefix, after) = (value("prefix"), value("start-after"));
    // Who lists in no order begins where the name stands.
    let begins = objects.iter().position(|object| object.key == after).map_or(0, |at| at + 1);
    let entries = objects[begins..].iter().filter(|object| object.key.starts_with(&prefix)).map(|object| {
        let Object { key, bytes, tag, second } = object;
        let tag = tag.map(|tag| format!("<ETag>&quot;{tag}&quot;</ETag>")).unwrap_or_default();
        let time = format!("2026-11-30T12:00:{second:02}.500Z");
        let size = bytes.len();
        format!(
            "<Contents><Key>{key}</Key><LastModified>{time}</LastModified>{tag}<Size>{size}</Size></Contents>"
        )
    });
    let body = format!("<ListBucketResult>{}</ListBucketResult>", entries.collect::<String>());
    write!(to, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn give(object: Option<&Object>, request: &Head, to: &mut impl Write) -> io::Result<()> {
    let Some(Object { bytes, tag, second, .. }) = object else {
        return to.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    };
    let range = request.value("range").map(|range| {
        let (start, end) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        (start.parse::<usize>().unwrap(), end.parse::<usize>().unwrap().min(bytes.len().saturating_sub(1)))
    });
    let (status, part, more) = match range {
        Some((start, end)) if start <= end && end < bytes.len() => {
            let place = format!("content-range: bytes {start}-{end}/{}\r\n", bytes.len());
            ("206 Partial Content", &bytes[start..=end], place)
        }
        Some(_) => ("416 Range Not Satisfiable", &bytes[..0], String::new()),
        None => ("200 OK", &bytes[..], String::new()),
    };
    let tag = tag.map(|tag| format!("etag: \"{tag}\"\r\n")).unwrap_or_default();
    let time = format!("last-modified: Mon, 30 Nov 2026 12:00:{second:02} GMT\r\n");
    write!(to, "HTTP/1.1 {status}\r\n{time}{tag}{more}content-length: {}\r\n\r\n", part.len())?;
    if !request.starts_with(b"HEAD ") {
        to.write_all(part)?;
    }
    to.flush()
}
