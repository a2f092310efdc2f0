//! The engines of this process: one list for every library context.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use evener_core::{Algorithm, Direction, SessionId};
use evener_ring::hold_cancellation;

use super::Engine;

/// Engines of this process, offered work in this order.
static ENGINES: RwLock<Vec<&'static dyn Engine>> = RwLock::new(Vec::new());

/// Adds an engine behind those that are there. Every library context of the process offers it work.
pub fn add_engine(engine: &'static dyn Engine) {
    ENGINES.write().unwrap_or_else(PoisonError::into_inner).push(engine);
}

/// Tells all engines that a session has ended. Not under the lock, for they may call the system.
pub(crate) fn close_session(session: SessionId) {
    let engine = |at: usize| ENGINES.read().unwrap_or_else(PoisonError::into_inner).get(at).copied();
    (0..).map_while(engine).for_each(|engine| engine.close_session(session));
}

/// Has all engines [make ready](Engine::prepare), once in a process. Not under the lock, for they may call the system.
#[inline]
pub(crate) fn prepare(generation: u32) {
    // Relaxed, as below: the engines see to it that each thing is made once.
    if PREPARED.load(Relaxed) != u64::from(generation) {
        prepare_all(generation);
    }
}

#[cold]
fn prepare_all(generation: u32) {
    PREPARED.store(generation.into(), Relaxed);
    let engine = |at: usize| ENGINES.read().unwrap_or_else(PoisonError::into_inner).get(at).copied();
    (0..).map_while(engine).for_each(Engine::prepare);
}

/// The generation whose engines are ready; none at first.
static PREPARED: AtomicU64 = AtomicU64::new(u64::MAX);

/// All of them, which stay as they are for as long as this is held.
pub(crate) fn all() -> RwLockReadGuard<'static, Vec<&'static dyn Engine>> {
    ENGINES.read().unwrap_or_else(PoisonError::into_inner)
}

/// Whether there are engines, ready ones, and none of them wants work of this kind and length now.
pub(crate) fn is_unwanted(algorithm: Algorithm, direction: Direction, len: usize, generation: u32) -> bool {
    // A thread that is cancelled with the lock would leave it locked.
    let _held = hold_cancellation();
    let engines = all();
    // Relaxed, as above.
    let are_ready = PREPARED.load(Relaxed) == u64::from(generation) && !engines.is_empty();
    are_ready && !engines.iter().any(|engine| engine.takes(algorithm, direction, len))
}

/// The engine that wants work of this kind and length now.
pub(crate) fn engine(algorithm: Algorithm, direction: Direction, len: usize) -> Option<&'static dyn Engine> {
    all().iter().copied().find(|engine| engine.takes(algorithm, direction, len))
}
