//! What a module does, by algorithm and direction: asked of it when it is named, and again when a driver was made.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use evener_core::{Algorithm, Direction};

/// What a module does.
pub(super) struct Abilities {
    says: Box<dyn Fn(Algorithm, Direction) -> bool + Send + Sync>,
    /// By algorithm and direction.
    // Relaxed: what a module does not do it refuses, too.
    table: Vec<[AtomicBool; 2]>,
}

impl Abilities {
    pub(super) fn new(says: impl Fn(Algorithm, Direction) -> bool + Send + Sync + 'static) -> Self {
        let table = Algorithm::ALL.iter().map(|_| Default::default()).collect();
        let abilities = Self { says: Box::new(says), table };
        abilities.ask();
        abilities
    }

    pub(super) fn has(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.table[algorithm.index()][direction as usize].load(Relaxed)
    }

    fn ask(&self) {
        for (algorithm, answers) in Algorithm::ALL.iter().zip(&self.table) {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                answers[direction as usize].store((self.says)(*algorithm, direction), Relaxed);
            }
        }
    }

    /// Asks once more when `make` has made something.
    pub(super) fn asked_again_after<T>(
        self: &Arc<Self>,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> impl Fn() -> T + Send + Sync + 'static {
        let abilities = Arc::clone(self);
        move || {
            let made = make();
            if !cfg!(mutant = "does_asked_once") {
                abilities.ask();
            }
            made
        }
    }
}
