//! What it costs to wait for AF_ALG in different ways, bare: system calls, threads and copies, and nothing of Evener's.
//!
//! OpenSSL's engine and the provider's two ways to wait stand beside them, by `openssl speed`. The bare ways say how near to
//! the engine a caller can come that must leave a module which hangs, and one whose input is to stay whole until the result is there.
//!
//! Steps of a bare request: [`AlgSocket::send`] has the kernel copy the text -> [`AlgSocket::receive`] sleeps until the module has answered, on the
//! caller's thread or on one of our own, which wait by [`thread::park`] -> the result is where the text was.

use std::io::IoSlice;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, Thread};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::ALG_OP_ENCRYPT;
use nix::sys::socket::{
    AddressFamily, AlgAddr, ControlMessage, MsgFlags, SockFlag, SockType, bind, recv, sendmsg, setsockopt,
    socket, sockopt,
};
use serde_json::{Map, Value, json};

use super::{CALLER, CIPHERS, CONFIGURATIONS, Cipher, ENGINE, WITH, Window, in_turn, median, report, speed};

/// Sizes at which requests go to the module, in bytes.
const SIZES: [u32; 4] = [1_024, 4_096, 8_192, 16_384];

/// Requests of a bare way at a time: a quarter of a second. Some come before, which are not counted.
const REQUESTS: u32 = 4_000;
const BEFORE: u32 = 200;

/// After so long a module is silent: as long as the provider waits at most.
const TIMEOUT: Duration = Duration::from_secs(2);

const DRIVER: &str = "virtio_crypto_aes_cbc";
const KEY: [u8; 16] = [0x2b; 16];
const IV: [u8; 16] = [0; 16];

/// The ways of OpenSSL that stand beside.
const PROGRAMS: [usize; 3] = [ENGINE, WITH, CALLER];

/// Which thread waits for a bare request, and what is copied beside what the kernel copies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bare {
    /// The caller, into its own text.
    InPlace,
    /// The caller, into a buffer; the text is whole until the result is there.
    Copied,
    /// A thread, which gives the request to the kernel, too; the text goes to a buffer and back.
    Thread,
    /// A thread, which only reads; the result comes from a buffer.
    Reader,
    /// A thread that reads already when the caller sends; the result comes from a buffer.
    Posted,
}

const BARE: [(Bare, &str); 5] = [
    (Bare::InPlace, "caller, in place"),
    (Bare::Copied, "caller, copied"),
    (Bare::Thread, "thread"),
    (Bare::Reader, "thread reads"),
    (Bare::Posted, "thread reads before"),
];

/// Each way at each size.
pub(crate) fn all(rounds: usize) -> Result<(), String> {
    println!("AES-128-CBC, us of a request and of the core for it, over the engine's; medians of {rounds}");
    // The first alarm in a guest's life rings at once, and the first run says nothing.
    drop(speed::speed(0, &CIPHERS[0], SIZES[0]));
    // While some timer is set a core that is idle has its time counted, as beside the alarm of `openssl speed`. It ends with the program.
    thread::spawn(|| thread::sleep(Duration::from_secs(86_400)));
    let rows: Result<Vec<Value>, String> = SIZES.into_iter().map(|bytes| at(bytes, rounds)).collect();
    report(&json!({ "unit": "us", "rounds": rounds, "requests": REQUESTS, "rows": rows? }))
}

/// What a request took.
struct Cost {
    wall_us: f64,
    core_us: f64,
}

