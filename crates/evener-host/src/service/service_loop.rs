//! The module's thread: it takes requests from the rings of all clients, lets the module do them, and gives them back.
//!
//! `take -> copy in -> module -> copy out, status, used -> call`, round after round; where nothing is to be done it asks every
//! ring for a kick and sleeps. It is the only thread that serves rings, so one burst holds requests of many clients, and a
//! client that is slow or hostile costs the others nothing.

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
use crate::service::in_flight::InFlightTable;
use crate::service::notify::Notifier;
use crate::service::request::{self, BadRequest, Reader, Sizes, Taken};
use crate::service::slots::AAD_BYTES_MAX;
use crate::state::client::{AnswerPlace, Client, State};
use crate::state::host_state::HostState;

/// What the thread has.
pub(crate) struct ServiceLoop {
    shared: Arc<HostState>,
    runner: ModuleRunner,
    in_flight: InFlightTable,
    clients: Vec<Arc<Client>>,
    /// Change of the list of clients that was last seen, and reset that was last done.
    seen: (u64, u64),
    /// Whose turn it is first.
    turn: usize,
    /// Taken, and come back.
    jobs: Vec<Box<Job<'static>>>,
    done: Vec<Box<Job<'static>>>,
    chain: Chain,
    /// Clients whose rings have something to show.
    touched: Vec<Arc<Client>>,
    calls: Notifier,
    /// Rounds in a row in which a module held something and nothing happened.
    quiet_rounds: u32,
}

impl ServiceLoop {
    pub(crate) fn new(shared: Arc<HostState>, runner: ModuleRunner) -> Self {
        let calls = Notifier::new();
        shared.calls_may_wait.store(calls.may_wait(), Relaxed);
        Self {
            calls,
            shared,
            runner,
            in_flight: InFlightTable::new(),
            clients: Vec::new(),
            seen: (0, 0),
            turn: 0,
            jobs: Vec::new(),
            done: Vec::new(),
            chain: Chain::new(),
            touched: Vec::new(),
            quiet_rounds: 0,
        }
    }

