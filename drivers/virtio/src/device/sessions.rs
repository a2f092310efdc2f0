//! Sessions over a device's control queue, one message at a time: who opens one waits for the answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evener_core::driver::SILENCE_MAX;
use evener_fd::CheckedFd;
use evener_ring::Region;
use evener_ring::virtqueue::{Driver, Element, Events, Mapped};
use evener_vfio::QueueDoorbell;
use evener_wire::{
    ANSWER_BYTES, AUTH_KEY_BYTES_MAX, CONTROL_BYTES, CreateSession, Status, close_request, opened_id,
};

use crate::connection::control::SessionControl;
use crate::connection::error::ConnectionError;
use crate::connection::layout::{BASE, Parts};
use crate::connection::layout::{CONTROL_BYTES as PART_BYTES, inside};
use crate::connection::link::queue_memory;
use crate::connection::wait::Waiter;

/// Ids among which sessions of an owner before are looked for, and closed: four times what QEMU's device (10.0) holds, which keeps its sessions
/// over a reset and gives each new one the lowest free number.
const LEFT_MAX: u64 = 1024;

/// Entries of the queue, of which a message takes three.
const SIZE: u16 = 16;
/// Places behind the beginning of this part of the region.
const AVAILABLE_AT: usize = 256;
const USED_AT: usize = 512;
const REQUEST_AT: usize = 1024;
const KEY_AT: usize = 1152;
const ANSWER_AT: usize = 1792;

const _: () = assert!(KEY_AT + AUTH_KEY_BYTES_MAX <= ANSWER_AT && ANSWER_AT + ANSWER_BYTES <= PART_BYTES);

/// The control queue.
#[derive(Debug)]
pub(super) struct Sessions {
    region: Arc<Region>,
    at: usize,
    queue: Driver<Mapped>,
    doorbell: QueueDoorbell,
    waiter: Waiter,
    /// Codes by which sessions were opened, to close them.
    codes: HashMap<u64, u64>,
    /// Below it no session is another process's.
    swept: u64,
    /// The number by which the bell knows this queue.
    number: u16,
}

impl Sessions {
    /// Where the queue lies in a part of the region that begins at `at`.
    pub(super) const fn parts(at: usize) -> Parts {
        Parts { size: SIZE, places: [at, at + AVAILABLE_AT, at + USED_AT] }
    }

    pub(super) fn new(
        region: &Arc<Region>,
        at: usize,
        events: Events,
        (doorbell, number): (QueueDoorbell, u16),
        call: CheckedFd,
    ) -> Result<Self, ConnectionError> {
        let queue_memory = queue_memory(region, Self::parts(at));
        let queue = Driver::new(queue_memory, events).expect("a queue's slices are of one size");
        let waiter = Waiter::new(call, None)?;
        let (region, codes) = (Arc::clone(region), HashMap::new());
        Ok(Self { region, at, queue, doorbell, waiter, codes, swept: 0, number })
    }

    /// Closes what an owner before left behind, who was killed or is gone without a word: the numbers below `id` that are not ours, once each. A
    /// device that numbers its sessions otherwise, and forgets them as it should (virtio 1.2, 2.4), says that it does not know them.
    fn sweep(&mut self, id: u64, code: u64) -> Result<(), ConnectionError> {
        while self.swept < id.min(LEFT_MAX) {
            let left = self.swept;
            self.swept += 1;
            if !self.codes.contains_key(&left) {
                self.call(&close_request(code, left), &[], &mut [Status::Ok as u8])?;
            }
        }
        Ok(())
    }

    /// Closes all, as far as the device answers.
    pub(super) fn close_all(&mut self) {
        while let Some(&id) = self.codes.keys().next() {
            if self.close(id).is_err() {
                break;
            }
        }
    }

    /// Sends a message, and waits for its answer.
    fn call(
        &mut self,
        request: &[u8; CONTROL_BYTES],
        key: &[u8],
        answer: &mut [u8],
    ) -> Result<(), ConnectionError> {
        inside(self.region.copy_in(self.at + REQUEST_AT, request));
        inside(self.region.copy_in(self.at + KEY_AT, key));
        // All ones are no answer: a device that says that it is done and wrote nothing has opened no session.
        answer.fill(0xFF);
        inside(self.region.copy_in(self.at + ANSWER_AT, answer));
        let element = |at: usize, bytes: usize, is_writable| Element {
            address: BASE + (self.at + at) as u64,
            len: u32::try_from(bytes).expect("a message is short"),
            is_writable,
        };
        let all = [
            element(REQUEST_AT, CONTROL_BYTES, false),
            element(ANSWER_AT, answer.len(), true),
            element(KEY_AT, key.len(), false),
        ];
        // A session without a key has one element less.
        let elements = [all[0], all[2], all[1]];
        let elements = if key.is_empty() { &all[..2] } else { &elements[..] };
        self.queue.add(elements).expect("the last message was answered");
        if self.queue.publish() {
            self.doorbell.ring(self.number);
        }
        let until = Instant::now() + Duration::from(SILENCE_MAX);
        while !self.queue.wake_after(1)? {
            match until.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Err(ConnectionError::Silent),
                left => self.waiter.sleep(left)?,
            }
        }
        self.queue.take()?;
        inside(self.region.copy_out(self.at + ANSWER_AT, answer));
        Ok(())
    }
}

impl SessionControl for Sessions {
    fn create(&mut self, session: &CreateSession<'_>) -> Result<Result<u64, i64>, ConnectionError> {
        let (request, key) = session.to_control();
        let mut answer = [0; ANSWER_BYTES];
        // The device has copied the key when it answers; none stays behind in memory that it may read.
        let refused = self.call(&request, key, &mut answer);
        inside(self.region.wipe(self.at + KEY_AT, key.len()));
        refused?;
        let opened = opened_id(&answer)?;
        if let Ok(id) = opened {
            self.codes.insert(id, session.op_code);
            self.sweep(id, session.op_code)?;
        }
        Ok(opened.map_err(|status| -i64::from(status)))
    }

    /// That a device does not know it changes nothing.
    fn close(&mut self, id: u64) -> Result<(), ConnectionError> {
        let Some(code) = self.codes.remove(&id) else { return Ok(()) };
        self.call(&close_request(code, id), &[], &mut [Status::Ok as u8])
    }
}
