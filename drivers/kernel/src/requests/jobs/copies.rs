//! What goes between a job and its request: texts are copied into memory of the request's own and back, so that a thread that hangs in the kernel holds nothing of the
//! caller's. A job that owns its memory lends it instead.

use evener_core::padding::{pad, padded_bytes, text_bytes};
use evener_core::{Direction, Job, JobError, Padding};
use zeroize::Zeroizing;

use super::JobDriver;
use crate::pool::device::{Device, Spec, Task};

impl<D: Device> JobDriver<'_, D> {
    /// The request of a job.
    pub(super) fn task(&mut self, job: &mut Job<'_>) -> Task {
        if let Some(task) = self.task_in_its_own_space(job) {
            return task;
        }
        let session = job.session();
        let (algorithm, direction) = (session.algorithm(), session.direction());
        let aad = if algorithm.is_aead() { job.aad() } else { &[] };
        let is_padded = session.padding() == Padding::Pkcs7 && direction == Direction::Encrypt;
        let input = job.input();
        let text_bytes = if is_padded { padded_bytes(input.len()) } else { input.len() };
        let tag_bytes = if algorithm.is_aead() { algorithm.tag_bytes() } else { 0 };
        let (start, whole) = (aad.len(), aad.len() + text_bytes + tag_bytes);
        let mut space = with_space(self.spare.pop().unwrap_or_default(), whole);
        space.extend_from_slice(aad);
        space.extend_from_slice(input);
        space.resize(whole, 0);
        if is_padded {
            let text_end = input.len() % evener_core::BLOCK_BYTES;
            pad(&mut space[start + input.len() - text_end..], text_end);
        }
        if tag_bytes > 0 && direction == Direction::Decrypt {
            space[start + text_bytes..].copy_from_slice(&job.tag_given()[..tag_bytes]);
        }
        Task {
            number: self.taken,
            spec: Spec { algorithm, direction },
            iv: *job.iv(),
            aad_bytes: start,
            text_bytes,
            space,
            tag: *job.tag_given(),
            is_in_jobs_space: false,
            answer: Ok(()),
        }
    }

    /// The request of a job that owns its memory and needs nothing beside its text there: two copies less. A failed one may have
    /// replaced a part of its input; a caller that lends jobs memory of their own keeps the input elsewhere (`offload.rs` of the runtime).
    fn task_in_its_own_space(&self, job: &mut Job<'_>) -> Option<Task> {
        let (session, text_bytes, iv) = (job.session(), job.input_bytes(), *job.iv());
        let (algorithm, direction) = (session.algorithm(), session.direction());
        let is_plain = algorithm.is_cipher() && !algorithm.is_aead() && session.padding() == Padding::None;
        let space = if is_plain { job.lend_space()? } else { return None };
        let task = Task::over(self.taken, Spec { algorithm, direction }, iv, space, text_bytes);
        Some(Task { is_in_jobs_space: true, ..task })
    }
}

/// Empty memory with so much space: never grown, because what was in it would stay behind unwiped.
fn with_space(spare: Zeroizing<Vec<u8>>, bytes: usize) -> Zeroizing<Vec<u8>> {
    if spare.capacity() < bytes {
        return Zeroizing::new(Vec::with_capacity(bytes));
    }
    let mut space = spare;
    space.clear();
    space
}

/// The result of a request that went well.
pub(super) fn publish(task: &Task, job: &mut Job<'_>) {
    let Spec { algorithm, direction } = task.spec;
    if !algorithm.is_cipher() {
        return job.publish(&[], &task.tag[..algorithm.tag_bytes()]);
    }
    let mut text = task.text();
    if job.session().padding() == Padding::Pkcs7 && direction == Direction::Decrypt {
        let Some(text_len) = text.last_chunk().and_then(text_bytes) else {
            return job.fail(JobError::BadPadding);
        };
        text = &text[..text.len() - evener_core::BLOCK_BYTES + text_len];
    }
    let tag_start = task.aad_bytes + task.text_bytes;
    let tag_bytes = if direction == Direction::Encrypt { algorithm.tag_bytes() } else { 0 };
    job.publish(text, &task.space[tag_start..tag_start + tag_bytes]);
}
