//! Where a request stays while the module has its job: whose it is, where its answer goes, the memory that it is worked on in: a copy, or the client's.

use std::sync::Arc;

use evener_core::job::SharedSpan;
use evener_core::{Job, TAG_BYTES_MAX};
use evener_ring::virtqueue::Element;

use crate::service::client_span::ClientSpan;
use crate::service::request::{BadRequest, Reader, Work};
use crate::service::slots::{Slot, Slots, wipe_slot};
use crate::state::client::AnswerPlace;
use crate::state::memory::Memory;

/// A request that the module has.
pub(crate) struct Task {
    pub(crate) place: AnswerPlace,
    /// Where the answer may be written.
    pub(crate) elements: Vec<Element>,
    /// Bytes of the source, as they count against the client's limit.
    pub(crate) src_bytes: usize,
    home: Home,
}

/// Where a job works.
enum Home {
    /// In a copy.
    Slot(Slot),
    /// In the client's memory, which stays mapped meanwhile.
    Client(Arc<Memory>),
}

/// All of them, found by the marks of their jobs.
pub(crate) struct InFlightTable {
    slots: Slots,
    /// Jobs without memory, for those that work in a client's.
    bare: Vec<Box<Job<'static>>>,
    tasks: Vec<Option<Task>>,
    /// Marks that are free.
    marks: Vec<usize>,
    /// Lists of elements, for the next requests.
    lists: Vec<Vec<Element>>,
}

impl InFlightTable {
    pub(crate) fn new() -> Self {
        Self {
            slots: Slots::new(),
            bare: Vec::new(),
            tasks: Vec::new(),
            marks: Vec::new(),
            lists: Vec::new(),
        }
    }

    /// Makes a job that works in the client's memory.
    pub(crate) fn begin_there(
        &mut self,
        work: Work,
        span: ClientSpan,
        place: AnswerPlace,
        elements: &[Element],
    ) -> Box<Job<'static>> {
        let (span, memory) = span.lend();
        let mut job = self.bare.pop().unwrap_or_else(|| Job::shared(SharedSpan::EMPTY));
        job.share(span);
        self.enter(work, job, Home::Client(memory), place, elements)
    }

    /// Copies source and associated data and makes a job of them.
    pub(crate) fn begin(
        &mut self,
        work: Work,
        reader: &mut Reader<'_>,
        place: AnswerPlace,
        elements: &[Element],
    ) -> Result<Box<Job<'static>>, BadRequest> {
        let (mut job, mut slot) = self.slots.take(work.src_bytes, place.client.id);
        let copied = fill(&mut job, &mut slot, &work, reader);
        if let Err(fraud) = copied {
            wipe_slot(&mut job, &mut slot);
            self.slots.put(job, slot);
            return Err(fraud);
        }
        Ok(self.enter(work, job, Home::Slot(slot), place, elements))
    }

    fn enter(
        &mut self,
        work: Work,
        mut job: Box<Job<'static>>,
        home: Home,
        place: AnswerPlace,
        elements: &[Element],
    ) -> Box<Job<'static>> {
        let (input_bytes, src_bytes) = (work.input_bytes(), work.src_bytes);
        let iv_bytes = work.session.algorithm().iv_bytes();
        job.arm(work.session, &work.iv[..iv_bytes], input_bytes);
        let mut list = self.lists.pop().unwrap_or_default();
        list.extend_from_slice(elements);
        let mark = self.marks.pop().unwrap_or_else(|| {
            self.tasks.push(None);
            self.tasks.len() - 1
        });
        job.mark = mark as u64;
        self.tasks[mark] = Some(Task { place, elements: list, src_bytes, home });
        job
    }

    /// The task of a job that is back.
    ///
    /// # Panics
    ///
    /// Where the job comes back twice: a bug of its driver.
    pub(crate) fn end(&mut self, job: &Job<'static>) -> Task {
        let mark = usize::try_from(job.mark).expect("an index of ours");
        self.marks.push(mark);
        self.tasks[mark].take().expect("each job comes back once")
    }

    /// Keeps what the next request can use.
    pub(crate) fn put(&mut self, mut job: Box<Job<'static>>, task: Task) {
        let Task { mut elements, home, .. } = task;
        elements.clear();
        self.lists.push(elements);
        match home {
            Home::Slot(slot) => self.slots.put(job, slot),
            Home::Client(memory) => {
                // First the span, then what it lies in.
                job.share(SharedSpan::EMPTY);
                drop(memory);
                job.disarm();
                job.set_tag(&[0; TAG_BYTES_MAX]);
                self.bare.push(job);
            }
        }
    }

    /// Wipes what is left of a client's bytes.
    pub(crate) fn wipe(&mut self, client: u64) {
        self.slots.wipe(client);
    }
}

/// Copies what a job works on, each byte once.
fn fill(
    job: &mut Job<'static>,
    slot: &mut Slot,
    work: &Work,
    reader: &mut Reader<'_>,
) -> Result<(), BadRequest> {
    let space = &mut job.space_mut()[..work.src_bytes];
    reader.copy(space)?;
    let mut tag = [0; 16];
    let tag = &mut tag[..work.tag_bytes_in()];
    tag.copy_from_slice(&space[work.input_bytes()..]);
    job.set_tag(tag);
    if work.aad_bytes > 0 {
        reader.copy(&mut slot.aad.fill()[..work.aad_bytes])?;
        job.set_aad(slot.aad.lend(work.aad_bytes));
    }
    Ok(())
}
