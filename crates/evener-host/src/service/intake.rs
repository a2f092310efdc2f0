//! The way in: requests are taken from the rings of clients, each in its turn, and become jobs.

use std::sync::Arc;

use crate::module::{PIECE_BYTES, Quota};
use crate::service::client_span::ClientSpan;
use crate::service::long_requests::is_cut;
use crate::service::request::{self, BadRequest, Reader, Sizes, Taken};
use crate::service::run_queue::ClientState;
use crate::service::shares::take_turns;
use crate::service::slots::AAD_BYTES_MAX;
use crate::service::thread_state::{Rest, ServiceLoop};
use crate::state::client::{AnswerPlace, Client, State};

impl ServiceLoop {
    /// Takes what the module has space for: from each queued client a share, and another from those that have more.
    pub(super) fn take(&mut self, quota: Quota) -> usize {
        let takes_more = self.runner.takes_more();
        let about = |client: &Arc<Client>| (client.id, client.weight);
        take_turns(
            self,
            |all| &mut all.run_queue,
            about,
            quota,
            takes_more,
            |all, client, most| all.take_share(client, most, quota),
        )
    }

    /// Takes a share of a client and queues or parks it; says how many requests that were, as `quota` counts them.
    fn take_share(&mut self, client: &Arc<Client>, most: usize, quota: Quota) -> usize {
        let before = self.jobs.len();
        let (taken, rest) = match self.take_from(client, most, quota) {
            Ok(some) => some,
            // What was taken before is with the module.
            Err(fraud) => {
                match client.lock().memory.refusal() {
                    Some(no_pages) => self.shared.break_off(client, no_pages),
                    None => self.shared.break_off(client, fraud),
                }
                (0, Rest::None)
            }
        };
        self.shared.submitted.add((self.jobs.len() - before) as u64);
        self.run_queue.hold(client.peer.uid, self.jobs.len() - before);
        self.set_long_aside(before, client.peer.uid, quota);
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

    /// Sets the long ones among the jobs that were taken last, those from `first` on, aside. Where there is one user, what is not cut stays with the others: there it is a lane's.
    fn set_long_aside(&mut self, first: usize, user: u32, quota: Quota) {
        let has_long = self.jobs[first..].iter().any(|job| job.input_bytes() > PIECE_BYTES);
        if quota.pieces == 0 || !has_long || cfg!(mutant = "host_long_whole") {
            return;
        }
        for job in self.jobs.split_off(first) {
            if job.input_bytes() > PIECE_BYTES && (quota.is_shared || is_cut(&job)) {
                self.long.add(job, user);
                self.run_queue.hold_long(user);
            } else {
                self.jobs.push(job);
            }
        }
    }

    /// Takes up to `most` requests of one client; the last one may count as more than were left.
    fn take_from(
        &mut self,
        client: &Arc<Client>,
        most: usize,
        quota: Quota,
    ) -> Result<(usize, Rest), BadRequest> {
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
                if taken >= most {
                    rest = Rest::Some;
                    break;
                }
                if !device.take(&**memory, &mut self.chain).map_err(BadRequest::from)? {
                    break;
                }
                let (head, elements) = (self.chain.head(), self.chain.writable());
                let mut reader = Reader::new(memory, self.chain.readable());
                match request::read(&self.chain, &mut reader, sessions, sizes)? {
                    Taken::Work(work) => {
                        taken += quota.units(work.src_bytes);
                        load.add(work.src_bytes);
                        let place = AnswerPlace { client: Arc::clone(client), ring: index, life, head };
                        let span = match self.runner.takes_shared() {
                            true => ClientSpan::of(&work, &reader, elements, memory),
                            false => None,
                        };
                        self.jobs.push(match span {
                            Some(span) => self.in_flight.begin_there(work, span, place, elements),
                            None => self.in_flight.begin(work, &mut reader, place, elements)?,
                        });
                    }
                    Taken::Refused(status) => {
                        taken += 1;
                        device.give_back(head, request::write(memory, elements, [&[], &[]], status));
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
}

/// How many clients that have nothing are looked at again in the next round, and need not kick. A look costs some 50 ns here, a kick some
/// 500 ns there; of many clients most will have nothing in the next round either. Assumed, not measured: 16, as many as give one burst.
const LOOKED_AT_MAX: usize = 16;
