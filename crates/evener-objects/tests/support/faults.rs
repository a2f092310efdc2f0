//! A proxy that errs: it answers some requests with 503 and cuts the connection in the middle of some uploads; everything else it passes on.

use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use evener_testing::Random;

/// How often it errs, of a thousand.
#[derive(Clone, Copy)]
pub(crate) struct Faults {
    pub(crate) refused: usize,
    pub(crate) cut: usize,
}

/// What it has done.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) requests: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) cut: AtomicU64,
}

/// Starts one before the server at `port`; returns its own port and its counts.
pub(crate) fn start(port: u16, faults: Faults, seed: u64) -> (u16, Arc<Counts>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let (counts, random) = (Arc::new(Counts::default()), Arc::new(Mutex::new(Random::new(seed))));
    let shared = Arc::clone(&counts);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let proxy = Proxy { port, faults, counts: Arc::clone(&shared), random: Arc::clone(&random) };
            // A client that goes away in the middle is none of a proxy's business.
            thread::spawn(move || proxy.serve(&client).ok());
        }
    });
    (own, counts)
}

struct Proxy {
    port: u16,
    faults: Faults,
    counts: Arc<Counts>,
    random: Arc<Mutex<Random>>,
}

/// The head of a message.
struct Head {
    text: Vec<u8>,
}

impl Head {
    fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut text = Vec::new();
        loop {
            let start = text.len();
            if from.read_until(b'\n', &mut text)? == 0 {
                return Ok(None);
            }
            if matches!(&text[start..], b"\r\n" | b"\n") {
                return Ok(Some(Self { text }));
            }
        }
    }

    fn value(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.text);
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim().to_owned())
    }

    fn length(&self) -> u64 {
        self.value("content-length").and_then(|length| length.parse().ok()).unwrap_or(0)
    }

    fn starts_with(&self, word: &[u8]) -> bool {
        self.text.starts_with(word)
    }

    /// The status of an answer.
    fn status(&self) -> u16 {
        let text = String::from_utf8_lossy(&self.text);
        text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }
}

impl Proxy {
    fn serve(&self, client: &TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(("127.0.0.1", self.port))?;
        let (mut requests, mut answers) = (BufReader::new(client), BufReader::new(&server));
        let (mut to_client, mut to_server) = (client, &server);
        while let Some(head) = Head::read(&mut requests)? {
            self.counts.requests.fetch_add(1, Ordering::Relaxed);
            let errs = |rate: usize| self.random.lock().unwrap().below(1000) < rate;
            let is_upload = head.starts_with(b"PUT ") && head.length() > 0;
            if is_upload && errs(self.faults.cut) {
                self.counts.cut.fetch_add(1, Ordering::Relaxed);
                to_server.write_all(&head.text)?;
                io::copy(&mut (&mut requests).take(head.length() / 2), &mut to_server)?;
                return Ok(());
            }
            if errs(self.faults.refused) {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                io::copy(&mut (&mut requests).take(head.length()), &mut io::sink())?;
                let body = "<Error><Code>SlowDown</Code></Error>";
                let length = if head.starts_with(b"HEAD ") { "" } else { body };
                write!(
                    to_client,
                    "HTTP/1.1 503 Slow Down\r\ncontent-length: {}\r\n\r\n{length}",
                    length.len()
                )?;
                continue;
            }
            to_server.write_all(&head.text)?;
            io::copy(&mut (&mut requests).take(head.length()), &mut to_server)?;
            let Some(answer) = Head::read(&mut answers)? else { return Ok(()) };
            to_client.write_all(&answer.text)?;
            let is_bare = head.starts_with(b"HEAD ") || matches!(answer.status(), 204 | 304);
            match answer.value("transfer-encoding") {
                _ if is_bare => {}
                Some(_) => pass_chunks(&mut answers, &mut to_client)?,
                None => {
                    io::copy(&mut (&mut answers).take(answer.length()), &mut to_client)?;
                }
            }
            to_client.flush()?;
        }
        Ok(())
    }
}

/// Passes a body in chunks on, to its last one and the line behind it.
fn pass_chunks(from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line)?;
        to.write_all(&line)?;
        let digits = String::from_utf8_lossy(&line);
        let bytes = u64::from_str_radix(digits.trim(), 16).map_err(io::Error::other)?;
        io::copy(&mut from.take(bytes + 2), to)?;
        if bytes == 0 {
            return Ok(());
        }
    }
}
