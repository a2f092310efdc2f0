//! Rest: clients that have nothing are asked for a kick, and the thread sleeps until one comes.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{Timespec, epoll};

use crate::service::request::BadRequest;
use crate::service::run_queue::ClientState;
use crate::service::thread_state::{Rest, ServiceLoop};
use crate::state::client::Client;
use crate::state::ring::Ring;

impl ServiceLoop {
    /// Asks all queued clients for kicks and sleeps until one comes, unless something came meanwhile.
    pub(super) fn sleep(&mut self) {
        while let Some(client) = self.run_queue.next() {
            if !self.ask_for_kick(&client) {
                return;
            }
        }
        self.wait(self.runner.timeout(self.quiet_rounds).unwrap_or(IDLE));
    }

    /// Parks a client until it kicks; `false` where it has something already and is queued again.
    pub(super) fn ask_for_kick(&mut self, client: &Arc<Client>) -> bool {
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
    pub(super) fn wait(&mut self, timeout: Duration) {
        let timeout = Timespec::try_from(timeout).expect("at most a second");
        let mut events = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        // A signal is for another thread. No client has the number of a wake-up.
        if let Ok((kicks, _)) = epoll::wait(&self.shard.watch, &mut events, Some(&timeout)) {
            kicks.iter().for_each(|kick| self.run_queue.enqueue(kick.data.u64()));
        }
    }
}

/// Kicks that one look reports at most; others are reported by the next, in their order.
const EVENTS_MAX: usize = 64;

/// Longest sleep of a module that has nothing to do. It is woken for everything; this is for what was not foreseen.
const IDLE: Duration = Duration::from_secs(1);