/// A row: all ways in turn, in each round.
fn at(bytes: u32, rounds: usize) -> Result<Value, String> {
    const ALL: usize = PROGRAMS.len() + BARE.len();
    let costs: [Vec<Cost>; ALL] = in_turn(rounds, &|way| match way.checked_sub(PROGRAMS.len()) {
        None => by_program(PROGRAMS[way], &CIPHERS[0], bytes),
        Some(bare) => by_hand(BARE[bare].0, bytes as usize),
    })?;
    let names = PROGRAMS.map(|way| CONFIGURATIONS[way].name).into_iter().chain(BARE.map(|(_, name)| name));
    let medians = costs.each_ref().map(|costs| {
        [|cost: &Cost| cost.wall_us, |cost: &Cost| cost.core_us]
            .map(|value| median(costs.iter().map(value).collect()))
    });
    let engine = medians[0];
    println!("{bytes} B");
    let mut ways = Map::new();
    for ((name, costs), [wall, core]) in names.zip(&costs).zip(medians) {
        println!("    {name:<20} {wall:7.1} {core:7.1}  {:.2} {:.2}", wall / engine[0], core / engine[1]);
        let all = |value: fn(&Cost) -> f64| costs.iter().map(value).collect::<Vec<_>>();
        let all_costs = json!({ "wall_us": all(|cost| cost.wall_us), "core_us": all(|cost| cost.core_us) });
        ways.insert(name.to_owned(), all_costs);
    }
    Ok(json!({ "bytes": bytes, "ways": ways }))
}

fn by_program(way: usize, cipher: &Cipher, bytes: u32) -> Result<Cost, String> {
    let done = speed::speed(way, cipher, bytes)?;
    Ok(Cost { wall_us: f64::from(bytes) / done.rate, core_us: done.core_ns * f64::from(bytes) * 1e-3 })
}

fn by_hand(way: Bare, bytes: usize) -> Result<Cost, String> {
    // One for each time: what ends a thread that reads may stay on it.
    let socket = AlgSocket::take().map_err(|error| format!("AF_ALG, {DRIVER}: {error}"))?;
    socket.time(way, bytes)
}

/// A key at the module, and a socket for one request at a time.
struct AlgSocket {
    _transform: OwnedFd,
    operation: OwnedFd,
}

impl AlgSocket {
    fn take() -> Result<Self, Errno> {
        let transform = socket(AddressFamily::Alg, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
        bind(transform.as_raw_fd(), &AlgAddr::new("skcipher", DRIVER))?;
        setsockopt(&transform, sockopt::AlgSetKey::default(), &KEY)?;
        let operation =
            rustix::net::accept(&transform).map_err(|error| Errno::from_raw(error.raw_os_error()))?;
        Ok(Self { _transform: transform, operation })
    }

    fn send(&self, text: &[u8]) -> Result<(), Errno> {
        let direction = ALG_OP_ENCRYPT;
        let settings = [ControlMessage::AlgSetOp(&direction), ControlMessage::AlgSetIv(&IV)];
        let parts = [IoSlice::new(text)];
        let sent = sendmsg::<()>(self.operation.as_raw_fd(), &parts, &settings, MsgFlags::empty(), None)?;
        if sent == text.len() { Ok(()) } else { Err(Errno::EIO) }
    }

    fn receive(&self, space: &mut [u8]) -> Result<(), Errno> {
        let received = recv(self.operation.as_raw_fd(), space, MsgFlags::empty())?;
        if received == space.len() { Ok(()) } else { Err(Errno::EIO) }
    }

    /// Requests of so many bytes, one after the other, each over what the one before has made.
    fn time(&self, way: Bare, bytes: usize) -> Result<Cost, String> {
        let (mut text, mut expected) = (vec![0x42; bytes], vec![0x42; bytes]);
        let waiter = Waiter {
            socket: self,
            spaces: [(); 2].map(|()| Mutex::new(vec![0; bytes])),
            posted: 0.into(),
            answered: 0.into(),
        };
        let cost = thread::scope(|scope| {
            let runner = waiter.runner(scope, way);
            let cost = waiter.all(way, &mut text, runner.as_ref());
            waiter.end(way, &text, runner.as_ref());
            cost
        })?;
        let judge = Self::take().map_err(|error| error.to_string())?;
        for _ in 0..BEFORE + REQUESTS {
            let done = judge.send(&expected).and_then(|()| judge.receive(&mut expected));
            done.map_err(|error| error.to_string())?;
        }
        if text == expected { Ok(cost) } else { Err("the ways to wait make different texts".to_owned()) }
    }
}

/// Where a caller and the thread that waits for it meet.
struct Waiter<'s> {
    socket: &'s AlgSocket,
    /// Of every other request each: a thread that reads before the caller sends has the next one's.
    spaces: [Mutex<Vec<u8>>; 2],
    /// Requests so far; [`OVER`] where there are no more.
    posted: AtomicU32,
    answered: AtomicU32,
}