    /// Serves until the host stops.
    pub(crate) fn run(mut self) {
        while !self.shared.is_stopping() {
            self.check_clients();
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
    fn check_clients(&mut self) {
        let changes = self.shared.changes.load(Relaxed);
        if changes != self.seen.0 {
            self.seen.0 = changes;
            let now = self.shared.clients();
            let gone = self.clients.iter().filter(|old| !now.iter().any(|client| client.id == old.id));
            gone.for_each(|client| self.in_flight.wipe(client.id));
            self.clients = now;
        }
        let over = self.shared.take_ended();
        if !over.is_empty() && !cfg!(mutant = "host_key_kept") {
            self.runner.forget(&over);
        }
        let resets = self.shared.resets.load(Relaxed);
        if resets != self.seen.1 {
            self.seen.1 = resets;
            self.runner.reset(&mut self.done);
        }
        if self.runner.is_gone() && !self.shared.is_gone.swap(true, Relaxed) {
            self.clients.iter().for_each(|client| client.end());
        }
    }

    /// Takes what the module has room for: from each ring a share, and then what is left from those that have more.
    fn take(&mut self) -> usize {
        let quota = self.runner.quota(self.clients.len());
        let (mut left, count, first) = (quota.all, self.clients.len(), self.turn);
        for each in [quota.each, usize::MAX] {
            for step in 0..count {
                let client = Arc::clone(&self.clients[(first + step) % count]);
                if left > 0 && !client.is_over() {
                    let taken = self.take_from(&client, each.min(left));
                    left -= taken.unwrap_or_else(|fraud| {
                        self.shared.break_off(&client, fraud);
                        0
                    });
                    // Who got no share is first in the next round.
                    if left == 0 && each == quota.each {
                        self.turn = first + step;
                    }
                }
            }
            if !self.runner.takes_more() {
                break;
            }
        }
        self.turn = (self.turn + 1) % count.max(1);
        quota.all - left
    }

    /// Takes up to `most` requests of one client.
    fn take_from(&mut self, client: &Arc<Client>, most: usize) -> Result<usize, BadRequest> {
        let limits = &self.shared.limits;
        let sizes = Sizes { request_bytes_max: limits.request_bytes_max, aad_bytes_max: AAD_BYTES_MAX };
        let mut guard = client.lock();
        let State { memory, sessions, rings, load, .. } = &mut *guard;
        let (mut taken, mut was_refused) = (0, false);
        for (index, ring) in rings.iter_mut().enumerate() {
            let life = ring.life;
            let Some(device) = ring.served() else { continue };
            device.quiet();
            while taken < most && !load.is_at(limits) {
                if !device.take(memory, &mut self.chain).map_err(BadRequest::from)? {
                    break;
                }
                taken += 1;
                let (head, pieces) = (self.chain.head(), self.chain.writable());
                let mut reader = Reader::new(memory, self.chain.readable());
                match request::read(&self.chain, &mut reader, sessions, sizes)? {
                    Taken::Work(work) => {
                        load.add(work.src_bytes);
                        let place = AnswerPlace { client: Arc::clone(client), ring: index, life, head };
                        self.jobs.push(self.in_flight.begin(work, &mut reader, place, pieces)?);
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
        drop(guard);
        if was_refused {
            self.touch(client);
        }
        Ok(taken)
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
            self.touch(&client);
        }
        self.done = done;
    }

    fn answer(&self, job: &Job<'static>, place: &AnswerPlace, pieces: &[Piece], src_bytes: usize) {
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
        let State { memory, rings, load, .. } = &mut *guard;
        load.take_off(src_bytes);
        let ring = &mut rings[place.ring];
        // A ring that was stopped, and perhaps started again, has forgotten this request.
        let Some(device) = ring.device.as_mut().filter(|_| ring.life == place.life) else { return };
        let parts = if status == Status::Ok { result_of(job) } else { [&[][..], &[][..]] };
        device.give_back(place.head, request::write(memory, pieces, parts, status));
    }

    /// Shows clients what was given back, and calls those who want it.
    fn show(&mut self) {
        let mut calls: Vec<Arc<OwnedFd>> = Vec::new();
        for client in std::mem::take(&mut self.touched) {
            let mut state = client.lock();
            let by_index = state.counts_by_index();
            for ring in &mut state.rings {
                let Some(device) = ring.device.as_mut() else { continue };
                ring.owes_call |= device.publish();
                // By flags a client cannot say when it wants to be woken, so it is when nothing of its waits any more.
                let is_drained = by_index || device.look().unwrap_or(0) == 0;
                if ring.owes_call && is_drained {
                    ring.owes_call = false;
                    calls.extend(ring.call.clone());
                    client.counts.calls.add(1);
                    self.shared.totals.calls.add(1);
                }
            }
            drop(state);
            client.notify_moved();
        }
        self.calls.raise(&calls);
    }

    /// Asks all rings for kicks and sleeps until one comes, unless something came meanwhile.
    fn sleep(&self) {
        for client in self.clients.iter().filter(|client| !client.is_over()) {
            let mut guard = client.lock();
            let is_loaded = guard.load.is_at(&self.shared.limits);
            for ring in &mut guard.rings {
                // Of a client that has reached its limit nothing is taken before something goes back.
                let Some(device) = ring.served().filter(|_| !is_loaded) else { continue };
                match device.listen() {
                    Ok(false) => {}
                    Ok(true) => return,
                    Err(malformed) => return self.shared.break_off(client, BadRequest::from(malformed)),
                }
            }
        }
        let timeout = self.runner.timeout(self.quiet_rounds).unwrap_or(IDLE);
        let timeout = Timespec::try_from(timeout).expect("at most a second");
        let mut events = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        // Whatever woke it, the next round looks at everything; a signal is for another thread.
        epoll::wait(&self.shared.watch, &mut events, Some(&timeout)).ok();
    }

    fn touch(&mut self, client: &Arc<Client>) {
        if !self.touched.iter().any(|known| known.id == client.id) {
            self.touched.push(Arc::clone(client));
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

/// Events that one sleep reports at most; others are reported by the next.
const EVENTS_MAX: usize = 64;

/// Longest sleep of a module that has nothing to do. It is woken for everything; this is for what nobody thought of.
const IDLE: Duration = Duration::from_secs(1);
