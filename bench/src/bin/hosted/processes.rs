//! Processes of this program that work on messages, and what one of them does.

use std::io::{BufRead as _, BufReader, Write as _, stdin};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use evener_bench::medians::jain_index;
use evener_bench::programs::host::Host;
use evener_core::{
    Algorithm, Direction, InlineDriver as _, Job, Nanos, Outcome, Padding, QueuedDriver, Session,
};
use evener_driver_libcrypto::Libcrypto;
use evener_driver_virtio::{Module, ModuleName};
use rustix::time::{ClockId, clock_gettime};

use super::{Arguments, list};

/// What all processes did together.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// Megabytes per second.
    pub(super) rate: f64,
    /// Jain's index of the processes' messages: 1 where each did as much, one by their number where one did all.
    pub(super) fairness: f64,
    pub(super) message: MessageCost,
}

/// Core time of a message, in microseconds.
#[derive(Clone, Copy)]
pub(super) struct MessageCost {
    /// Of its process.
    pub(super) client_us: f64,
    /// Of the host.
    pub(super) host_us: f64,
}

/// Lets so many processes work at the same time; their host is `host`.
pub(super) fn run(
    arguments: &Arguments,
    way: &str,
    cores: &[usize],
    host: Option<&Host>,
) -> anyhow::Result<Work> {
    let mut clients = Vec::new();
    for _ in 0..arguments.processes {
        clients.push(Client::start(arguments, way, cores)?);
    }
    let host_time = || host.map_or(Ok(Duration::ZERO), Host::core_time);
    let (began, host_before) = (Instant::now(), host_time()?);
    clients.iter_mut().try_for_each(Client::go)?;
    let counted = clients.into_iter().map(Client::count).collect::<anyhow::Result<Vec<Counted>>>()?;
    let (window, host_core) = (began.elapsed().as_secs_f64(), host_time()? - host_before);
    let counts: Vec<usize> = counted.iter().map(|counted| counted.messages).collect();
    let messages: usize = counts.iter().sum();
    let core: Duration = counted.iter().map(|counted| counted.core).sum();
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let of_each = |core: Duration| core.as_secs_f64() * 1e6 / messages as f64;
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = (messages * arguments.bytes) as f64 / window / 1e6;
    let message = MessageCost { client_us: of_each(core), host_us: of_each(host_core) };
    Ok(Work { rate, fairness: jain_index(&counts), message })
}

/// What a process says at its end.
struct Counted {
    messages: usize,
    core: Duration,
}

/// A process that waits for the start.
struct Client {
    child: Child,
    orders: ChildStdin,
    says: BufReader<ChildStdout>,
}

impl Client {
    fn start(arguments: &Arguments, way: &str, cores: &[usize]) -> anyhow::Result<Self> {
        let mut command = Command::new("taskset");
        command.arg("-c").arg(list(cores)).arg(std::env::current_exe()?);
        command.args(["--client", way]);
        command.args(["--in-flight", &arguments.in_flight.to_string()]);
        command.args(["--bytes", &arguments.bytes.to_string()]);
        command.args(["--window-ms", &arguments.window_ms.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("taskset")?;
        let orders = child.stdin.take().context("it was piped")?;
        let mut says = BufReader::new(child.stdout.take().context("it was piped")?);
        ensure!(next_line(&mut says)? == "ready", "a process did not get ready");
        Ok(Self { child, orders, says })
    }

    fn go(&mut self) -> anyhow::Result<()> {
        Ok(writeln!(self.orders, "go")?)
    }

    fn count(mut self) -> anyhow::Result<Counted> {
        let line = next_line(&mut self.says)?;
        let (messages, core) = line.split_once(' ').context("a process counted nothing")?;
        self.child.wait()?;
        Ok(Counted { messages: messages.parse()?, core: Duration::from_nanos(core.parse()?) })
    }
}

/// One of the processes.
pub(super) fn client(arguments: &Arguments, way: &str) -> anyhow::Result<()> {
    let key: Vec<u8> = std::process::id().to_le_bytes().repeat(4);
    let session = Arc::new(Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &key)?);
    let mut spaces = vec![vec![0x5A; arguments.bytes]; arguments.in_flight];
    let module = if way == "plain" { None } else { Some(open(&way.parse()?)?) };
    let mut worker = match &module {
        None => Worker::Plain(Libcrypto::new()?),
        Some(module) => Worker::Hosted(module.driver()),
    };
    let mut jobs: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
    worker.check(&session, arguments.bytes)?;
    println!("ready");
    stdin().read_line(&mut String::new())?;
    let until = Instant::now() + Duration::from_millis(arguments.window_ms);
    let before = core_time();
    let messages = worker.work(&session, &mut jobs, until)?;
    println!("{messages} {}", (core_time() - before).as_nanos());
    Ok(())
}

/// Core time of this process.
fn core_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}

