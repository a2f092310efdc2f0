//! A proxy that errs: it answers some requests with 503 and cuts the connection in the middle of some uploads; everything else it passes on. And
//! one that holds a request until something else has happened.

use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

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
    pub(crate) uploads: AtomicU64,
    pub(crate) cut: AtomicU64,
}

/// Starts one before the server at `port`; returns its own port and its counts.
pub(crate) fn start(port: u16, faults: Faults, seed: u64) -> (u16, Arc<Counts>) {
    serving(port, faults, seed, Arc::new(|_| false))
}

/// Starts one that refuses each request that begins with `method` and has `word` in its first line, for who asks has no right to it.
pub(crate) fn start_forbidding(port: u16, method: &'static str, word: &'static str) -> u16 {
    let before = move |line: &str| line.starts_with(method) && line.contains(word);
    serving(port, Faults { refused: 0, cut: 0 }, 0, Arc::new(before)).0
}

/// Starts one that errs not, but holds the first request that begins with `method` and has `word` in its first line, and those behind it.
pub(crate) fn start_held(port: u16, method: &'static str, word: &'static str) -> (u16, Held) {
    start_held_where(port, move |line| line.starts_with(method) && line.contains(word))
}

/// Starts one that errs not, but holds the request of this number, counted from 0, and those behind it of the same connection.
pub(crate) fn start_held_at(port: u16, number: u64) -> (u16, Held) {
    let count = AtomicU64::new(0);
    start_held_where(port, move |_| count.fetch_add(1, Ordering::Relaxed) == number)
}

fn start_held_where(port: u16, is_it: impl Fn(&str) -> bool + Send + Sync + 'static) -> (u16, Held) {
    let ((came, held), (go_on, waits)) = (mpsc::channel(), mpsc::channel());
    let gate = Mutex::new(Some((came, waits)));
    let before = move |line: &str| {
        let is_first = is_it(line);
        let taken = if is_first { gate.lock().unwrap().take() } else { None };
        if let Some((came, waits)) = taken {
            came.send(()).and_then(|()| waits.recv().map_err(|_| mpsc::SendError(()))).ok();
        }
        false
    };
    let (own, _) = serving(port, Faults { refused: 0, cut: 0 }, 0, Arc::new(before));
    (own, Held { came: held, go_on })
}

/// A request that waits until something else has happened.
pub(crate) struct Held {
    came: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
}

impl Held {
    /// Waits for the request, has `event` happen and lets it go on.
    pub(crate) fn after(self, event: impl FnOnce()) {
        self.came.recv_timeout(Duration::from_secs(60)).expect("such a request came");
        event();
        self.go_on();
    }

    /// Waits for the request, or until who would make it has ended; whether it came.
    pub(crate) fn or_ended(&self, run: &mut Child) -> bool {
        loop {
            if self.came.recv_timeout(Duration::from_millis(20)).is_ok() {
                return true;
            }
            if run.try_wait().unwrap().is_some() {
                return false;
            }
        }
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) {
        self.go_on.send(()).ok();
    }
}

/// What happens before a request whose first line this is, and whether it is forbidden.
type Before = dyn Fn(&str) -> bool + Send + Sync;

fn serving(port: u16, faults: Faults, seed: u64, before: Arc<Before>) -> (u16, Arc<Counts>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let (counts, random) = (Arc::new(Counts::default()), Arc::new(Mutex::new(Random::new(seed))));
    let shared = Arc::clone(&counts);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let (counts, random, before) = (Arc::clone(&shared), Arc::clone(&random), Arc::clone(&before));
            let proxy = Proxy { port, faults, counts, random, before };
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
    before: Arc<Before>,
}

/// The head of a message.
pub(crate) struct Head {
    pub(crate) text: Vec<u8>,
}

impl Head {
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
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

    pub(crate) fn value(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.text);
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim().to_owned())
    }

    pub(crate) fn length(&self) -> u64 {
        self.value("content-length").and_then(|length| length.parse().ok()).unwrap_or(0)
    }

    pub(crate) fn starts_with(&self, word: &[u8]) -> bool {
        self.text.starts_with(word)
    }

    /// With other beginnings of its lines.
    pub(crate) fn renamed(&self, names: &[(&str, &str)]) -> Self {
        let renamed = |line: &str| {
            let is_so = |name: &str| line.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name));
            match names.iter().find(|(old, _)| is_so(old)) {
                Some((old, new)) => format!("{new}{}", &line[old.len()..]),
                None => line.to_owned(),
            }
        };
        let text = String::from_utf8_lossy(&self.text);
        Self { text: text.split_inclusive('\n').map(renamed).collect::<String>().into() }
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
            let forbidden =
                (self.before)(String::from_utf8_lossy(&head.text).lines().next().unwrap_or_default());
            if forbidden {
                refuse(&head, "403 Forbidden", "AccessDenied", &mut requests, &mut to_client)?;
                continue;
            }
            let errs = |rate: usize| self.random.lock().unwrap().below(1000) < rate;
            let is_upload = head.starts_with(b"PUT ") && head.length() > 0;
            self.counts.uploads.fetch_add(is_upload.into(), Ordering::Relaxed);
            if is_upload && errs(self.faults.cut) {
                self.counts.cut.fetch_add(1, Ordering::Relaxed);
                to_server.write_all(&head.text)?;
                io::copy(&mut (&mut requests).take(head.length() / 2), &mut to_server)?;
                return Ok(());
            }
            if errs(self.faults.refused) {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                refuse(&head, "503 Slow Down", "SlowDown", &mut requests, &mut to_client)?;
                continue;
            }
            to_server.write_all(&head.text)?;
            io::copy(&mut (&mut requests).take(head.length()), &mut to_server)?;
            let Some(answer) = Head::read(&mut answers)? else { return Ok(()) };
            pass_answer(&head, &answer, &mut answers, &mut to_client)?;
        }
        Ok(())
    }
}

/// Answers a request with an error, past its body.
fn refuse(
    head: &Head,
    status: &str,
    code: &str,
    from: &mut impl BufRead,
    to: &mut impl Write,
) -> io::Result<()> {
    io::copy(&mut from.take(head.length()), &mut io::sink())?;
    let body = format!("<Error><Code>{code}</Code></Error>");
    let body = if head.starts_with(b"HEAD ") { "" } else { &body };
    write!(to, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Passes the answer to a request on, with the body that follows its head.
pub(crate) fn pass_answer(
    request: &Head,
    answer: &Head,
    from: &mut impl BufRead,
    to: &mut impl Write,
) -> io::Result<()> {
    to.write_all(&answer.text)?;
    let is_bare = request.starts_with(b"HEAD ") || matches!(answer.status(), 204 | 304);
    match answer.value("transfer-encoding") {
        _ if is_bare => {}
        Some(_) => pass_chunks(from, to)?,
        None => {
            io::copy(&mut from.take(answer.length()), to)?;
        }
    }
    to.flush()
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