const OVER: u32 = u32::MAX;

impl Waiter<'_> {
    /// Starts the thread of a way that has one.
    fn runner<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, way: Bare) -> Option<Thread> {
        let caller = thread::current();
        let needs_one = matches!(way, Bare::Thread | Bare::Reader | Bare::Posted);
        needs_one.then(|| scope.spawn(move || self.run(way, &caller)).thread().clone())
    }

    /// The runner's life. An error ends it, and the caller hears nothing.
    fn run(&self, way: Bare, caller: &Thread) {
        for number in 1.. {
            while way != Bare::Posted && self.posted.load(Acquire) < number {
                thread::park();
            }
            let mut space = self.space(number);
            let sent = if way == Bare::Thread { self.socket.send(&space) } else { Ok(()) };
            let is_over = way != Bare::Posted && self.posted.load(Acquire) == OVER;
            if is_over || sent.and_then(|()| self.socket.receive(&mut space)).is_err() {
                return;
            }
            drop(space);
            // Release: a thread that sees the number sees what the space holds.
            self.answered.store(number, Release);
            caller.unpark();
            if self.posted.load(Acquire) == OVER {
                return;
            }
        }
    }

    fn all(&self, way: Bare, text: &mut [u8], runner: Option<&Thread>) -> Result<Cost, String> {
        let many = |count: std::ops::Range<u32>, text: &mut [u8]| -> Result<(), String> {
            let mut each = count.into_iter().map(|before| self.one(way, text, runner, before + 1));
            each.try_for_each(|done| done.map_err(|error| error.to_string()))
        };
        many(0..BEFORE, text)?;
        let window = Window::open()?;
        many(BEFORE..BEFORE + REQUESTS, text)?;
        let (wall_ms, core_ms) = window.close()?;
        let each = |ms: f64| ms * 1e3 / f64::from(REQUESTS);
        Ok(Cost { wall_us: each(wall_ms), core_us: each(core_ms) })
    }

    fn one(&self, way: Bare, text: &mut [u8], runner: Option<&Thread>, number: u32) -> Result<(), Errno> {
        match way {
            Bare::InPlace => {
                self.socket.send(text)?;
                return self.socket.receive(text);
            }
            Bare::Copied => {
                self.socket.send(text)?;
                self.socket.receive(&mut self.space(number))?;
            }
            Bare::Thread => self.space(number).copy_from_slice(text),
            Bare::Reader | Bare::Posted => self.socket.send(text)?,
        }
        if let Some(runner) = runner {
            self.posted.store(number, Release);
            if way != Bare::Posted {
                runner.unpark();
            }
            let until = Instant::now() + TIMEOUT;
            while self.answered.load(Acquire) < number {
                if Instant::now() >= until {
                    return Err(Errno::ETIMEDOUT);
                }
                thread::park_timeout(TIMEOUT);
            }
        }
        text.copy_from_slice(&self.space(number));
        Ok(())
    }

    /// Lets the runner end: one that reads is given something to read.
    fn end(&self, way: Bare, text: &[u8], runner: Option<&Thread>) {
        self.posted.store(OVER, Release);
        if way == Bare::Posted {
            self.socket.send(text).ok();
        }
        runner.into_iter().for_each(Thread::unpark);
    }

    fn space(&self, number: u32) -> MutexGuard<'_, Vec<u8>> {
        self.spaces[number as usize % 2].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
