//! One connection: handshake -> request -> answer -> what both took.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use openssl::ssl::{Ssl, SslContext, SslStream};

use super::http::{PIECE_BYTES, Request, write_continue, write_head};
use super::request_times::Clock;
use super::{Phase, Said, Shared, hello, tell};
use crate::tls::page::{Agreed, Seen};
use crate::tls::site::{FORM, asset};
use crate::tls::suite::Suite;

/// A client that says nothing for so long is gone; browsers open connections in advance.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// What a page may post as its result.
const RESULT_BYTES_MAX: u64 = 16 << 20;
/// What may be uploaded or downloaded at once.
const BODY_BYTES_MAX: u64 = 4 << 30;

/// Where results go, before their session.
pub(in crate::tls) const RESULT: &str = "/result/";

const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

type Stream = SslStream<TcpStream>;

/// A connection with its handshake done.
struct Connection<'s> {
    stream: Stream,
    shared: &'s Shared,
    clock: Clock,
    tls_ms: f64,
    encrypt_then_mac: bool,
    /// What an answer's head has besides.
    policy: String,
}

/// Serves the one request of a connection.
pub(super) fn serve(
    tcp: TcpStream,
    suite: Suite,
    context: &SslContext,
    shared: &Shared,
) -> Result<(), String> {
    let mut clock = Clock::start();
    tcp.set_read_timeout(Some(SILENCE_MAX))
        .and_then(|()| tcp.set_nodelay(true))
        .map_err(|e| e.to_string())?;
    let mut hello = [0; hello::BYTES_MAX];
    match tcp.peek(&mut hello) {
        // A connection that was opened in advance and not needed.
        Ok(0) => return Ok(()),
        Err(error) if is_silence(&error) => return Ok(()),
        _ => {}
    }
    let offers = hello::offers_encrypt_then_mac(&hello) == Some(true);
    delay(shared, Phase::Tls);
    let ssl = Ssl::new(context).map_err(|error| error.to_string())?;
    let mut stream = SslStream::new(ssl, tcp).map_err(|error| error.to_string())?;
    stream.accept().map_err(|error| format!("no handshake: {error}"))?;
    let tls_ms = clock.lap();
    let is_cbc = || stream.ssl().current_cipher().is_some_and(|it| !it.name().contains("GCM"));
    let encrypt_then_mac = offers && suite == Suite::Tls12Cbc && is_cbc();
    let mut connection =
        Connection { stream, shared, clock, tls_ms, encrypt_then_mac, policy: String::new() };
    let request = match Request::read(&mut connection.stream) {
        Ok(Some(request)) => request,
        Ok(None) => return Ok(()),
        Err(error) if is_silence(&error) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    connection.policy = policy(request.host.as_deref().unwrap_or("localhost"));
    let answered = connection.answer(&request);
    // Best effort: all bytes are with the system, and a client that is gone needs no more.
    connection.stream.shutdown().ok();
    answered
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn delay(shared: &Shared, phase: Phase) {
    if let Some(plant) = shared.setup.plant.filter(|plant| plant.phase == phase) {
        std::thread::sleep(Duration::from_millis(u64::from(plant.ms)));
    }
}

impl Connection<'_> {
    fn answer(&mut self, request: &Request) -> Result<(), String> {
        match (request.method.as_str(), request.path.as_str()) {
            ("POST" | "PUT", "/up") => self.take_upload(request, JSON, b"{}"),
            ("POST", FORM) => {
                let page = asset(FORM).expect("the table of assets has it");
                self.take_upload(request, page.kind, page.bytes)
            }
            ("GET", "/down") => self.give_download(request),
            ("PUT", path) if path.starts_with(RESULT) => self.take_result(request),
            ("GET", "/spent") => self.give_spent(request),
            ("GET", "/setup.json") => match self.shared.page.get() {
                Some(page) => self.write("200 OK", JSON, page.as_bytes()),
                None => self.write("503 Service Unavailable", PLAIN, b"the servers are still starting\n"),
            },
            ("GET", path) => match asset(path) {
                Some(asset) => self.write("200 OK", asset.kind, asset.bytes),
                None => self.write("404 Not Found", PLAIN, b"there is no such page\n"),
            },
            _ => self.write("405 Method Not Allowed", PLAIN, b"that is not done here\n"),
        }
    }

    fn write(&mut self, status: &str, kind: &str, bytes: &[u8]) -> Result<(), String> {
        let sent = write_head(&mut self.stream, status, kind, bytes.len() as u64, &self.policy)
            .and_then(|()| self.stream.write_all(bytes));
        sent.map_err(|error| format!("an answer could not be sent: {error}"))
    }

    /// The body goes to a file, as with any server that keeps uploads, and the file away with the connection.
    fn take_upload(&mut self, request: &Request, kind: &str, answer: &[u8]) -> Result<(), String> {
        let Some(bytes) = request.body_bytes.filter(|&bytes| bytes <= BODY_BYTES_MAX) else {
            return self.write("411 Length Required", PLAIN, b"the length of an upload must be given\n");
        };
        delay(self.shared, Phase::Request);
        let mut kept = self.shared.draft().map_err(|error| error.to_string());
        let mut keep = |piece: &[u8]| {
            let written = kept.as_mut().map(|file| file.write_all(piece));
            if let Ok(Err(error)) = written {
                kept = Err(error.to_string());
            }
        };
        self.read_body(request, bytes, &mut keep)?;
        if let Err(reason) = kept {
            let folder = self.shared.setup.folder.display();
            let sentence = format!("the server cannot keep an upload of {bytes} bytes in {folder}: {reason}");
            tell(&Said::Fault(sentence.clone()));
            return self.write("507 Insufficient Storage", PLAIN, sentence.as_bytes());
        }
        let request_ms = self.clock.lap();
        self.write_head_late("200 OK", kind, answer.len() as u64)?;
        self.stream.write_all(answer).map_err(|error| format!("an answer could not be sent: {error}"))?;
        self.enter(request, request_ms);
        Ok(())
    }

    /// A head, then the delay of the rest where one is planted.
    fn write_head_late(&mut self, status: &str, kind: &str, bytes: u64) -> Result<(), String> {
        let sent = write_head(&mut self.stream, status, kind, bytes, &self.policy);
        sent.map_err(|error| format!("an answer could not be sent: {error}"))?;
        delay(self.shared, Phase::Response);
        Ok(())
    }

    /// Reads a whole body, piece by piece.
    fn read_body(
        &mut self,
        request: &Request,
        bytes: u64,
        keep: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        let left_early = |left: u64, why: &str| {
            format!("the client left after {} of {bytes} bytes of its upload{why}", bytes - left)
        };
        let mut left =
            bytes.checked_sub(request.begun.len() as u64).ok_or("it sent more than it announced")?;
        keep(&request.begun);
        if request.waits && left > 0 {
            write_continue(&mut self.stream).map_err(|error| left_early(left, &format!(": {error}")))?;
        }
        let mut piece = [0; PIECE_BYTES];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            match self.stream.read(&mut piece[..most]) {
                Ok(0) => return Err(left_early(left, "")),
                Ok(length) => {
                    keep(&piece[..length]);
                    left -= length as u64;
                }
                Err(error) => return Err(left_early(left, &format!(": {error}"))),
            }
        }
        Ok(())
    }

    fn give_download(&mut self, request: &Request) -> Result<(), String> {
        let bytes: Option<u64> = request.value("bytes").and_then(|word| word.parse().ok());
        let Some(bytes) = bytes.filter(|&bytes| bytes <= BODY_BYTES_MAX) else {
            return self.write("400 Bad Request", PLAIN, b"how many bytes?\n");
        };
        delay(self.shared, Phase::Request);
        let request_ms = self.clock.lap();
        self.write_head_late("200 OK", "application/octet-stream", bytes)?;
        let piece = [0x42; PIECE_BYTES];
        let mut left = bytes;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let sent = self.stream.write_all(&piece[..most]);
            sent.map_err(|error| {
                format!("the client left after {} of {bytes} bytes of its download: {error}", bytes - left)
            })?;
            left -= most as u64;
        }
        self.enter(request, request_ms);
        Ok(())
    }

    fn take_result(&mut self, request: &Request) -> Result<(), String> {
        let Some(bytes) = request.body_bytes.filter(|&bytes| bytes <= RESULT_BYTES_MAX) else {
            return self.write("413 Content Too Large", PLAIN, b"a result is shorter\n");
        };
        let mut text = Vec::new();
        self.read_body(request, bytes, &mut |piece| text.extend_from_slice(piece))?;
        match serde_json::from_slice(&text) {
            Ok(result) => tell(&Said::Result(result)),
            Err(_) => return self.write("400 Bad Request", PLAIN, b"a result is JSON\n"),
        }
        self.write("200 OK", JSON, b"{}")
    }

    fn give_spent(&mut self, request: &Request) -> Result<(), String> {
        let session = request.value("session").unwrap_or_default().to_owned();
        let rows = self.shared.with_ledger(|ledger| ledger.of(&session));
        self.write("200 OK", JSON, serde_json::Value::Object(rows).to_string().as_bytes())
    }

    /// Remembers what a request took, where it has a name.
    fn enter(&mut self, request: &Request, request_ms: f64) {
        let Some(id) = request.value("id") else { return };
        let cipher = self.stream.ssl().current_cipher().map_or("none", |cipher| cipher.name()).to_owned();
        let seen = Seen {
            tls_ms: self.tls_ms,
            request_ms,
            response_ms: self.clock.lap(),
            core_ms: self.clock.core_ms(),
            agreed: Agreed { cipher, encrypt_then_mac: self.encrypt_then_mac },
        };
        self.shared.with_ledger(|ledger| ledger.enter(id, seen));
    }
}

/// The page runs what came with it and nothing else. Where it connects is the host that it came from, at the other server's ports, too.
fn policy(host: &str) -> String {
    format!(
        "Content-Security-Policy: default-src 'self'; img-src 'self' data:; connect-src 'self' https://{host}:*; \
         frame-src 'self' https://{host}:*; form-action 'self' https://{host}:*; base-uri 'none'\r\n"
    )
}
