//! The way back: results go to where their requests wanted them, clients are shown what is done, and called.

use std::sync::Arc;

use evener_core::{Direction, Job, JobError, Outcome};
use evener_ring::virtqueue::Element;
use evener_wire::Status;

use crate::service::request;
use crate::service::thread_state::ServiceLoop;
use crate::state::client::{AnswerPlace, State};

impl ServiceLoop {
    /// Puts results where they belong.
    pub(super) fn finish(&mut self) {
        let mut done = std::mem::take(&mut self.done);
        self.shared.completed.add(done.len() as u64);
        for job in done.drain(..) {
            let task = self.in_flight.end(&job);
            let client = Arc::clone(&task.place.client);
            self.run_queue.release(client.peer.uid);
            self.answer(&job, &task.place, &task.elements, task.src_bytes);
            self.in_flight.put(job, task);
            if client.is_over() {
                self.in_flight.wipe(client.id);
            }
        }
        self.done = done;
    }

    fn answer(&mut self, job: &Job<'static>, place: &AnswerPlace, elements: &[Element], src_bytes: usize) {
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
        let written = request::write(memory, elements, parts, status);
        device.give_back(place.head, written + if status == Status::Ok { written_there(job) } else { 0 });
        let refusal = memory.refusal();
        drop(guard);
        if let Some(no_pages) = refusal {
            self.shared.break_off(&place.client, no_pages);
        }
    }

    /// Shows clients what was given back, and calls those who want it.
    pub(super) fn show(&mut self) {
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
    if is_there { u32::try_from(job.input_bytes()).expect("the length of an element") } else { 0 }
}
