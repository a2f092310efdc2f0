//! One of the module's threads: it takes requests from the rings of its clients, lets the module do them, and gives them back.
//!
//! `run queue -> take -> copy in -> module -> copy out, status, used -> call`, round after round. Clients wait in a run queue (`run_queue.rs`) in the order in
//! which they were seen to have something, and each gets a share in its turn. Who has nothing is asked for a kick and left alone, so that a
//! round costs the time of those who work and not of all who are connected. It is the only thread that serves these rings, so one burst holds
//! requests of many clients, and a client that is slow or hostile costs the others nothing.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use evener_core::{Direction, Job, JobError, Outcome};
use evener_ring::virtqueue::{Chain, Piece};
use evener_wire::Status;
use rustix::event::{Timespec, epoll};

use crate::module::ModuleRunner;
use crate::service::client_span::ClientSpan;
use crate::service::in_flight::InFlightTable;
use crate::service::notify::Notifier;
use crate::service::request::{self, BadRequest, Reader, Sizes, Taken};
use crate::service::run_queue::{ClientState, RunQueue};
use crate::service::slots::AAD_BYTES_MAX;
use crate::state::client::{AnswerPlace, Client, State};
use crate::state::host_state::HostState;
use crate::state::ring::Ring;
use crate::state::shard::{News, Shard};

/// What the thread has.
pub(crate) struct ServiceLoop {
    shared: Arc<HostState>,
    shard: Arc<Shard>,
    runner: ModuleRunner,
    in_flight: InFlightTable,
    run_queue: RunQueue<Arc<Client>>,
    /// Reset that was last done.
    resets: u64,
    /// Taken, and come back.
    jobs: Vec<Box<Job<'static>>>,
    done: Vec<Box<Job<'static>>>,
    chain: Chain,
    /// Clients whose rings have something to show.
    touched: Vec<Arc<Client>>,
    calls: Vec<Arc<OwnedFd>>,
    notifier: Notifier,
    /// Rounds in a row in which a module held something and nothing happened.
    quiet_rounds: u32,
}

/// What is left of a client's requests where no more is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// It may have more.
    Some,
    None,
    /// Something has to go back first.
    AtLimit,
}

impl ServiceLoop {
    pub(crate) fn new(shared: Arc<HostState>, shard: Arc<Shard>, runner: ModuleRunner) -> Self {
        let notifier = Notifier::new();
        shared.calls_may_wait.fetch_or(notifier.may_wait(), Relaxed);
        Self {
            notifier,
            shared,
            shard,
            runner,
            in_flight: InFlightTable::new(),
            run_queue: RunQueue::new(),
            resets: 0,
            jobs: Vec::new(),
            done: Vec::new(),
            chain: Chain::new(),
            touched: Vec::new(),
            calls: Vec::new(),
            quiet_rounds: 0,
        }
    }

    /// Serves until the host stops.
    pub(crate) fn run(mut self) {
        while !self.shared.is_stopping() {
            self.check_news();
            let taken = self.take();
            self.shared.submitted.add(self.jobs.len() as u64);
            self.runner.run(&mut self.jobs, &mut self.done);
            let finished = self.done.len();
            self.finish();
            self.show();
            let is_idle = taken + finished == 0;
            self.quiet_rounds = if is_idle { self.quiet_rounds.saturating_add(1) } else { 0 };
            if is_idle && !self.runner.is_full() {
                self.sleep();
            }
        }
    }

    /// Who has come and gone, and what the control socket wants.
    fn check_news(&mut self) {
        for news in self.shard.take_news() {
            match news {
                News::Came(id) => {
                    self.shared.client(id).into_iter().for_each(|client| self.run_queue.add(id, client));
                }
                News::Changed(id) => self.run_queue.enqueue(id),
                News::Left(id) => {
                    self.run_queue.remove(id);
                    self.in_flight.wipe(id);
                }
            }
        }
        let over = self.shard.take_ended();
        if !over.is_empty() && !cfg!(mutant = "host_key_kept") {
            self.runner.forget(&over);
        }
        let resets = self.shared.resets.load(Relaxed);
        if resets != self.resets {
            self.resets = resets;
            self.runner.reset(&mut self.done);
        }
        if self.runner.is_gone() && !self.shared.is_gone.swap(true, Relaxed) {
            self.shared.clients().iter().for_each(|client| client.end());
        }
    }

    /// Takes what the module has room for: from each queued client a share, and then what is left from those that have more.
    fn take(&mut self) -> usize {
        if self.run_queue.has_parked() {
            self.wait(Duration::ZERO);
        }
        let quota = self.runner.quota(self.run_queue.queued());
        let mut left = quota.all;
        for each in [quota.each, usize::MAX] {
            for _ in 0..self.run_queue.queued() {
                let next = if left > 0 { self.run_queue.next() } else { None };
                let Some(client) = next else { break };
                left -= self.serve(&client, each.saturating_mul(client.weight).min(left));
            }
            if left == 0 || !self.runner.takes_more() {
                break;
            }
        }
        quota.all - left
    }

