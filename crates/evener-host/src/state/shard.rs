//! What the front and one of the module's threads tell each other: who came and went, whose rings changed, which sessions are
//! over; and where that thread sleeps.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evener_core::Session;
use rustix::event::{EventfdFlags, epoll, eventfd};

use crate::error::HostError;

/// One thread that serves rings, as others see it.
pub(crate) struct Shard {
    /// What it sleeps on.
    pub(crate) watch: Arc<OwnedFd>,
    wake: OwnedFd,
    /// Clients that it serves. Changed under the lock of the list of all.
    pub(crate) client_count: AtomicUsize,
    has_news: AtomicBool,
    news: Mutex<Vec<News>>,
    /// Sessions that were closed. Their last jobs may still be in the module.
    ended: Mutex<Vec<Arc<Session>>>,
}

/// Something that happened to a client, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Came(u64),
    /// A ring of it began, or may be served again.
    Changed(u64),
    Left(u64),
}

/// What an event of the watch stands for that is no client's kick.
pub(crate) const WAKE: u64 = 0;

impl Shard {
    pub(crate) fn new() -> Result<Self, HostError> {
        let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let each = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&watch, &wake, epoll::EventData::new_u64(WAKE), each)?;
        Ok(Self {
            watch: Arc::new(watch),
            wake,
            client_count: AtomicUsize::new(0),
            has_news: AtomicBool::new(false),
            news: Mutex::default(),
            ended: Mutex::default(),
        })
    }

    /// Lets the thread look around.
    pub(crate) fn wake(&self) {
        // It fails only where 2^64 wake-ups are outstanding, and then it is awake.
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).ok();
    }

    pub(crate) fn tell(&self, news: News) {
        self.news().push(news);
        self.note();
    }

    /// What was told since the last time, oldest first.
    pub(crate) fn take_news(&self) -> Vec<News> {
        // Relaxed: who told something wakes the thread afterwards, and the lock brings what was told.
        if !self.has_news.swap(false, Relaxed) {
            return Vec::new();
        }
        std::mem::take(&mut *self.news())
    }

    /// Has the module evict sessions that were closed, as soon as no job needs them any more.
    pub(crate) fn end_sessions(&self, closed: impl IntoIterator<Item = Arc<Session>>) {
        self.ended().extend(closed);
        self.note();
    }

    /// Sessions that were closed and that no job has.
    pub(crate) fn take_ended(&self) -> Vec<Arc<Session>> {
        let mut ended = self.ended();
        if ended.is_empty() {
            return Vec::new();
        }
        let (over, used) = ended.drain(..).partition(|session| Arc::strong_count(session) == 1);
        *ended = used;
        over
    }

    fn note(&self) {
        self.has_news.store(true, Relaxed);
        self.wake();
    }

    /// Both lists are whole between any two statements, so a panic elsewhere does not spoil them.
    fn news(&self) -> MutexGuard<'_, Vec<News>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> MutexGuard<'_, Vec<Arc<Session>>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
