//! The other side of a connection, for tests that say when a request comes back, and whether there is a call.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use evener_ring::Region;
use evener_ring::virtqueue::{Chain, Device, Driver, Events, Mapped, Tables};
use evener_wire::CreateSession;

use crate::connection::Connection;
use crate::connection::control::SessionControl;
use crate::connection::error::ConnectionError;
use crate::connection::layout::BASE;
use crate::connection::link::{Link, OpenLink, queue_memory};
use crate::connection::wait::{Spin, Waiter, event};

/// Opens any session, and leaves the queue to the test.
#[derive(Debug)]
struct Silent {
    waiter: Arc<Waiter>,
    lent: Arc<LentSpans>,
}

/// What of the region was lent beyond the first.
#[derive(Debug, Default)]
pub(crate) struct LentSpans {
    pub(crate) spans: Mutex<Vec<Range<usize>>>,
    /// From here on nothing is lent any more.
    pub(crate) is_refused: AtomicBool,
}

impl SessionControl for Silent {
    fn create(&mut self, _: &CreateSession<'_>) -> Result<Result<u64, i64>, ConnectionError> {
        Ok(Ok(1))
    }

    fn close(&mut self, _: u64) -> Result<(), ConnectionError> {
        Ok(())
    }
}

impl Link for Silent {
    fn sessions(&mut self) -> &mut dyn SessionControl {
        self
    }

    fn kick(&self) -> Result<(), ConnectionError> {
        Ok(())
    }

    fn waiter(&self) -> &Arc<Waiter> {
        &self.waiter
    }

    fn lend(&mut self, _: &Arc<Region>, span: Range<usize>) -> Result<(), ConnectionError> {
        if self.lent.is_refused.load(Relaxed) {
            return Err(ConnectionError::system(
                "memory for the device",
                io::Error::from_raw_os_error(libc::ENOMEM),
            ));
        }
        self.lent.spans.lock().unwrap().push(span);
        Ok(())
    }

    fn end(&mut self) {}
}

/// A device in the test's hands.
pub(crate) struct TestPeer {
    memory: Memory,
    device: Device<Mapped>,
    waiter: Arc<Waiter>,
    pub(crate) lent: Arc<LentSpans>,
}

struct Memory(Arc<Region>);

impl Memory {
    fn place(address: u64) -> usize {
        usize::try_from(address - BASE).unwrap()
    }
}

impl Tables for Memory {
    fn copy_out(&self, address: u64, into: &mut [u8]) -> bool {
        self.0.copy_out(Self::place(address), into).is_ok()
    }
}

impl TestPeer {
    /// One that reaches everything.
    pub(crate) fn new(events: Events) -> (Connection, Self) {
        Self::reaching(usize::MAX, events)
    }

    /// One that reaches so much of the region at first.
    pub(crate) fn reaching(most: usize, events: Events) -> (Connection, Self) {
        let waiter = Arc::new(Waiter::new(event().unwrap(), None).unwrap());
        let lent = Arc::<LentSpans>::default();
        let link = Box::new(Silent { waiter: Arc::clone(&waiter), lent: Arc::clone(&lent) });
        let mut made = None;
        let connection = Connection::to_device(|region, parts, _| {
            let device = Device::starting_at(queue_memory(region, parts), events, 0).unwrap();
            made = Some((Memory(Arc::clone(region)), device));
            let queue = Driver::new(queue_memory(region, parts), events).unwrap();
            // No thread looks awake, so that it is a call that wakes.
            let lent = most.min(region.byte_count());
            Ok(OpenLink { link, queue, config: None, spin: Spin::never(), lent })
        });
        let connection = connection.expect("a region");
        let (memory, device) = made.unwrap();
        (connection, Self { memory, device, waiter, lent })
    }

    /// Takes the oldest request that waits.
    pub(crate) fn take(&mut self) -> Chain {
        let mut chain = Chain::default();
        assert!(self.device.take(&self.memory, &mut chain).unwrap(), "a request waits");
        chain
    }

    /// Gives a request back with every bit of its text turned, and calls where that is asked for.
    pub(crate) fn give_back(&mut self, chain: &Chain) {
        let [text, status] = chain.writable() else { panic!("text and status") };
        let mut bytes = vec![0; text.len.try_into().unwrap()];
        assert!(self.memory.copy_out(text.address, &mut bytes));
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
        self.memory.0.copy_in(Memory::place(text.address), &bytes).unwrap();
        self.memory.0.copy_in(Memory::place(status.address), &[0]).unwrap();
        self.device.give_back(chain.head(), 0);
        if self.device.publish() {
            self.waiter.wake().unwrap();
        }
    }
}
