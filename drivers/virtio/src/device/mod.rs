//! Drives a virtio-crypto device on the PCI bus from this process: no other process and no kernel stands between a request and it.
//!
//! The path: a function is reserved ([`reserve`]) -> taken ([`evener_vfio::Function`]) -> its registers are found (`transport.rs`) -> reset,
//! features, both queues, ready ([`open`]; virtio 1.2, 3.1.1) -> sessions go over its control queue (`sessions.rs`), requests over the connection's -> reset, before
//! the memory has another use ([`Link::end`]).
//!
//! The device reaches the region through the IOMMU and nothing else; what it writes there is checked as a host's is.

mod sessions;
mod transport;

use std::ops::Range;
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evener_ring::Region;
use evener_ring::virtqueue::{Driver, Events};
use evener_vfio::{Address, Function, QueueDoorbell, Reserved};
use evener_wire::features;

use self::sessions::Sessions;
use self::transport::{IDENTITY, Queue, Transport, state};
use crate::connection::control::SessionControl;
use crate::connection::error::ConnectionError;
use crate::connection::layout::LENT_FIRST;
use crate::connection::layout::{BASE, Parts};
use crate::connection::link::{Link, OpenLink, queue_memory};
use crate::connection::wait::{Spin, Waiter, event};

/// The data queue; the control queue's number is that of data queues.
const DATA: u16 = 0;

/// Interrupts: the data queue's and the control queue's.
const VECTORS: u32 = 2;

/// How long a device may take to be reset. Assumed, not measured: 1 s, because QEMU's is reset at once.
const RESET_TIMEOUT: Duration = Duration::from_secs(1);

/// A device that is ready.
#[derive(Debug)]
struct Device {
    transport: Transport,
    doorbell: QueueDoorbell,
    sessions: Sessions,
    waiter: Arc<Waiter>,
    is_over: bool,
    /// The process that has it.
    process: u32,
    /// Given back last.
    function: Function,
}

/// Keeps other processes from a device, and sees that it is one.
pub(crate) fn reserve(address: Address) -> Result<Reserved, ConnectionError> {
    let reserved =
        Reserved::new(address).map_err(|refused| ConnectionError::Function(refused.to_string()))?;
    match reserved.identity().map_err(refused("its identity"))? {
        IDENTITY => Ok(reserved),
        _ => Err(ConnectionError::Lacks("what makes it a virtio-crypto device of version 1")),
    }
}

/// Takes a device and sets it up: its data queue lies at `parts`, its control queue behind everything else, at `control_at`.
pub(crate) fn open(
    reserved: Reserved,
    region: &Arc<Region>,
    parts: Parts,
    control_at: usize,
) -> Result<OpenLink, ConnectionError> {
    let mut function = reserved.take().map_err(|refused| ConnectionError::Function(refused.to_string()))?;
    if function.call_count().map_err(refused("interrupts"))? < VECTORS {
        return Err(ConnectionError::Lacks("two interrupts of kind MSI-X"));
    }
    let transport = Transport::find(&function)?;
    transport.reset(RESET_TIMEOUT)?;
    function.lend(region, 0..LENT_FIRST, BASE).map_err(refused("memory for the device"))?;
    let (call, answer) = (event()?, event()?);
    function.call_by([&call, &answer]).map_err(refused("interrupts"))?;
    transport.add_state(state::ACKNOWLEDGE | state::DRIVER)?;
    let events = agree(&transport)?;
    let config = transport.config()?;
    let data = Queue { number: DATA, parts, vector: 0 };
    let doorbell = transport.start_queue(&data)?;
    let number =
        u16::try_from(config.data_queues_max).map_err(|_| ConnectionError::Lacks("a control queue"))?;
    let control = Queue { number, parts: Sessions::parts(control_at), vector: 1 };
    let told = transport.start_queue(&control)?;
    transport.add_state(state::DRIVER_OK)?;
    let queue = Driver::new(queue_memory(region, parts), events).expect("a queue's slices are of one size");
    let sessions = Sessions::new(region, control_at, events, (told, number), answer)?;
    let waiter = Arc::new(Waiter::new(call, None)?);
    let process = process::id();
    let device = Device { transport, doorbell, sessions, waiter, is_over: false, process, function };
    Ok(OpenLink {
        link: Box::new(device),
        queue,
        config: Some(config),
        spin: Spin::never(),
        lent: LENT_FIRST,
    })
}

/// Settles what both sides can do.
fn agree(transport: &Transport) -> Result<Events, ConnectionError> {
    const NEEDED: u64 = features::VERSION_1 | features::INDIRECT | features::ACCESS_PLATFORM;
    let offered = transport.offered()?;
    if offered & features::ACCESS_PLATFORM == 0 {
        return Err(ConnectionError::Lacks("the feature ACCESS_PLATFORM: it would go around the IOMMU"));
    }
    if offered & NEEDED != NEEDED {
        return Err(ConnectionError::Lacks("version 1 or indirect descriptors"));
    }
    transport.choose(offered & (NEEDED | features::EVENT_IDX))?;
    Ok(if offered & features::EVENT_IDX == 0 { Events::Flags } else { Events::Index })
}

impl Link for Device {
    fn sessions(&mut self) -> &mut dyn SessionControl {
        &mut self.sessions
    }

    fn kick(&self) -> Result<(), ConnectionError> {
        self.doorbell.ring(DATA);
        Ok(())
    }

    fn waiter(&self) -> &Arc<Waiter> {
        &self.waiter
    }

    fn lend(&mut self, region: &Arc<Region>, span: Range<usize>) -> Result<(), ConnectionError> {
        self.function.lend(region, span, BASE).map_err(refused("memory for the device"))
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.is_over, true) || self.process != process::id() {
            return;
        }
        // One that does not let itself be reset may not reach memory at all from here on.
        if self.transport.reset(RESET_TIMEOUT).is_err() {
            transport::silence(&self.function).unwrap_or_default();
        }
    }
}

impl Drop for Device {
    /// QEMU's device keeps sessions over a reset.
    fn drop(&mut self) {
        if !self.is_over && self.process == process::id() {
            self.sessions.close_all();
        }
        self.end();
    }
}

/// What the system refused.
fn refused(what: &'static str) -> impl Fn(std::io::Error) -> ConnectionError {
    move |error| ConnectionError::system(what, error)
}

/// Repeats `is_done` until it holds, for `timeout` at most; says whether it does.
fn soon(
    timeout: Duration,
    mut is_done: impl FnMut() -> Result<bool, ConnectionError>,
) -> Result<bool, ConnectionError> {
    let began = Instant::now();
    while !is_done()? {
        if began.elapsed() >= timeout {
            return Ok(false);
        }
        std::thread::yield_now();
    }
    Ok(true)
}
