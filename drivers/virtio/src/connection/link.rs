//! What stands between a connection and what works on its queue: a host's socket, or a device's registers.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use evener_fd::CheckedFd;
use evener_ring::Region;
use evener_ring::virtqueue::{Driver, Mapped};
use evener_wire::Config;

use crate::connection::control::{Control, SessionControl};
use crate::connection::error::ConnectionError;
use crate::connection::layout::Parts;
use crate::connection::wait::{Spin, Waiter, event, ring};

/// The way to the other side beside the queue. Where a call fails, it is over.
pub(crate) trait Link: Debug + Send {
    /// Where sessions are opened and closed.
    fn sessions(&mut self) -> &mut dyn SessionControl;

    /// Says that there is something new in the queue.
    fn kick(&self) -> Result<(), ConnectionError>;

    /// Where calls are waited for.
    fn waiter(&self) -> &Arc<Waiter>;

    /// Lets the other side reach more of the region, whole pages.
    fn lend(&mut self, region: &Arc<Region>, span: Range<usize>) -> Result<(), ConnectionError>;

    /// Ends it; the memory is worked on no more, as far as this side can see to that.
    fn end(&mut self);
}

/// A link that was made, with the queue over it.
pub(crate) struct OpenLink {
    pub(crate) link: Box<dyn Link>,
    pub(crate) queue: Driver<Mapped>,
    /// What the other side says of itself.
    pub(crate) config: Option<Config>,
    pub(crate) spin: Spin,
    /// How much of the region the other side reaches, from its beginning.
    pub(crate) lent: usize,
}

/// Where the queue's parts lie.
pub(crate) fn queue_memory(region: &Arc<Region>, parts: Parts) -> Mapped {
    let places = parts.places.map(|at| (Arc::clone(region), at));
    Mapped::new(parts.size, places).expect("the parts lie inside the region")
}

/// A host behind a socket.
#[derive(Debug)]
struct Host {
    control: Control,
    kick: CheckedFd,
    waiter: Arc<Waiter>,
}

/// Agrees with a host that was asked what it can do, and hands it the region.
pub(crate) fn host(
    control: Control,
    region: &Arc<Region>,
    memory: &std::fs::File,
    parts: Parts,
) -> Result<OpenLink, ConnectionError> {
    let agreement = control.agree()?;
    let queue =
        Driver::new(queue_memory(region, parts), agreement.events).expect("a queue's slices are of one size");
    control.share(memory, region.byte_count(), parts)?;
    let (kick, call) = (event()?, event()?);
    control.start(&kick, &call)?;
    let config = agreement.has_config.then(|| control.configuration()).transpose()?;
    // The host sends nothing unasked: whatever happens on the socket is its end. The host rings its copy of the call.
    let waiter = Arc::new(Waiter::new(call, Some(control.socket()))?);
    let link = Host { control, kick, waiter };
    Ok(OpenLink { link: Box::new(link), queue, config, spin: Spin::new(), lent: region.byte_count() })
}

impl Link for Host {
    fn sessions(&mut self) -> &mut dyn SessionControl {
        &mut self.control
    }

    fn kick(&self) -> Result<(), ConnectionError> {
        ring(&self.kick)
    }

    fn waiter(&self) -> &Arc<Waiter> {
        &self.waiter
    }

    /// It has all.
    fn lend(&mut self, _: &Arc<Region>, _: Range<usize>) -> Result<(), ConnectionError> {
        Ok(())
    }

    /// The socket closes when this is dropped.
    fn end(&mut self) {}
}