/// The host's socket may be there a moment before it listens.
pub(super) fn open(name: &ModuleName) -> anyhow::Result<Module> {
    let mut tries = 0;
    loop {
        match Module::open(name) {
            Ok(module) => return Ok(module),
            Err(error) if tries >= 50 => bail!(error),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
        tries += 1;
    }
}

/// How one process works.
enum Worker<'m> {
    Plain(Libcrypto),
    Hosted(Box<dyn QueuedDriver<'m> + 'm>),
}

impl<'m> Worker<'m> {
    /// Messages until then.
    fn work(
        &mut self,
        session: &Arc<Session>,
        jobs: &mut Vec<Box<Job<'m>>>,
        until: Instant,
    ) -> anyhow::Result<usize> {
        let mut count = 0;
        let arm = |job: &mut Job<'m>| {
            let bytes = job.output_span().len();
            job.arm(Arc::clone(session), &[7; 16], bytes);
        };
        while Instant::now() < until {
            match self {
                Self::Plain(libcrypto) => {
                    jobs.iter_mut().for_each(|job| arm(job));
                    libcrypto.run(jobs);
                    count += jobs.len();
                }
                Self::Hosted(driver) => {
                    for mut job in jobs.drain(..) {
                        arm(&mut job);
                        driver.submit(job).map_err(|(_, refusal)| anyhow::anyhow!("{refusal:?}"))?;
                    }
                    count += driver.poll(jobs, Nanos::from_millis(2_000));
                }
            }
            let is_done = |job: &Job<'_>| matches!(job.outcome(), Outcome::Done { .. });
            ensure!(!jobs.is_empty() && jobs.iter().all(|job| is_done(job)), "a message failed");
        }
        if let Self::Hosted(driver) = self {
            driver.abandon(jobs);
        }
        Ok(count)
    }

    /// Compares one message with libcrypto's.
    fn check(&mut self, session: &Arc<Session>, bytes: usize) -> anyhow::Result<()> {
        let text: &'static [u8] =
            (0..bytes).map(|at| u8::try_from(at % 251).unwrap_or(0)).collect::<Vec<_>>().leak();
        let job = || {
            let mut job = Job::in_place(text.to_vec().leak());
            job.arm(Arc::clone(session), &[7; 16], bytes);
            job
        };
        let (mut right, mut ours) = ([job()], Vec::new());
        Libcrypto::new()?.run(&mut right);
        match self {
            Self::Plain(libcrypto) => {
                ours.push(job());
                libcrypto.run(&mut ours);
            }
            Self::Hosted(driver) => {
                driver.submit(job()).map_err(|(_, refusal)| anyhow::anyhow!("{refusal:?}"))?;
                driver.poll(&mut ours, Nanos::from_millis(2_000));
            }
        }
        ensure!(ours.len() == 1 && ours[0].output() == right[0].output(), "a result is wrong");
        Ok(())
    }
}

fn next_line(says: &mut BufReader<ChildStdout>) -> anyhow::Result<String> {
    let mut line = String::new();
    says.read_line(&mut line)?;
    Ok(line.trim().to_owned())
}
