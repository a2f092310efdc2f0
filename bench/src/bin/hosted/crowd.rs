//! A crowd at one host: what a client at rest costs it, and whether a client that is silent and one that reads no answers make the others wait.
//!
//! All clients are in this process, each with a connection of its own. Requests go one at a time, from one client after the other; *beside* are
//! those while the two stand there. Both take turns.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use evener_bench::medians::Spread;
use evener_bench::programs::host::Host;
use evener_core::{Algorithm, Direction, Job, Nanos, Outcome, Padding, QueuedDriver, Session};
use evener_driver_virtio::Module;

use super::{Arguments, cores, host_on};

pub(super) fn compare(arguments: &Arguments, clients: usize) -> anyhow::Result<()> {
    let (host_core, _) = cores()?.split_last().map(|(last, rest)| (*last, rest.len())).context("a core")?;
    let evener = arguments.evener.as_deref().context("--evener is needed")?;
    let host = host_on(&[host_core], evener, &arguments.module, 1)?;
    let name = format!("hosted:{}", host.socket().display()).parse()?;
    // The first one may wait for the host, and makes it ready for the kind of work.
    let first = super::processes::open(&name)?;
    let before = Cost::of(host.pid())?;
    let modules = (0..clients).map(|_| Module::open(&name)).collect::<Result<Vec<Module>, _>>()?;
    let mut drivers: Vec<_> = modules.iter().map(Module::driver).collect();
    drop(first);
    Cost::of(host.pid())?.told_beside(&before, clients);
    let mut ratios = Vec::new();
    for round in 0..arguments.rounds {
        let quiet = slowest(arguments, &mut drivers)?;
        let nuisances = [silent(&host)?, deaf(&host)?];
        let beside = slowest(arguments, &mut drivers)?;
        drop(nuisances);
        let ratio = beside.as_secs_f64() / quiet.as_secs_f64();
        println!("round {round}: p99 {quiet:.1?}, beside {beside:.1?}, ratio {ratio:.3}");
        ratios.push(ratio);
    }
    let ratio = Spread::of(&ratios).context("there was no round")?;
    println!("median ratio of p99 {:.3} [{:.3} {:.3}]", ratio.median, ratio.low, ratio.high);
    Ok(())
}

/// What a process has.
struct Cost {
    threads: u64,
    files: usize,
    private_kib: u64,
    shared_kib: u64,
    tables_kib: u64,
}

impl Cost {
    fn of(pid: u32) -> anyhow::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|line| line.split_whitespace().next()?.parse().ok()).context(name.to_owned())
        };
        let files = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
        Ok(Self {
            threads: field("Threads")?,
            files,
            private_kib: field("RssAnon")?,
            shared_kib: field("RssShmem")?,
            tables_kib: field("VmPTE")?,
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    fn told_beside(&self, before: &Self, clients: usize) {
        let each = |now: u64, then: u64| now.saturating_sub(then) as f64 / clients as f64;
        println!("the host with {clients} clients at rest: {} threads, {} files", self.threads, self.files);
        println!(
            "each: {:.3} threads, {:.2} files, {:.1} KiB private, {:.1} KiB of page tables, {:.1} KiB of its own memory mapped",
            each(self.threads, before.threads),
            each(self.files as u64, before.files as u64),
            each(self.private_kib, before.private_kib),
            each(self.tables_kib, before.tables_kib),
            each(self.shared_kib, before.shared_kib),
        );
    }
}

/// The 99th percentile of one request of each client.
fn slowest<'m>(
    arguments: &Arguments,
    drivers: &mut [Box<dyn QueuedDriver<'m> + 'm>],
) -> anyhow::Result<Duration> {
    let session = Arc::new(Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[7; 16])?);
    let mut job = Job::in_place(vec![0x5A; arguments.bytes].leak());
    let (mut times, mut done) = (Vec::new(), Vec::new());
    for driver in drivers {
        job.arm(Arc::clone(&session), &[7; 16], arguments.bytes);
        let began = Instant::now();
        driver.submit(job).map_err(|(_, refusal)| anyhow::anyhow!("{refusal:?}"))?;
        driver.poll(&mut done, Nanos::from_millis(2_000));
        times.push(began.elapsed());
        job = done.pop().context("a request did not come back")?;
        ensure!(matches!(job.outcome(), Outcome::Done { .. }), "a request failed");
    }
    times.sort_unstable();
    times.get(times.len() * 99 / 100).copied().context("there was no client")
}

/// A client that says four bytes of a message and nothing more.
fn silent(host: &Host) -> anyhow::Result<UnixStream> {
    let mut stream = UnixStream::connect(host.socket())?;
    stream.write_all(&26_u32.to_ne_bytes())?;
    Ok(stream)
}

/// A client that asks until there is no space for questions, and reads no answer.
fn deaf(host: &Host) -> anyhow::Result<UnixStream> {
    let mut stream = UnixStream::connect(host.socket())?;
    stream.set_nonblocking(true)?;
    let questions: Vec<u8> = [1_u32, 1, 0].iter().flat_map(|field| field.to_ne_bytes()).collect();
    let questions = questions.repeat(1_000);
    loop {
        match stream.write(&questions) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(stream),
            written => _ = written?,
        }
    }
}