    /// Takes a share of a client and queues or parks it; says how many requests that were.
    fn serve(&mut self, client: &Arc<Client>, most: usize) -> usize {
        let (taken, rest) = match self.take_from(client, most) {
            Ok(some) => some,
            // What was taken before is with the module.
            Err(fraud) => {
                self.shared.break_off(client, fraud);
                (0, Rest::None)
            }
        };
        match rest {
            _ if client.is_over() => self.run_queue.park(client.id, ClientState::Asleep),
            Rest::AtLimit => self.run_queue.park(client.id, ClientState::AtLimit),
            Rest::None if taken == 0 && self.run_queue.queued() >= LOOKED_AT_MAX => {
                self.ask_for_kick(client);
            }
            Rest::None | Rest::Some => self.run_queue.enqueue(client.id),
        }
        taken
    }

    /// Takes up to `most` requests of one client.
    fn take_from(&mut self, client: &Arc<Client>, most: usize) -> Result<(usize, Rest), BadRequest> {
        let limits = &self.shared.limits;
        let sizes = Sizes { request_bytes_max: limits.request_bytes_max, aad_bytes_max: AAD_BYTES_MAX };
        let mut guard = client.lock();
        let State { memory, sessions, rings, load, is_touched, .. } = &mut *guard;
        let (mut taken, mut was_refused, mut rest) = (0, false, Rest::None);
        for (index, ring) in rings.iter_mut().enumerate() {
            let life = ring.life;
            let Some(device) = ring.served() else { continue };
            device.quiet();
            loop {
                if load.is_at(limits) {
                    rest = Rest::AtLimit;
                    break;
                }
                if taken == most {
                    rest = Rest::Some;
                    break;
                }
                if !device.take(&**memory, &mut self.chain).map_err(BadRequest::from)? {
                    break;
                }
                taken += 1;
                let (head, pieces) = (self.chain.head(), self.chain.writable());
                let mut reader = Reader::new(memory, self.chain.readable());
                match request::read(&self.chain, &mut reader, sessions, sizes)? {
                    Taken::Work(work) => {
                        load.add(work.src_bytes);
                        let place = AnswerPlace { client: Arc::clone(client), ring: index, life, head };
                        let span = match self.runner.takes_shared() {
                            true => ClientSpan::of(&work, &reader, pieces, memory),
                            false => None,
                        };
                        self.jobs.push(match span {
                            Some(span) => self.in_flight.begin_there(work, span, place, pieces),
                            None => self.in_flight.begin(work, &mut reader, place, pieces)?,
                        });
                    }
                    Taken::Refused(status) => {
                        device.give_back(head, request::write(memory, pieces, [&[], &[]], status));
                        client.counts.refused.add(1);
                        self.shared.totals.refused.add(1);
                        was_refused = true;
                    }
                }
            }
        }
        if was_refused && !std::mem::replace(is_touched, true) {
            self.touched.push(Arc::clone(client));
        }
        Ok((taken, rest))
    }

    /// Puts results where they belong.
    fn finish(&mut self) {
        let mut done = std::mem::take(&mut self.done);
        self.shared.completed.add(done.len() as u64);
        for job in done.drain(..) {
            let task = self.in_flight.end(&job);
            let client = Arc::clone(&task.place.client);
            self.answer(&job, &task.place, &task.pieces, task.src_bytes);
            self.in_flight.put(job, task);
            if client.is_over() {
                self.in_flight.wipe(client.id);
            }
        }
        self.done = done;
    }

    fn answer(&mut self, job: &Job<'static>, place: &AnswerPlace, pieces: &[Piece], src_bytes: usize) {
        let status = status_of(job.outcome());
        let counts = [&place.client.counts, &self.shared.totals];
        match status {
            Status::Ok => counts.iter().for_each(|counts| {
                counts.requests.add(1);
                counts.bytes.add(job.input_bytes() as u64);
            }),
            _ => counts.iter().for_each(|counts| counts.failed.add(1)),
        }
        let mut guard = place.client.lock();
        let State { memory, rings, load, is_touched, .. } = &mut *guard;
        load.take_off(src_bytes);
        if !std::mem::replace(is_touched, true) {
            self.touched.push(Arc::clone(&place.client));
        }
        let ring = &mut rings[place.ring];
        // A ring that was stopped, and perhaps started again, has forgotten this request.
        let Some(device) = ring.device.as_mut().filter(|_| ring.life == place.life) else { return };
        let parts = if status == Status::Ok { result_of(job) } else { [&[][..], &[][..]] };
        let written = request::write(memory, pieces, parts, status);
        device.give_back(place.head, written + if status == Status::Ok { written_there(job) } else { 0 });
    }

    /// Shows clients what was given back, and calls those who want it.
    fn show(&mut self) {
        for client in self.touched.drain(..) {
            let mut state = client.lock();
            state.is_touched = false;
            let by_index = state.counts_by_index();
            for ring in &mut state.rings {
                let Some(device) = ring.device.as_mut() else { continue };
                ring.owes_call |= device.publish();
                // By flags a client cannot say when it wants to be woken, so it is when nothing of its waits any more.
                let is_drained = by_index || device.look().unwrap_or(0) == 0;
                if ring.owes_call && is_drained {
                    ring.owes_call = false;
                    self.calls.extend(ring.call.clone());
                    client.counts.calls.add(1);
                    self.shared.totals.calls.add(1);
                }
            }
            let is_awaited = std::mem::take(&mut state.is_awaited);
            drop(state);
            self.run_queue.resume(client.id);
            if is_awaited {
                self.shared.tell_moved(client.id);
            }
        }
        self.notifier.raise(&self.calls);
        self.calls.clear();
    }

    /// Asks all queued clients for kicks and sleeps until one comes, unless something came meanwhile.
    fn sleep(&mut self) {
        while let Some(client) = self.run_queue.next() {
            if !self.ask_for_kick(&client) {
                return;
            }
        }
        self.wait(self.runner.timeout(self.quiet_rounds).unwrap_or(IDLE));
    }

    /// Parks a client until it kicks; `false` where it has something already and is queued again.
    fn ask_for_kick(&mut self, client: &Arc<Client>) -> bool {
        let asked = self.listen(client);
        let rest = asked.unwrap_or_else(|fraud| {
            self.shared.break_off(client, fraud);
            Rest::None
        });
        match rest {
            Rest::Some => self.run_queue.enqueue(client.id),
            Rest::None => self.run_queue.park(client.id, ClientState::Asleep),
            Rest::AtLimit => self.run_queue.park(client.id, ClientState::AtLimit),
        }
        rest != Rest::Some
    }

    /// Asks the rings of a client for kicks, and says whether something waits in them.
    fn listen(&self, client: &Client) -> Result<Rest, BadRequest> {
        if client.is_over() {
            return Ok(Rest::None);
        }
        let mut state = client.lock();
        // Nothing is taken before something goes back.
        if state.load.is_at(&self.shared.limits) {
            return Ok(Rest::AtLimit);
        }
        let mut rest = Rest::None;
        for device in state.rings.iter_mut().filter_map(Ring::served) {
            if device.listen()? {
                rest = Rest::Some;
            }
        }
        Ok(rest)
    }

    /// Queues the clients that kicked, and waits for one of them where none did.
    fn wait(&mut self, timeout: Duration) {
        let timeout = Timespec::try_from(timeout).expect("at most a second");
        let mut events = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        // A signal is for another thread. Nobody has the number of a wake-up.
        if let Ok((kicks, _)) = epoll::wait(&self.shard.watch, &mut events, Some(&timeout)) {
            kicks.iter().for_each(|kick| self.run_queue.enqueue(kick.data.u64()));
        }
    }
}

fn status_of(outcome: Outcome) -> Status {
    match outcome {
        Outcome::Done { .. } => Status::Ok,
        Outcome::Failed(JobError::NotAuthentic) => Status::BadMessage,
        Outcome::Failed(JobError::Unsupported) => Status::NotSupported,
        Outcome::Failed(JobError::ModuleFull) => Status::NoSpace,
        Outcome::Failed(_) | Outcome::Pending => Status::Error,
    }
}

/// What goes to the client: the output, and behind it the tag that was made, or the digest alone.
fn result_of<'j>(job: &'j Job<'static>) -> [&'j [u8]; 2] {
    let session = job.session();
    let makes_tag = session.direction() == Direction::Encrypt;
    [job.output(), if makes_tag { job.tag() } else { &[] }]
}

/// Bytes of output that stand in the client's memory already.
fn written_there(job: &Job<'static>) -> u32 {
    let is_there = job.shared_span().is_some() && job.session().algorithm().is_cipher();
    if is_there { u32::try_from(job.input_bytes()).expect("the length of a piece") } else { 0 }
}

/// How many clients that have nothing are looked at again in the next round, and need not kick. A look costs some 50 ns here, a kick some
/// 500 ns there; of many clients most will have nothing in the next round either. Assumed, not measured: 16, as many as give one burst.
const LOOKED_AT_MAX: usize = 16;

/// Kicks that one look reports at most; others are reported by the next, in their order.
const EVENTS_MAX: usize = 64;

/// Longest sleep of a module that has nothing to do. It is woken for everything; this is for what nobody thought of.
const IDLE: Duration = Duration::from_secs(1);
